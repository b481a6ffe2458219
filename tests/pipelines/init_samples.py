"""Data to propose projects from, and a proposal in one call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipelines.init.asking import Asking
from pipelines.init.proposal import Given, Proposal, propose
from pipelines.init.sample import find_source, open_sample
from pipelines.init.start import Written, start

NOW = datetime(2025, 3, 10, tzinfo=UTC)  # ten days after the newest order


def orders(rows: int = 3_000, *, days: int = 60, seed: int = 0) -> pd.DataFrame:
    """Orders of a shop over the days before 1 March 2025, with something of every kind.

    What is bought depends on the price and the country; everything else is there to be judged.
    """
    random = np.random.default_rng(seed)
    first = pd.Timestamp("2025-03-01", tz="UTC") - pd.Timedelta(days=days)
    ordered = first + pd.to_timedelta(np.sort(random.integers(0, days * 24 * 60, rows)), unit="min")
    price = np.round(random.gamma(2, 20, rows), 2)
    country = random.choice(["DE", "FR", "PL"], rows, p=[0.5, 0.3, 0.2])
    logit = 2 - price / 20 + 1.0 * (country == "FR")
    bought = (random.random(rows) < 1 / (1 + np.exp(-logit))).astype(np.int64)
    return pd.DataFrame(
        {
            "order_id": random.permutation(rows) + 10_000,
            "ordered_at": ordered,
            "updated_at": ordered + pd.Timedelta(hours=5),
            "customer_id": random.integers(0, rows // 5, rows),
            "price": price,
            "country": country,
            "weekday": np.asarray(ordered.day_of_week, dtype=np.int64),
            "hour": np.asarray(ordered.hour, dtype=np.int64),
            "returning": random.random(rows) < 0.3,
            "discount": np.where(random.random(rows) < 0.2, np.nan, random.random(rows)),
            "comment": [f"please ring {n}" for n in range(rows)],
            "currency": "EUR",
            "fax": pd.Series([None] * rows, dtype="float64"),
            "refund": np.where(bought == 1, 0.0, price),
            "bought": bought,
        }
    )


def write(folder: Path, frame: pd.DataFrame, *, files: int = 2) -> Path:
    """Write rows as Parquet files, in order; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    edges = np.linspace(0, len(frame), files + 1).astype(int)
    for i in range(files):
        part = frame.iloc[edges[i] : edges[i + 1]]
        part.to_parquet(folder / f"part-{i}.parquet", index=False)
    return folder


@contextmanager
def proposed(folder: Path, *, now: datetime = NOW, **given: Any) -> Iterator[Proposal]:
    """What is proposed for a folder; label `bought` unless another is given."""
    with open_sample(find_source(str(folder))) as sample:
        yield propose(sample, Given(**{"label": "bought", **given}), now=now)


def decided(folder: Path, frame: pd.DataFrame, *, now: datetime = NOW, **given: Any) -> Proposal:
    """What is proposed for some rows."""
    with proposed(write(folder, frame), now=now, **given) as proposal:
        return proposal


def written(data: Path, project: Path, *, asking: Asking | None = None, **given: Any) -> Written:
    """The project that is written for a folder; label `bought` unless another is given."""
    said = Given(**{"label": "bought", **given}, asking=asking or Asking())
    return start(str(data), folder=project, given=said)
