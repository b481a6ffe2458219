"""split_data: sides that stay, time that is proved, overlaps that stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from components.common.project import open_project
from components.common.settings import ProjectSettings
from components.split_data.step import divide, prove_apart, seen_by_training
from tests.small_project.make_data import month
from training_core.errors import StoppedByGate


@pytest.fixture
def by_time(fresh_project: Path) -> ProjectSettings:
    return open_project(fresh_project).settings


@pytest.fixture
def by_hash(fresh_project: Path) -> ProjectSettings:
    changes = ["split={by: hash, holdout: 0.2, validation: 0.1}"]
    return open_project(fresh_project, overrides=changes).settings


def parts_of(rows: pd.DataFrame, settings: ProjectSettings) -> dict[str, Any]:
    sides = divide(rows, settings)
    return {part: rows[sides == part] for part in ("train", "validation", "holdout")}


def test_by_hash_a_row_keeps_its_side_when_rows_are_added(by_hash: ProjectSettings) -> None:
    before = month(1)
    after = pd.concat([month(2), before, month(3)], ignore_index=True).sample(frac=1)
    sides = dict(zip(before["id"], divide(before, by_hash), strict=True))
    later = dict(zip(after["id"], divide(after, by_hash), strict=True))
    assert {key: later[key] for key in sides} == sides
    shares = pd.Series(list(later.values())).value_counts(normalize=True)
    assert shares["holdout"] == pytest.approx(0.2, abs=0.03)  # 4,500 rows: 5 standard errors
    assert shares["validation"] == pytest.approx(0.1, abs=0.025)


def test_by_time_whole_days_follow_one_another(by_time: ProjectSettings) -> None:
    parts = parts_of(month(1), by_time)
    days = {name: part["when"].dt.day for name, part in parts.items()}
    assert (days["train"].min(), days["train"].max()) == (1, 17)
    assert (days["validation"].min(), days["validation"].max()) == (18, 24)
    assert (days["holdout"].min(), days["holdout"].max()) == (25, 31)
    proof = prove_apart(parts, by_time)
    assert len(proof) == 6
    assert any("train ends before holdout begins" in sentence for sentence in proof)


def test_parts_that_are_not_in_order_of_time_stop_the_run(by_time: ProjectSettings) -> None:
    parts = parts_of(month(1), by_time)
    parts["train"], parts["holdout"] = parts["holdout"], parts["train"]
    with pytest.raises(StoppedByGate, match="after validation begins"):
        prove_apart(parts, by_time)


def test_a_row_in_two_parts_stops_the_run_and_is_named(by_hash: ProjectSettings) -> None:
    parts = parts_of(month(1), by_hash)
    stray = parts["train"].head(1)
    parts["holdout"] = pd.concat([parts["holdout"], stray])
    with pytest.raises(StoppedByGate, match="1 rows are in train and in holdout") as stopped:
        prove_apart(parts, by_hash)
    assert str(stray["id"].iloc[0]) in stopped.value.what


def test_too_few_days_stop_the_run(by_time: ProjectSettings) -> None:
    with pytest.raises(StoppedByGate, match="the train part is empty"):
        divide(month(1).head(14 * 50), by_time)


def test_what_training_has_seen_ends_with_validation(
    by_time: ProjectSettings, by_hash: ProjectSettings
) -> None:
    seen = seen_by_training(parts_of(month(1), by_time), by_time)
    assert seen["by"] == "time"
    assert seen["until"].startswith("2025-01-24T23:")
    same = seen_by_training(parts_of(month(1), by_hash), by_hash)
    assert same == seen_by_training(parts_of(month(2), by_hash), by_hash)
