"""Columns that are gone, new, of another name or of another type."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from tests.corruptions.clean_feed import Rows
from tests.corruptions.kinds import OBJECT, SCHEMA, Family, suite
from tests.corruptions.project import MONTHS, Feed

schema = Family("schema")
_ONE_SCHEMA = "Rows of objects with different columns cannot be one table"


@schema.rows("blocked", SCHEMA, OBJECT, "'carrier'", why=_ONE_SCHEMA)
def column_dropped(rows: Rows, feed: Feed) -> Rows:
    return rows.drop(columns="carrier")


@schema.rows(
    "blocked", suite("table_columns_to_match_set"), "weight", months=MONTHS,
    why="Objects agree with each other: only the suite knows what should be there",
)  # fmt: skip
def column_dropped_from_all_objects(rows: Rows, feed: Feed) -> Rows:
    return rows.drop(columns="weight")


@schema.rows(
    "blocked", SCHEMA, OBJECT, "'amount'", "'amount_eur'",
    why="Both names are said: a renamed column looks like one lost and one new",
)  # fmt: skip
def column_renamed(rows: Rows, feed: Feed) -> Rows:
    return rows.rename(columns={"amount": "amount_eur"})


@schema.rows(
    "blocked", SCHEMA, OBJECT, "'carrier'", "'Carrier'",
    why="SQL would not see the difference, the network's features would",
)  # fmt: skip
def column_name_in_capitals(rows: Rows, feed: Feed) -> Rows:
    return rows.rename(columns={"carrier": "Carrier"})


@schema.rows(
    "blocked", SCHEMA, OBJECT, "'CARRIER'",
    why="Which of the two is meant nobody can know; SQL would take either",
)  # fmt: skip
def column_twice_in_another_case(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(CARRIER=rows["carrier"].str.lower())


@schema.rows(
    "blocked", SCHEMA, OBJECT, "'amount'", "' amount'",
    why="A blank in a header is a renamed column that looks the same to a person",
)  # fmt: skip
def column_name_with_a_blank(rows: Rows, feed: Feed) -> Rows:
    return rows.rename(columns={"amount": " amount"})


@schema.rows(
    "blocked", SCHEMA, OBJECT, "'discount'",
    why="All older rows would have nulls: whoever adds a column says from when on",
)  # fmt: skip
def column_added_in_one_object(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(discount=0.0)


@schema.rows(
    "blocked", SCHEMA, OBJECT, "'__index_level_0__'",
    why="A writer that forgot index=False; its numbers name rows",
)  # fmt: skip
def index_written_as_a_column(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(__index_level_0__=np.arange(len(rows)))


@schema.rows("blocked", SCHEMA, OBJECT, "'amount'", why="Text does not sort or add as numbers do")
def number_as_text(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(amount=rows["amount"].astype(str))


@schema.rows(
    "blocked", suite("column_values_to_be_in_type_list", "distance"), "VARCHAR", months=MONTHS,
    why="Objects agree with each other: only the suite knows the type",
)  # fmt: skip
def number_as_text_in_all_objects(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(distance=rows["distance"].round(3).astype(str))


@schema.rows("blocked", SCHEMA, OBJECT, "'amount'", why="1.234,5 is text: no number has two points")
def decimal_comma_as_text(rows: Rows, feed: Feed) -> Rows:
    swap = str.maketrans(",.", ".,")
    return rows.assign(amount=[f"{value:,.2f}".translate(swap) for value in rows["amount"]])


@schema.rows(
    "blocked", SCHEMA, OBJECT, "'items'",
    why="A count with fractions is no count: someone averaged before writing",
)  # fmt: skip
def count_with_fractions(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(items=rows["items"] + feed.random.choice([0.0, 0.5], len(rows)))


@schema.rows("blocked", SCHEMA, OBJECT, "'ordered'", why="Text in a column of times")
def time_as_text(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(ordered=rows["ordered"].astype(str))


@schema.rows("blocked", SCHEMA, OBJECT, "'ordered'", why="Seconds since 1970 in a column of times")
def time_as_seconds(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(ordered=rows["ordered"].dt.as_unit("s").astype("int64"))


@schema.rows(
    "blocked", SCHEMA, OBJECT, "'ordered'",
    why="Without its zone a time may be any of 24 hours; nobody may guess",
)  # fmt: skip
def time_zone_lost(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(ordered=rows["ordered"].dt.tz_localize(None))


@schema.rows("blocked", SCHEMA, OBJECT, "'express'", why="'false' as text is true to most code")
def boolean_as_text(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(express=rows["express"].map({True: "true", False: "false"}))


@schema.feed(
    "blocked", SCHEMA, OBJECT, "'amount'",
    why="Exact decimals are another type: a writer has changed, and rounds from now on",
)  # fmt: skip
def number_as_decimal(feed: Feed) -> None:
    feed.replace("amount", pa.array(feed.rows()["amount"]).cast(pa.decimal128(12, 2)))


@schema.feed("blocked", SCHEMA, OBJECT, "'amount'", why="A number became a structure")
def number_nested_in_a_structure(feed: Feed) -> None:
    amounts = feed.rows()["amount"]
    feed.replace("amount", pa.array([{"value": v, "currency": "EUR"} for v in amounts]))


@schema.feed("blocked", SCHEMA, OBJECT, "'carrier'", why="One value became a list of them")
def text_nested_in_a_list(feed: Feed) -> None:
    feed.replace("carrier", pa.array([[name] for name in feed.rows()["carrier"]]))


@schema.feed(
    "blocked", suite("column_values_to_not_be_null", "weight"),
    why="A column without any value has no type of its own, so the schema cannot object; "
    "a quarter of all rows without a weight breaks the suite's 90 %",
)  # fmt: skip
def column_without_values_or_type(feed: Feed) -> None:
    feed.replace("weight", pa.nulls(len(feed.rows())))


@schema.rows("blocked", SCHEMA, OBJECT, "'late'", why="The label as words: the task reads 0 and 1")
def label_as_text(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(late=rows["late"].map({0.0: "no", 1.0: "yes"}))


@schema.rows(
    "blocked", SCHEMA, OBJECT, "'customer'",
    why="pandas turns whole numbers with a null among them to fractions: 2**53 and more lose "
    "their last digit",
)  # fmt: skip
def whole_numbers_as_fractions_for_a_null(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(customer=rows["customer"].where(pd.Series(rows.index) > 0))
