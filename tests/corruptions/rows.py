"""Rows that are missing, there twice, of another time or of other people."""

from __future__ import annotations

import pandas as pd

from tests.corruptions.clean_feed import ZONE, Rows
from tests.corruptions.kinds import Family, finding, suite
from tests.corruptions.project import MONTHS, NEW, Feed

rows = Family("rows")
SQL = "unexpected_rows_expectation"
_WHOLE_MONTHS = suite(SQL)


@rows.feed(
    "blocked", suite("column_values_to_be_unique", "id"),
    why="The same month under another name and in another order: other bytes, the same rows",
)  # fmt: skip
def month_twice(feed: Feed) -> None:
    feed.write(feed.rows().iloc[::-1], name="2025-04-again.parquet")


@rows.rows("blocked", suite("column_values_to_be_unique", "id"),
           why="A retry that wrote fifty rows again")  # fmt: skip
def some_rows_twice(month: Rows, feed: Feed) -> Rows:
    return pd.concat([month, month.sample(50, random_state=feed.seed)], ignore_index=True)


@rows.rows("blocked", suite("column_values_to_be_unique", "id"),
           why="The last week of the month before came along")  # fmt: skip
def month_overlaps_the_one_before(month: Rows, feed: Feed) -> Rows:
    return pd.concat([feed.rows(NEW - 1).tail(1400), month], ignore_index=True)


@rows.rows("blocked", suite("column_values_to_be_unique", "id"),
           why="The source's counter began again: other rows under known names")  # fmt: skip
def numbers_began_again(month: Rows, feed: Feed) -> Rows:
    return month.assign(id=month["id"] - (NEW - 1) * 1_000_000)


@rows.rows("blocked", suite("column_values_to_not_be_null", "id"), why="Rows that nobody can name")
def keys_missing(month: Rows, feed: Feed) -> Rows:
    return month.assign(id=month["id"].astype("Int64").mask(month.index < 30))


@rows.rows("blocked", suite("column_values_to_not_be_null", "ordered"),
           why="Rows without a time belong to no part of a split by time")  # fmt: skip
def times_missing(month: Rows, feed: Feed) -> Rows:
    return month.assign(ordered=month["ordered"].mask(month.index < 30))


@rows.rows("blocked", _WHOLE_MONTHS, "thin_day", why="Nobody misses a day unless days are counted")
def day_missing(month: Rows, feed: Feed) -> Rows:
    return month[month["ordered"].dt.day != 17]


@rows.rows("blocked", _WHOLE_MONTHS, "thin_day", why="A job that runs on weekdays only")
def weekends_missing(month: Rows, feed: Feed) -> Rows:
    return month[month["ordered"].dt.day_of_week < 5]


@rows.rows("blocked", _WHOLE_MONTHS, "thin_day", why="The writer ended after a tenth of the rows; "
           "what it had written is well formed")  # fmt: skip
