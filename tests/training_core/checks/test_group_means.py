"""Means of labels over a group of the very rows are told from those of other rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from check_data_samples import NUMBERS, Houses, Prices, look, table, using

from training_core.checks.data import LabelIsNoInput
from training_core.checks.data.group_means import group_mean
from training_core.checks.subject import Subject
from training_core.tabular import TabularPreprocessor
from training_core.task import Task

RANDOM = np.random.default_rng(2)
ROWS = table().assign(street=[f"street {i}" for i in RANDOM.integers(0, 60, 400)])


def _task(kind: type[Task] = Houses) -> Task:
    return using(TabularPreprocessor, kind, numbers=[*NUMBERS, "told"])


def _told(values: object) -> pd.DataFrame:
    return ROWS.assign(told=values)


def _over_streets(label: str, how: str) -> pd.Series:
    return ROWS.groupby("street")[label].transform(how)


@pytest.mark.parametrize(
    ("kind", "label", "how"),
    [(Houses, "dear", "mean"), (Houses, "dear", "sum"), (Prices, "price", "mean")],
)
def test_a_mean_or_a_sum_over_all_rows_of_a_group_is_found(
    kind: type[Task], label: str, how: str
) -> None:
    found = group_mean(Subject(_task(kind), _told(_over_streets(label, how))))
    assert found is not None
    assert (found.column, found.key) == ("told", "street")
    assert found.share > 0.9


def test_the_check_names_the_feature_and_the_group() -> None:
    finding = look(LabelIsNoInput, _task(), _told(_over_streets("dear", "mean")))
    assert finding.verdict == "fail"
    assert "'told' is the mean or the sum" in finding.message
    assert "'street'" in finding.message


def _earlier(dear: pd.Series) -> pd.Series:
    return dear.shift().expanding().mean()


def _others(dear: pd.Series) -> pd.Series:
    return (dear.sum() - dear) / max(1, len(dear) - 1)


_STREETS = pd.Series(ROWS["street"].unique())
_LAST_YEAR = ROWS["street"].map(dict(zip(_STREETS, RANDOM.random(len(_STREETS)), strict=True)))
_FLOORS = ROWS["street"].map(dict(zip(_STREETS, RANDOM.integers(0, 6, len(_STREETS)), strict=True)))


@pytest.mark.parametrize(
    "values",
    [
        ROWS.groupby("street")["dear"].transform(_earlier).fillna(0.5),
        ROWS.groupby("street")["dear"].transform(_others),
        _LAST_YEAR,
        _FLOORS,
        ROWS.groupby("street")["dear"].transform("size"),
        ROWS.groupby("street")["area"].transform("mean"),
        np.full(len(ROWS), ROWS["dear"].mean()),
    ],
    ids=["earlier rows", "other rows", "last year's", "floors", "sizes", "another column", "one"],
)
def test_what_holds_no_rows_own_label_is_not(values: object) -> None:
    assert group_mean(Subject(_task(), _told(values))) is None


def test_a_count_that_meets_the_sum_of_labels_by_luck_is_not() -> None:
    """Groups of two with one yes: their sum is 1, as many things are."""
    rows = table().sort_values("dear", kind="stable").reset_index(drop=True)
    half = np.arange(len(rows)) % (len(rows) // 2)
    bells = RANDOM.choice([1, 2], len(rows) // 2, p=[0.9, 0.1])
    rows = rows.assign(street=[f"street {i}" for i in half], told=bells[half])
    assert group_mean(Subject(_task(), rows)) is None
