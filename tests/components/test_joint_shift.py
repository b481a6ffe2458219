"""Shifts that no single column shows, told by a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from profile_rows import LABEL, SETTINGS, make_rows, view_of

from components.validate_data.joint_shift import joint_shift, joint_shift_findings, sample_rows


def pairs(first_day: int, days: int) -> pd.DataFrame:
    """Rows in which `twin` goes with `number`."""
    rows = make_rows(first_day, days, a_day=60)
    random = np.random.default_rng(first_day)
    return rows.assign(twin=rows.number + random.normal(0, 0.3, len(rows)))


def sampled(folder: Path, *parts: pd.DataFrame, rows: int = 3000) -> pa.Table:
    with view_of(folder, *parts) as connection:
        return sample_rows(connection, "rows", settings=SETTINGS, rows=rows)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    return sampled(tmp_path_factory.mktemp("before"), pairs(0, 120).drop(columns="warmth"))


def test_a_broken_pair_is_found_and_named(before: pa.Table, tmp_path: Path) -> None:
    now = pairs(120, 40).drop(columns="warmth")
    now["twin"] = now.twin.sample(frac=1, random_state=0).to_numpy()
    found = joint_shift(sampled(tmp_path, now), before, label=LABEL)
    assert found is not None
    assert found.auc > 0.75
    assert set(found.columns) == {"number", "twin"}
    assert found.usual is not None
    assert found.usual < 0.65
    (finding,) = joint_shift_findings(found, SETTINGS)
    assert finding.level == "warn"
    assert "number" in finding.message


def test_clean_rows_are_not_told_apart(before: pa.Table, tmp_path: Path) -> None:
    found = joint_shift(
        sampled(tmp_path, pairs(120, 40).drop(columns="warmth")), before, label=LABEL
    )
    assert found is not None
    assert found.auc < 0.65
    assert joint_shift_findings(found, SETTINGS) == []


def test_label_time_and_key_are_left_out(before: pa.Table, tmp_path: Path) -> None:
    now = pairs(120, 40).drop(columns="warmth").assign(bought=1.0)
    table = sampled(tmp_path, now)
    assert not {"id", "when"} & set(table.column_names)
    found = joint_shift(table, before, label=LABEL)
    assert found is not None
    assert found.auc < 0.65


def test_a_sample_is_the_same_in_any_order(tmp_path: Path) -> None:
    rows = pairs(0, 60)
    mixed = rows.sample(frac=1, random_state=1)
    one = sampled(tmp_path / "one", rows, rows=500)
    other = sampled(tmp_path / "other", mixed[:700], mixed[700:], rows=500)
    assert one.equals(other)
    assert 420 < len(one) < 580


def test_too_few_rows_say_nothing(before: pa.Table, tmp_path: Path) -> None:
    assert joint_shift(sampled(tmp_path, pairs(120, 2)), before, label=LABEL) is None
    assert joint_shift_findings(None, SETTINGS) == []
