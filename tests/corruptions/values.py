"""Numbers, times and booleans that are of the right type and yet wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from tests.corruptions.clean_feed import ZONE, Rows
from tests.corruptions.kinds import Family, budget, finding, rule, suite
from tests.corruptions.project import MONTHS, Feed

values = Family("values")
SQL = "unexpected_rows_expectation"


@values.rows(
    "blocked", finding("drift", "distance"),
    why="Every value is plausible; only their distribution tells, by 0.9 deviations",
)  # fmt: skip
def kilometres_became_miles(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(distance=rows["distance"] / 1.609344)


@values.rows(
    "blocked", suite("column_values_to_be_between", "distance"), "300",
    why="Metres for kilometres: farther than the country is wide",
)  # fmt: skip
def scaled_by_a_thousand(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(distance=rows["distance"] * 1000)


@values.rows(
    "blocked", budget("temperature_out_of_range"),
    why="Half of an April in Fahrenheit is above 45 °C; what is not went past the rule, and the "
    "budget stops for all of them",
)  # fmt: skip
def celsius_became_fahrenheit(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(temperature=rows["temperature"] * 9 / 5 + 32)


@values.rows("blocked", budget("amount_out_of_range"), why="A third of all orders would be above "
             "5,000: more rows than may be put aside")  # fmt: skip
def euros_became_cents(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(amount=rows["amount"] * 100)


@values.rows("blocked", budget("amount_out_of_range"), why="Debits are booked as negative amounts")
def sign_flipped(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(amount=-rows["amount"])


@values.rows(
    "blocked", budget("temperature_out_of_range"),
    why="8.3 read as 83 where the point separates thousands",
)  # fmt: skip
def decimal_point_lost(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(temperature=rows["temperature"] * 10)


@values.rows(
    "blocked", finding("drift", "distance"),
    why="Half of all values are the same one: the range is right, the histogram is not",
)  # fmt: skip
def clipped(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(distance=rows["distance"].clip(upper=11.5))


@values.rows("blocked", finding("drift", "temperature"), why="One value for a month is no weather")
def sensor_stuck(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(temperature=rows["temperature"].iloc[0])


@values.rows(
    "blocked", finding("drift", "temperature"),
    why="Twelve degrees more than ever: three times what the season explains",
)  # fmt: skip
def sensor_out_of_calibration(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(temperature=rows["temperature"] + 12)


@values.rows(
    "blocked", finding("drift", "temperature"),
    why="Rounded to tens, five values are left of four hundred",
)  # fmt: skip
def precision_lost(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(temperature=rows["temperature"].round(-1))


@values.rows(
    "blocked", suite("column_values_to_be_between", "distance"),
    why="A default where nothing is known; no delivery goes nowhere",
)  # fmt: skip
def zero_filled_in(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(distance=rows["distance"].where(feed.random.random(len(rows)) > 0.3, 0.0))


@values.rows("blocked", budget("items_out_of_range"), why="-1 stands for unknown at the source")
def minus_one_filled_in(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(items=rows["items"].where(feed.random.random(len(rows)) > 0.1, -1))


@values.rows(
    "blocked", suite("column_values_to_be_between", "weight"), "100",
    why="999 stands for unknown at the source; no carrier takes a ton",
)  # fmt: skip
def nines_filled_in(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(weight=rows["weight"].fillna(999.0))


@values.rows(
    "warned", finding("drift", "temperature"),
    why="The mean in place of one value in seven: none is out of range, the histogram has a "
    "peak. Models live with it: a warning",
)  # fmt: skip
def mean_filled_in(rows: Rows, feed: Feed) -> Rows:
    share = feed.random.random(len(rows)) < 0.15
    return rows.assign(temperature=rows["temperature"].mask(share, rows["temperature"].mean()))


@values.rows("blocked", suite("column_values_to_not_be_null", "distance"), "0.99",
             why="The suite allows one in a hundred")  # fmt: skip
def nulls_everywhere(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(distance=np.nan)


@values.rows(
    "warned", finding("drift", "weight"),
    why="One carrier of eight stopped weighing: over all rows the suite's 90 % still hold, in the "
    "new ones nulls are four times as many. The model knows nulls: a warning",
)  # fmt: skip
def nulls_for_one_group(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(weight=rows["weight"].mask(rows["carrier"] == "Dachs"))


@values.feed(
    "blocked", suite("column_values_to_not_be_null", "distance"), "0.99",
    why="To SQL NaN is a value, larger than any other; here it counts as the null that it means",
)  # fmt: skip
def nan_for_null(feed: Feed) -> None:
    distance = feed.rows()["distance"].mask(feed.random.random(len(feed.rows())) < 0.3)
    feed.replace("distance", pa.array(distance.to_numpy(), from_pandas=False))


@values.rows("quarantined", rule("amount_out_of_range", 8), why="A division by zero in few rows")
def infinite_in_few_rows(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(amount=rows["amount"].mask(_some(rows, feed, 8), np.inf))


@values.rows("quarantined", rule("amount_out_of_range", 12), why="Typing errors: a dozen rows "
             "are worth less than the run")  # fmt: skip
def few_outliers(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(amount=rows["amount"].mask(_some(rows, feed, 12), 1e7))


@values.rows("blocked", budget("amount_out_of_range"), why="More than one row in a thousand is no "
             "typing error")  # fmt: skip
def many_outliers(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(amount=rows["amount"].mask(_some(rows, feed, 200), 1e7))


@values.rows("blocked", finding("drift", "express"), why="One in five became four in five")
def boolean_inverted(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(express=~rows["express"])


@values.rows("blocked", finding("drift", "distance"), why="Both are numbers of like size, each "
             "under the other's name")  # fmt: skip
def two_columns_swapped(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(distance=rows["amount"], amount=rows["distance"])


@values.rows(
    "blocked", finding("label_relation"), "distance",
    why="Joined on the wrong key: the column's distribution is that of before, what it says of "
    "the label is gone",
)  # fmt: skip
def joined_on_the_wrong_key(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(distance=feed.random.permutation(rows["distance"].to_numpy()))


@values.rows(
    "warned", suite("column_mean_to_be_between", "amount"), months=MONTHS,
    why="Prices with tax, in all of history: a fifth more is little beside their spread. Who knows "
    "the mean says so in the suite, and chose to be warned",
)  # fmt: skip
def tax_included(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(amount=(rows["amount"] * 1.19).round(2))


@values.rows(
    "blocked", suite(SQL), "local_hour",
    why="Local time written as if it were UTC: nothing but the local hour beside it can tell",
)  # fmt: skip
def local_time_called_utc(rows: Rows, feed: Feed) -> Rows:
    local = rows["ordered"].dt.tz_convert(ZONE).dt.tz_localize(None)
    return rows.assign(ordered=local.dt.tz_localize("UTC"))


@values.rows(
    "blocked", suite(SQL), "local_hour",
    why="An hour is too little for a histogram; the rule that ties both columns is exact",
)  # fmt: skip
def summer_time_missed(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(local_hour=(rows["ordered"] + pd.Timedelta(hours=1)).dt.hour.astype("int64"))


@values.rows(
    "blocked", suite(SQL), "before_the_first_order",
    why="Seconds read as milliseconds: all orders are of January 1970",
)  # fmt: skip
def epoch_in_seconds_read_as_milliseconds(rows: Rows, feed: Feed) -> Rows:
    start = pd.Timestamp(0, tz="UTC")
    read = start + (rows["ordered"] - start) / 1000
    return rows.assign(ordered=read.dt.as_unit("us"))


@values.rows(
    "blocked", suite(SQL), "thin_day",
    why="3 April read as 4 March where both are dates: the month has holes, and the local hours "
    "of another season no longer fit",
)  # fmt: skip
def day_and_month_swapped(rows: Rows, feed: Feed) -> Rows:
    swapped = [
        time.replace(day=time.month, month=time.day) if time.day <= 12 else time
        for time in rows["ordered"]
    ]
    return rows.assign(ordered=pd.to_datetime(pd.Series(swapped, index=rows.index), utc=True))


def _some(rows: Rows, feed: Feed, count: int) -> pd.Series[bool]:
    """So many rows, drawn at random."""
    chosen = np.zeros(len(rows), dtype=bool)
    chosen[feed.random.choice(len(rows), count, replace=False)] = True
    return pd.Series(chosen, index=rows.index)
