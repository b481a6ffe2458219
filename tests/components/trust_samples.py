"""Rows to be trusted or not, and what `find_all` says of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from components.common.data_figures import Finding
from components.common.labels import Label
from components.common.settings import ProjectSettings
from components.common.tables import LocalObject, add_view, open_tables
from components.common.targets import add_label_views
from components.validate_data.drawn import draw
from components.validate_data.take_profile import take_profile
from components.validate_data.trust import find_all

NOW = datetime(2025, 7, 1, tzinfo=UTC)
FEATURES = ("kind", "number", "noise")


def rows(count: int = 6_000, *, seed: int = 0, strength: float = 1.1) -> pd.DataFrame:
    """Honest rows of half a year; `number` ranks the labels at an AUC of about 0.75."""
    random = np.random.default_rng(seed)
    number = random.normal(0, 1, count)
    return pd.DataFrame(
        {
            "id": np.arange(count) + 10_000,
            "when": pd.Timestamp("2025-01-01", tz="UTC")
            + pd.to_timedelta(np.arange(count) * 180 * 86_400 // count, unit="s"),
            "kind": random.choice(["apple", "bread", "cheese"], count),
            "number": number,
            "noise": random.normal(0, 1, count),
            "label": (random.random(count) < 1 / (1 + np.exp(-strength * number))).astype(float),
        }
    )


def target(frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(pd.to_numeric(frame["label"], errors="coerce"), dtype=np.float32)


LABEL = Label("binary", ("label",), target)


def trust(
    data: pd.DataFrame,
    folder: Path,
    *,
    features: tuple[str, ...] = FEATURES,
    **validation: Any,
) -> list[Finding]:
    """Write the rows as Parquet and run all checks of trust on them.

    Labels are not doubted unless that is asked for: it takes longer than all else together.
    """
    levels = {"label_noise": "off", **validation.pop("levels", {})}
    settings = ProjectSettings.model_validate(
        {
            "name": "trust",
            "task": {"path": "task:Task"},
            "data": {"source": "data", "row_key": ["id"], "time_column": "when"},
            "validation": {"levels": levels, **validation},
            "decision": {"retraining_noise": 0.001},
        }
    )
    file = folder / "rows.parquet"
    data.to_parquet(file, index=False)
    with open_tables(settings.data, readable=[folder], scratch=folder / "scratch") as connection:
        add_view(connection, "kept", [LocalObject("rows", file, len(data))])
        rows = add_label_views(connection, LABEL)
        drawn = draw(connection, rows, data=settings.data, label=LABEL)
        profile = take_profile(connection, rows, settings=settings, label=LABEL)
        return find_all(
            connection, drawn, profile, settings=settings, label=LABEL, features=features, now=NOW
        )


def only(findings: list[Finding]) -> Finding:
    (finding,) = findings
    return finding
