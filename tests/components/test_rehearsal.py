"""A rehearsal: the recorded rows come back as they were, and nothing is timed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from components.common.predictions import as_columns
from components.common.rehearsal import recorded
from components.common.smoke import smoke_test
from tests.sample_packages.writing import written


def test_it_is_scored_and_not_timed(tmp_path: Path) -> None:
    package = written(tmp_path, "regression")
    seen = smoke_test(package.folder, package.rows, package.expected, measure=False)
    assert seen.outcome == "pass", seen.message
    assert (seen.rows, seen.latency_ms) == (len(package.rows), None)
    assert "ms a row" not in seen.message


@pytest.mark.parametrize("shape", [(5,), (5, 12), (5, 3, 4)])
def test_predictions_of_every_kind_come_back(tmp_path: Path, shape: tuple[int, ...]) -> None:
    predictions = np.random.default_rng(0).random(shape)
    rows = pd.DataFrame({"number": np.arange(5.0), "prediction_of_others": np.ones(5)})
    both = pd.concat([rows, as_columns({"prediction": predictions})], axis=1)
    both.to_parquet(tmp_path / "rows.parquet")
    raw, expected = recorded(tmp_path / "rows.parquet")
    assert list(raw.columns) == ["number", "prediction_of_others"]
    assert np.array_equal(expected, predictions)
