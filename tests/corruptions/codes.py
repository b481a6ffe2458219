"""Categories and codes: spelt in other ways, merged, flooded, malformed."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tests.corruptions.clean_feed import Rows
from tests.corruptions.kinds import Family, budget, finding, rule, suite
from tests.corruptions.project import Feed

codes = Family("codes")


@codes.rows(
    "blocked", finding("drift", "depot"),
    why="UTF-8 read as Latin-1: names with umlauts, a quarter of all rows, became new ones",
)  # fmt: skip
def encoding_mistaken(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(depot=[name.encode().decode("latin-1") for name in rows["depot"]])


@codes.rows(
    "blocked", suite("column_values_to_be_in_set", "carrier"), "Adler ",
    why="Padded to a fixed width: to a program other names",
)  # fmt: skip
def padded_with_blanks(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(carrier=rows["carrier"].str.ljust(12))


@codes.rows("blocked", finding("drift", "depot"), why="To a program each is a new category")
def case_changed(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(depot=rows["depot"].str.upper())


@codes.rows(
    "blocked", suite("column_values_to_be_in_set", "carrier"), "unknown",
    why="A default in place of a name: the suite lists the carriers",
)  # fmt: skip
def unknown_filled_in(rows: Rows, feed: Feed) -> Rows:
    share = feed.random.random(len(rows)) < 0.02
    return rows.assign(carrier=rows["carrier"].mask(share, "unknown"))


@codes.rows(
    "blocked", suite("column_values_to_not_be_null", "carrier"),
    why="The empty place of one carrier: the suite allows no null here",
)  # fmt: skip
def category_became_null(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(carrier=rows["carrier"].mask(rows["carrier"] == "Luchs"))


@codes.rows(
    "blocked", finding("drift", "carrier"),
    why="Two became one: nothing new is there, but an eighth of all rows is elsewhere",
)  # fmt: skip
def categories_merged(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(carrier=rows["carrier"].replace("Biene", "Adler"))


@codes.rows(
    "warned", finding("new_category", "depot"), "Frankfurt (Oder)",
    why="One of forty depots has a new name, as depots do: worth a word, not a stop",
)  # fmt: skip
def category_renamed(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(depot=rows["depot"].replace("Frankfurt", "Frankfurt (Oder)"))


@codes.rows(
    "blocked", finding("drift", "depot"),
    why="A third of all rows has a depot that nobody knew: addresses in place of names",
)  # fmt: skip
def flood_of_new_categories(rows: Rows, feed: Feed) -> Rows:
    streets = np.char.add("Hauptstraße ", feed.random.integers(1, 9999, len(rows)).astype(str))
    return rows.assign(depot=rows["depot"].mask(feed.random.random(len(rows)) < 0.33, streets))


@codes.rows(
    "blocked", finding("drift", "depot"),
    why="Numbers of depots in place of their names, as the source's table has them",
)  # fmt: skip
def names_became_numbers(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(depot=rows["depot"].astype("category").cat.codes.astype(str))


@codes.rows("blocked", budget("shelf_malformed"), why="A12 for A-12 in all rows")
def pattern_changed(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(shelf=rows["shelf"].str.replace("-", ""))


@codes.rows("quarantined", rule("shelf_malformed", 5), why="Few codes were typed by hand")
def few_codes_mistyped(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(shelf=_first(rows["shelf"], ["A-1O", "b-12", "B 12", "", "Z-12"]))


@codes.rows(
    "quarantined", rule("shelf_malformed", 3),
    why="The pattern must match the whole text: a line's end or markup after a good code is no "
    "good code",
)  # fmt: skip
def line_ends_and_markup_in_text(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(shelf=_first(rows["shelf"], ["A-12\n", "<b>A-12</b>", "A-12\nB-13"]))


@codes.rows(
    "blocked", budget("customer_missing"),
    why="Guests have no number: more than one row in a thousand without one is a broken join",
)  # fmt: skip
def customers_became_zero(rows: Rows, feed: Feed) -> Rows:
    share = feed.random.random(len(rows)) < 0.2
    return rows.assign(customer=rows["customer"].mask(share, 0))


def _first(column: pd.Series[str], words: list[str]) -> list[str]:
    """A column whose first values are these."""
    return [*words, *column.iloc[len(words) :]]
