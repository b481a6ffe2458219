"""Clean deliveries: some two hundred rows a day, a file a month, the same on every machine.

What makes them like a real feed: customers who come again, local hours beside UTC (summer time
begins in the third month), a skewed amount, a season, names that are not ASCII, nulls that mean
something, labels that are known two days late.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

Rows = pd.DataFrame
ZONE = "Europe/Berlin"
WEEKDAY, WEEKEND = 220, 160  # rows a day, about
LABEL_DELAY = 2  # days
LATE = -4.0  # the logit of the label where everything is at its mean
# What a carrier adds to it. Features say much of the label here (a model's AUC is 0.97, the best
# column's 0.93): what is wrong with labels can be known only where that is so.
CARRIERS = {
    "Adler": 4.0, "Biene": 2.4, "Dachs": 1.2, "Falke": 0.0, "Hirsch": 0.0, "Luchs": -1.2,
    "Möwe": -2.4, "Wiesel": -4.0,
}  # fmt: skip
DEPOTS = (
    "Aachen", "Augsburg", "Berlin", "Bochum", "Bonn", "Bremen", "Chemnitz", "Dortmund", "Dresden",
    "Düsseldorf", "Duisburg", "Erfurt", "Essen", "Frankfurt", "Freiburg", "Fürth", "Göttingen",
    "Gütersloh", "Halle", "Hamburg", "Hannover", "Jena", "Kassel", "Kiel", "Koblenz", "Köln",
    "Leipzig", "Lübeck", "Mainz", "Mannheim", "München", "Münster", "Nürnberg", "Osnabrück",
    "Potsdam", "Rostock", "Saarbrücken", "Stuttgart", "Würzburg", "Zwickau",
)  # fmt: skip


def clean_month(number: int, seed: int = 0, *, late: float = LATE) -> Rows:
    """Return the rows of a month of 2025, in the order in which they came.

    Args:
        number: 1 to 12.
        seed: Another seed is another, equally clean, feed.
        late: The logit of the label where everything else is at its mean.
    """
    return _month(number, seed, late).copy()


def table_of(rows: Rows) -> pa.Table:
    """Rows as their writer stores them: UTC in microseconds, no index, no trace of pandas."""
    return pa.Table.from_pandas(rows, preserve_index=False).replace_schema_metadata(None)


def local_hours(times: pd.Series[pd.Timestamp]) -> npt.NDArray[np.int64]:
    """The hour that clocks showed where the order was made."""
    return np.asarray(times.dt.tz_convert(ZONE).dt.hour, dtype=np.int64)


@lru_cache(maxsize=16)
def _month(number: int, seed: int, late: float) -> Rows:
    random = np.random.default_rng([seed, number])
    ordered, day = _times(number, random)
    count = len(ordered)
    carrier = random.integers(0, len(CARRIERS), count)
    rows = pd.DataFrame(
        {
            "id": np.arange(count, dtype=np.int64) + number * 1_000_000,
            "customer": random.integers(1, 801, count),
            "ordered": ordered,
            "local_hour": local_hours(ordered),
            "carrier": np.array(list(CARRIERS))[carrier],
            "depot": np.array(DEPOTS)[random.integers(0, len(DEPOTS), count)],
            "shelf": _shelves(count, random),
            "express": random.random(count) < 0.2,
            "items": 1 + random.poisson(1.5, count),
            "amount": random.lognormal(3.6, 0.7, count).round(2),
            "distance": 0.5 + random.gamma(4, 3, count),
            "temperature": _temperatures(number, day, random),
            "weight": random.lognormal(0.5, 0.6, count),
        }
    )
    logit = (
        late + 0.8 * (rows["distance"] - 12.5) - 0.2 * (rows["temperature"] - 8)
        + np.array(list(CARRIERS.values()))[carrier] - 3 * rows["express"]
    )  # fmt: skip
    label = (random.random(count) < 1 / (1 + np.exp(-logit))).astype(np.float64)
    known = day < day.max() + 1 - LABEL_DELAY
    rows["weight"] = rows["weight"].where(random.random(count) >= 0.04)
    return rows.assign(late=label.where(known))


def _times(
    number: int, random: np.random.Generator
) -> tuple[pd.Series[pd.Timestamp], npt.NDArray[np.int64]]:
    """When rows came, in order, and on which day of the month from 0 (UTC)."""
    first = pd.Timestamp(2025, number, 1, tz="UTC")
    dates = [first + pd.Timedelta(days=each) for each in range(first.days_in_month)]
    mean = [WEEKDAY if date.weekday() < 5 else WEEKEND for date in dates]
    day = np.repeat(np.arange(len(dates)), random.poisson(mean))
    # most orders in the afternoon, none lost at midnight: a triangle over the day, in microseconds
    within = (random.triangular(0, 14, 24, len(day)) * 3.6e9).astype(np.int64)
    times = np.sort(day * 86_400_000_000 + within)
    return pd.Series(first.as_unit("us") + pd.to_timedelta(times, unit="us")), day


def _temperatures(
    number: int, day: npt.NDArray[np.int64], random: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Degrees Celsius: a season, days that are alike within, and hours that differ a little."""
    first = pd.Timestamp(2025, number, 1).day_of_year
    days = np.arange(day.max() + 1)
    season = 8 - np.cos(2 * np.pi * (first + days - 20) / 365)
    weather = season + random.normal(0, 2, len(days))
    return (weather[day] + random.normal(0, 3, len(day))).round(1)


def _shelves(count: int, random: np.random.Generator) -> list[str]:
    letters, numbers = random.integers(0, 8, count), random.integers(10, 40, count)
    return [f"{'ABCDEFGH'[i]}-{n}" for i, n in zip(letters, numbers, strict=True)]
