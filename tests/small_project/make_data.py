"""Data of the small project: fifty rows a day, a file a month, the same on every machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

ROWS_A_DAY = 50
KINDS = {"apple": -1.5, "bread": 0.0, "cheese": 0.5, "dates": 1.5}


def month(number: int) -> pd.DataFrame:
    """The rows of a month of 2025; their ids are unique over the year.

    The logit of the label is twice the number plus what the kind adds; `noise` says nothing.
    """
    first = pd.Timestamp(2025, number, 1, tz="UTC")
    days = first.days_in_month
    count = days * ROWS_A_DAY
    random = np.random.default_rng(number)
    kind = random.choice(list(KINDS), count)
    value = random.normal(0, 1, count)
    logit = 2 * value + np.array([KINDS[name] for name in kind])
    return pd.DataFrame(
        {
            "id": np.arange(count, dtype=np.int64) + number * 1_000_000,
            "when": first + pd.to_timedelta(np.arange(count) * 24 * 60 // ROWS_A_DAY, unit="min"),
            "kind": kind,
            "number": value,
            "noise": random.normal(0, 1, count),
            "bought": (random.random(count) < 1 / (1 + np.exp(-logit))).astype(np.float64),
        }
    )


def file_of(folder: Path, number: int) -> Path:
    """Where a month's rows lie."""
    return folder / f"2025-{number:02}.parquet"


def write_months(folder: Path, *numbers: int) -> None:
    """Write months as Parquet files."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        month(number).to_parquet(file_of(folder, number), index=False)
