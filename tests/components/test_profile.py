"""The data's profile: what moved, and what knows too much."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from components.validate_data.profile import drift_between, find_leaks, profile_of
from tests.small_project.make_data import month


def profile(rows: pd.DataFrame) -> dict[str, object]:
    """As it comes back from the object store."""
    found: dict[str, object] = json.loads(json.dumps(profile_of(rows)))
    return found


def test_the_same_rows_have_not_moved() -> None:
    drift = drift_between(month(1), profile(month(1)))
    assert {d.column for d in drift} == {"id", "kind", "number", "noise", "bought"}
    assert [d.psi for d in drift] == pytest.approx([0.0] * 5, abs=1e-12)


@pytest.mark.parametrize("column", ["number", "noise"])
def test_a_shifted_number_comes_first(column: str) -> None:
    now = month(1)
    now[column] += 0.6
    first, second, *_ = drift_between(now, profile(month(1)))
    assert first.column == column
    assert first.psi > 0.25
    assert second.psi < 0.01
    assert float(first.now) == pytest.approx(float(first.before) + 0.6, abs=0.01)


def test_a_category_that_is_new_comes_first() -> None:
    now = month(1)
    now.loc[now.index % 4 == 0, "kind"] = "eggs"
    first, *_ = drift_between(now, profile(month(1)))
    assert (first.column, first.psi > 0.25) == ("kind", True)


def test_nulls_before_and_now_are_shown() -> None:
    now = month(1)
    now.loc[now.index % 2 == 0, "number"] = np.nan
    (number,) = [d for d in drift_between(now, profile(month(1))) if d.column == "number"]
    assert number.null_before == 0
    assert number.null_now == pytest.approx(0.5, abs=0.001)


def test_columns_that_know_the_label_are_found_the_strongest_first() -> None:
    rows = month(1)
    rows["copy"] = -rows["bought"]
    rows["text"] = np.where(rows["bought"] > 0, "paid", "left")
    rows["almost"] = rows["bought"] + np.random.default_rng(0).normal(0, 0.4, len(rows))
    leaks = find_leaks(rows, "bought", 0.95)
    assert {leak.column for leak in leaks[:2]} == {"copy", "text"}
    assert leaks[0].auc == pytest.approx(1.0)
    assert leaks[2].column == "almost"
    assert leaks[2].auc < 0.97


def test_honest_columns_are_no_leaks() -> None:
    assert find_leaks(month(1), "bought", 0.95) == []
    strong = {leak.column for leak in find_leaks(month(1), "bought", 0.7)}
    assert strong == {"number"}, "the limit decides, and row numbers and noise know nothing"


def test_a_key_that_is_text_is_no_leak() -> None:
    """Each value is there once, so rates learned on half of the rows say nothing of the others."""
    rows = month(1)
    rows["name"] = [f"row {i}" for i in range(len(rows))]
    assert find_leaks(rows, "bought", 0.7)[0].column == "number"
    assert len(find_leaks(rows, "bought", 0.7)) == 1
