"""Rows with a time, and their profiles: what the tests of profiles and of drift share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

from components.common.labels import Label
from components.common.settings import ProjectSettings
from components.common.tables import LocalObject, add_view, open_tables
from components.validate_data.profile import Profile
from components.validate_data.take_profile import take_profile

START = pd.Timestamp("2025-01-01", tz="UTC")


def settings_of(**data: object) -> ProjectSettings:
    return ProjectSettings.model_validate(
        {
            "name": "rows",
            "task": {"path": "task:Task"},
            "data": {"source": "data", "row_key": ["id"], "time_column": "when"} | data,
            "split": {"by": "hash", "holdout": 0.1, "validation": 0.1},
            "decision": {"retraining_noise": 0, "cluster": "row"},
        }
    )


LABEL = Label("binary", ("bought",), lambda frame: frame["bought"].to_numpy())
SETTINGS = settings_of()


def make_rows(first_day: int, days: int, *, a_day: int = 100, seed: int = 0) -> pd.DataFrame:
    """Rows of some days.

    Every day is a little unlike the others (`number`), `warmth` has a year's season and weather of
    some days, `kind` and `number` say something of the label `bought`, `noise` says nothing.
    """
    random = np.random.default_rng([seed, first_day])
    day = np.repeat(np.arange(first_day, first_day + days), a_day)
    count = len(day)
    daily = np.random.default_rng(seed).normal(0, 0.15, 2000)
    weather = np.convolve(np.random.default_rng(seed + 1).normal(0, 4, 2000), np.ones(3), "same")
    season = 10 - 15 * np.cos(2 * np.pi * day / 365)
    kind = random.choice(["apple", "bread", "cheese", "dates"], count, p=[0.4, 0.3, 0.2, 0.1])
    number = random.normal(0, 1, count) + daily[day]
    logit = number + 0.8 * (kind == "apple") - 1
    return pd.DataFrame(
        {
            "id": np.arange(count) + first_day * a_day,
            "when": START + pd.to_timedelta(day * 24 + random.integers(0, 24, count), unit="h"),
            "kind": kind,
            "number": number,
            "warmth": season + weather[day] + random.normal(0, 2, count),
            "noise": random.normal(5, 1, count),
            "member": random.random(count) < 0.3,
            "bought": (random.random(count) < 1 / (1 + np.exp(-logit))).astype(np.float64),
        }
    )


@contextmanager
def view_of(
    folder: Path, *parts: pd.DataFrame, settings: ProjectSettings = SETTINGS
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Write each part as a Parquet file, and give a connection with the view `rows` of them all."""
    folder.mkdir(parents=True, exist_ok=True)
    objects = []
    for number, part in enumerate(parts):
        path = folder / f"{number}.parquet"
        part.to_parquet(path, index=False)
        objects.append(LocalObject(path.name, path, len(part)))
    with open_tables(settings.data, readable=[folder], scratch=folder / "scratch") as connection:
        add_view(connection, "rows", objects)
        yield connection


def profile_of(
    folder: Path,
    *parts: pd.DataFrame,
    edges: Profile | None = None,
    settings: ProjectSettings = SETTINGS,
) -> Profile:
    """The profile of some rows, as it comes back from the object store."""
    with view_of(folder, *parts, settings=settings) as connection:
        found = take_profile(connection, "rows", settings=settings, label=LABEL, edges=edges)
    return Profile.from_json(found.to_json())