def cut_to_a_tenth(month: Rows, feed: Feed) -> Rows:
    return month.head(len(month) // 10)


@rows.rows("blocked", _WHOLE_MONTHS, "thin_day", why="A sample for testing in place of the feed")
def sampled_to_a_tenth(month: Rows, feed: Feed) -> Rows:
    return month.sample(frac=0.1, random_state=feed.seed)


@rows.feed("blocked", _WHOLE_MONTHS, "thin_day", why="A month of the history was removed: the "
           "expectation of whole months sees the hole")  # fmt: skip
def old_month_gone(feed: Feed) -> None:
    feed.path(2).unlink()


@rows.rows("blocked", finding("drift", "carrier"), why="A carrier's own feed has stopped")
def group_gone(month: Rows, feed: Feed) -> Rows:
    return month[month["carrier"] != "Hirsch"]


@rows.rows("blocked", finding("drift", "amount"), why="A condition was left in the query: only "
           "the larger orders are there")  # fmt: skip
def filtered_by_value(month: Rows, feed: Feed) -> Rows:
    return month[month["amount"] > 25]


@rows.rows("blocked", finding("drift", "express"), why="One of two queues was exported: every "
           "order of it is right, none of the other's is there")  # fmt: skip
def filtered_by_kind(month: Rows, feed: Feed) -> Rows:
    return month[~month["express"]]


@rows.rows(
    "blocked", finding("drift", "customer"),
    why="A test customer, or a robot, makes two of five orders",
)  # fmt: skip
def one_customer_floods(month: Rows, feed: Feed) -> Rows:
    share = feed.random.random(len(month)) < 0.4
    return month.assign(customer=month["customer"].mask(share, 13))


@rows.rows(
    "blocked", suite("compound_columns_to_be_unique"), "customer", "ordered",
    why="March under new ids: what names an order to a person is its customer and time",
)  # fmt: skip
def old_rows_under_new_ids(month: Rows, feed: Feed) -> Rows:
    replayed = feed.rows(NEW - 1)
    replayed["id"] += 5_000_000
    return pd.concat([month, replayed], ignore_index=True)


@rows.rows(
    "warned", finding("near_duplicates"),
    why="March's orders with new ids and April's dates: alike in all but what names them. "
    "The distributions are those of always; only a comparison with the old rows can know",
)  # fmt: skip
def old_rows_with_new_ids_and_dates(month: Rows, feed: Feed) -> Rows:
    march = _later(feed.rows(NEW - 1), 31)
    return march[march["ordered"].dt.month == NEW]


@rows.rows(
    "warned", finding("near_duplicates"),
    why="Three hundred rows of the last holdout among the new ones: what the champion was judged "
    "by would be trained on",
)  # fmt: skip
def holdout_rows_leaked(month: Rows, feed: Feed) -> Rows:
    leaked = _later(feed.rows(NEW - 1).iloc[-1300:-1000], 28)
    return pd.concat([month, leaked], ignore_index=True)


@rows.rows("blocked", finding("future_rows"), "20", why="2125 for 2025: no row can be later than "
           "its snapshot")  # fmt: skip
def rows_of_the_future(month: Rows, feed: Feed) -> Rows:
    ordered = month["ordered"].mask(month.index < 20, month["ordered"] + pd.DateOffset(years=100))
    return month.assign(ordered=ordered)


@rows.feed(
    "warned", finding("id_feature", "depot"),
    why="A number for each shipment in place of a name: a network would learn rows by heart. "
    "From the first snapshot on, so that no drift can tell",
)  # fmt: skip
def key_in_place_of_a_category(feed: Feed) -> None:
    feed.edit(lambda month: month.assign(depot="S" + month["id"].astype(str)), *MONTHS)
    feed.forget_champion()


@rows.feed(
    "warned", finding("constant_column", "express"),
    why="A column that never varies teaches nothing and hides a broken source; harmless, so a "
    "warning. From the first snapshot on: later it would be drift",
)  # fmt: skip
def column_constant_from_the_start(feed: Feed) -> None:
    feed.edit(lambda month: month.assign(express=False), *MONTHS)
    feed.forget_champion()


@rows.feed(
    "blocked", finding("missing_column", "temperature"),
    why="No expectation asks for temperatures, but a feature without any value is a broken source. "
    "From the first snapshot on: later it would be drift",
)  # fmt: skip
def column_empty_from_the_start(feed: Feed) -> None:
    feed.edit(lambda month: month.assign(temperature=float("nan")), *MONTHS)
    feed.forget_champion()


def _later(old: Rows, days: int) -> Rows:
    """Old rows under new ids and at later dates, at the same time on the clock."""
    clock = old["ordered"].dt.tz_convert(ZONE).dt.tz_localize(None) + pd.Timedelta(days=days)
    ordered = clock.dt.tz_localize(ZONE).dt.tz_convert("UTC")
    return old.assign(id=old["id"] + 5_000_000, ordered=ordered)
