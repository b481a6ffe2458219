"""Ids that went through float32 are told from bins, hashes and rare values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from check_data_samples import Houses, look, table

from training_core.checks.data import InputsBeforeNetwork
from training_core.checks.data.problem import Problem
from training_core.checks.data.singles import of_singles
from training_core.checks.subject import Subject
from training_core.tabular import TabularPreprocessor
from training_core.task import Arrays, Preprocessor, Task

RANDOM = np.random.default_rng(1)
ROWS, IDS = table(800), 40
PICKED = RANDOM.integers(0, IDS, len(ROWS))
NEAR = 700_000_000 + 16 * np.arange(IDS)  # four of them are one number of float32


class _By(TabularPreprocessor):
    """The owner's index is that of what `change` makes of the id."""

    def __init__(self, change: Any) -> None:
        super().__init__(categories=["kind"], numbers=["area"])
        self.change, self.known = change, np.zeros(0)

    @property
    def columns(self) -> list[str]:
        return [*super().columns, "owner"]

    def fit(self, train: pd.DataFrame) -> _By:
        super().fit(train)
        self.known = np.unique(self.change(train["owner"].to_numpy()))
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        made = super().transform(frame)
        index = np.searchsorted(self.known, self.change(frame["owner"].to_numpy()))
        return {**made, "owner": np.asarray(index, dtype=np.int64)}


def _task(change: Any) -> Task:
    class Owned(Houses):
        def preprocessor(self) -> Preprocessor:
            return _By(change)

    return Owned()


def _rows(ids: Any) -> pd.DataFrame:
    return ROWS.assign(owner=np.asarray(ids)[PICKED])


def _problems(ids: Any, change: Any) -> list[Problem]:
    return list(of_singles(Subject(_task(change), _rows(ids))))


def _single(ids: Any) -> Any:
    return ids.astype(np.float32)


def test_ids_that_went_through_single_precision_are_found() -> None:
    (problem,) = _problems(NEAR, _single)
    assert problem.fails
    assert "knows them by 64" in problem.message
    finding = look(InputsBeforeNetwork, _task(_single), _rows(NEAR))
    assert finding.verdict == "fail"


@pytest.mark.parametrize(
    ("ids", "change"),
    [
        (NEAR, lambda ids: ids),
        (NEAR, lambda ids: ids // 1_000),
        (NEAR, lambda ids: ids // 64),
        (NEAR, lambda ids: ids // 100),
        (NEAR, lambda ids: ids * 2_654_435_761 % 2**32 % 16),
        (NEAR, lambda ids: ids * 0),
        (NEAR[0] + 1_000_000 * np.arange(IDS), _single),
        (np.arange(IDS), _single),
        (NEAR, lambda ids: ids.astype(np.float64)),
    ],
    ids=[
        "as they are", "thousands", "bins of 64", "hundreds", "hashed", "one", "far apart",
        "small", "double",
    ],
)  # fmt: skip
def test_other_ways_to_an_index_are_not(ids: Any, change: Any) -> None:
    assert _problems(ids, change) == []


def test_rare_ids_and_fractions_say_nothing() -> None:
    rare = ROWS.assign(owner=700_000_000 + np.arange(len(ROWS)))
    assert list(of_singles(Subject(_task(_single), rare))) == []
    assert _problems(NEAR + 0.5, _single) == []
