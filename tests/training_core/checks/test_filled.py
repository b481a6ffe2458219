"""Numbers that stand for a class are told from numbers that mean something."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from check_data_samples import Houses, Shapes, images, look, table

from training_core.checks.data import LabelIsNoInput
from training_core.checks.data.filled import filled_by_class
from training_core.checks.subject import Subject

ROWS = table(1_500)
MISSING = pd.Series(np.random.default_rng(1).random(len(ROWS)) < 0.1)


def _by_class(how: str) -> pd.DataFrame:
    known = ROWS["area"].mask(MISSING)
    return ROWS.assign(area=known.fillna(known.groupby(ROWS["dear"]).transform(how)))


@pytest.mark.parametrize("how", ["mean", "median"])
def test_nulls_filled_with_what_their_class_has_are_found(how: str) -> None:
    found = filled_by_class(Subject(Houses(), _by_class(how)))
    assert found is not None
    assert found.column == "area"
    assert len(found.values) == 2
    assert 0.05 < found.share < 0.15


def test_the_check_names_the_column_and_the_values() -> None:
    finding = look(LabelIsNoInput, Houses(), _by_class("mean"))
    assert finding.verdict == "fail"
    assert "values of 'area'" in finding.message


_DEAR = ROWS["dear"] == 1
_HEAPED = np.where(MISSING, ROWS["area"].round(-1), ROWS["area"])


@pytest.mark.parametrize(
    "area",
    [
        ROWS["area"],
        ROWS["area"].mask(MISSING),
        ROWS["area"].mask(MISSING, ROWS["area"].mean()),
        ROWS["area"].mask(MISSING & _DEAR, 0.0),
        ROWS["area"].mask(MISSING & _DEAR, 0.0).mask(MISSING & ~_DEAR, 999.0),
        ROWS["area"].round(),
        ROWS["area"].round(-1),
        pd.Series(_HEAPED),
    ],
    ids=[
        "as it is", "nulls", "one mean", "zeros of one class", "two marks", "rounded", "tens",
        "heaped",
    ],
)  # fmt: skip
def test_values_that_repeat_for_another_reason_are_not(area: pd.Series) -> None:
    assert filled_by_class(Subject(Houses(), ROWS.assign(area=area))) is None


def test_a_task_whose_columns_are_no_numbers_has_none() -> None:
    assert filled_by_class(Subject(Shapes(), images(60))) is None
