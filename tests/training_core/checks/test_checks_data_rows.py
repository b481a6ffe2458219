"""Rows that do not stay themselves, labels among the inputs, fits on other rows: each is found."""

from __future__ import annotations

from typing import Any, Self

import check_data_samples as samples
import check_data_texts as words
import numpy as np
import pandas as pd
import pytest
from check_data_samples import (
    NUMBERS,
    Houses,
    Prices,
    Shapes,
    images,
    look,
    table,
    using,
)

from training_core.checks.data import (
    FittedOnTrainRows,
    LabelIsNoInput,
    RowsStayThemselves,
)
from training_core.tabular import TabularPreprocessor
from training_core.task import Arrays, Preprocessor, Task


class _BatchStatistics(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        arrays = super().transform(frame)
        arrays["numbers"][:, 1] -= arrays["numbers"][:, 1].mean()
        return arrays


class _Sorted(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        return super().transform(frame.sort_values("age"))


class _JoinedByIndex(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        ages = frame["age"].reset_index(drop=True)
        return super().transform(frame.assign(age=ages.reindex(frame.index)))


class _Scaling(TabularPreprocessor):
    """In place: the second call finds scaled numbers."""

    def transform(self, frame: pd.DataFrame) -> Arrays:
        frame["area"] = frame["area"] / 100
        return super().transform(frame)


class _Chance(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        arrays = super().transform(frame)
        arrays["numbers"][np.random.random(len(frame)) < 0.1, 0] = 0
        return arrays


class _Forgetful(TabularPreprocessor):
    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"means": [0.0] * len(self.means)}


class _OnlyInTraining(TabularPreprocessor):
    """Knows the split it was fitted on by its length."""

    rows = 0

    def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
        self.rows = len(train)
        return super().fit(train)

    def transform(self, frame: pd.DataFrame) -> Arrays:
        arrays = super().transform(frame)
        if len(frame) != self.rows:
            arrays["numbers"] *= 50
        return arrays


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (_BatchStatistics, "'age' (numbers[:, 1])"),
        (_Sorted, "in another order"),
        (_JoinedByIndex, "'age' (numbers[:, 1])"),
        (_Scaling, "asked twice with the same rows, 'area'"),
        (_Chance, "'area'"),
        (_Forgetful, "reloaded from its state"),
        (_OnlyInTraining, "among all rows of their split"),
    ],
)
def test_a_row_that_depends_on_more_than_itself_is_found(
    kind: type[TabularPreprocessor], said: str
) -> None:
    finding = look(RowsStayThemselves, using(kind), table())
    assert finding.verdict == "fail"
    assert said in finding.message


def test_labels_shifted_by_a_row_are_found_and_the_label_named() -> None:
    class Shifted(Houses):
        def target(self, frame: pd.DataFrame) -> np.ndarray[Any, Any]:
            return np.roll(super().target(frame), 1)

    finding = look(RowsStayThemselves, Shifted(), table())
    assert finding.verdict == "fail"
    assert "the target (column dear)" in finding.message


# ---- label_is_no_input


def test_the_label_among_the_columns_is_found() -> None:
    task = using(TabularPreprocessor, numbers=[*NUMBERS, "dear"])
    finding = look(LabelIsNoInput, task, table())
    assert finding.verdict == "fail"
    assert "'dear'" in finding.message


class _Peeking(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        arrays = super().transform(frame)
        if "dear" in frame:
            arrays["numbers"][:, 2] += 0.1 * frame["dear"]
        return arrays


def test_a_tensor_that_changes_with_the_label_is_found() -> None:
    finding = look(LabelIsNoInput, using(_Peeking), table())
    assert finding.verdict == "fail"
    assert "'distance' (numbers[:, 2]) changes with the label" in finding.message


@pytest.mark.parametrize(
    ("task", "copied"),
    [(Houses, lambda rows: 3 - rows["dear"]), (Prices, lambda rows: np.log(rows["price"] + 1e5))],
)
def test_the_target_under_another_name_is_found(task: type[Task], copied: Any) -> None:
    rows = table()
    rows["booked"] = copied(rows)
    broken = using(TabularPreprocessor, task, numbers=[*NUMBERS, "booked"])
    finding = look(LabelIsNoInput, broken, rows)
    assert finding.verdict == "fail"
    assert "'booked'" in finding.message


def test_a_column_that_knows_the_target_almost_is_a_warning() -> None:
    rows = table()
    rows["booked"] = rows["price"] + np.random.default_rng(1).normal(0, 5, len(rows))
    broken = using(TabularPreprocessor, Prices, numbers=[*NUMBERS, "booked"])
    finding = look(LabelIsNoInput, broken, rows)
    assert finding.verdict == "warn"
    assert "'booked'" in finding.message


def test_a_language_model_that_is_to_predict_its_own_input_is_found() -> None:
    class Copying(words.Letters):
        def target(self, frame: pd.DataFrame) -> np.ndarray[Any, Any]:
            tokens = words.TextPreprocessor().transform(frame)["tokens"]
            return np.where(tokens == 0, -100, tokens)

    finding = look(LabelIsNoInput, Copying(), words.texts())
    assert finding.verdict == "fail"
    assert "the input at that position" in finding.message


# ---- fitted_on_train_rows


@pytest.mark.parametrize("seed", [0, 9])
def test_statistics_of_all_rows_are_found(seed: int) -> None:
    """With the very rows (seed 0), and with others of the kind."""
    everything = table(400, seed=seed)

    class OfAllRows(TabularPreprocessor):
        def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
            return super().fit(everything)

    finding = look(FittedOnTrainRows, using(OfAllRows), table())
    assert finding.verdict == "fail"
    assert "means[0]" in finding.message
    assert ("mean of 'area' of train and validation" in finding.message) == (seed == 0)


def test_a_fit_that_writes_to_its_rows_is_found() -> None:
    class Writing(TabularPreprocessor):
        def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
            train["area"] = train["area"] / 10
            return super().fit(train)

    finding = look(FittedOnTrainRows, using(Writing), table())
    assert finding.verdict == "fail"
    assert "area" in finding.message


def test_constants_that_somebody_wrote_down_are_no_leak() -> None:
    class Constants(samples.ImagePreprocessor):
        def fit(self, train: pd.DataFrame) -> Self:
            self.mean, self.deviation = 0.1307, 1 / 3.25
            return self

    class Task(Shapes):
        def preprocessor(self) -> Preprocessor:
            return Constants()

    assert look(FittedOnTrainRows, Task(), images()).verdict == "pass"
