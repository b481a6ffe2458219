"""The user's own rule: asked without the label, and held to what the task's kind predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from baseline_samples import AVERAGES, Bought, BoughtAndWide, Price, Size, ground, rows

from components.train_baseline.rule import Rule
from training_core.errors import ConfigurationError
from training_core.task import Task


def with_rule(kind: type[Task], answer: Any) -> Task:
    """A task whose rule is `answer(frame)`."""
    made: Task = type(kind.__name__, (kind,), {"rule": lambda self, frame: answer(frame)})()
    return made


@pytest.mark.parametrize("kind", [Bought, Size, BoughtAndWide, Price])
def test_a_sound_rule_predicts_each_row_of_each_part(kind: type[Task]) -> None:
    task = kind()
    found = Rule().fit(ground(task))
    assert found is not None
    for part, count, seed in (("validation", 200, 1), ("holdout", 300, 2)):
        assert np.array_equal(found[part], task.rule(rows(count, seed=seed)))


def test_the_rule_never_sees_what_is_to_be_predicted_and_cannot_change_the_rows() -> None:
    seen: list[list[str]] = []

    def greedy(frame: pd.DataFrame) -> Any:
        seen.append(list(frame))
        frame["height"] = 0.0
        return np.full((len(frame), 2), 0.5)

    asked = ground(with_rule(BoughtAndWide, greedy))
    Rule().fit(asked)
    assert all("bought" not in columns and "wide" not in columns for columns in seen)
    assert len(seen) == 2
    assert (asked.scored["holdout"]["height"] > 0).all()


def test_yes_and_no_and_a_series_are_predictions_too() -> None:
    found = Rule().fit(ground(with_rule(Bought, lambda frame: frame["height"] > 170)))
    assert found is not None
    assert found["holdout"].dtype == np.float64
    assert set(found["holdout"]) == {0.0, 1.0}


def test_a_rule_that_answers_none_is_no_rule() -> None:
    assert Rule().fit(ground(with_rule(Bought, lambda frame: None))) is None
    sometimes = with_rule(Bought, lambda frame: None if len(frame) == 200 else np.zeros(300))
    with pytest.raises(ConfigurationError, match="None for the validation rows"):
        Rule().fit(ground(sometimes))


def spoilt(values: Any, place: Any, value: float) -> Any:
    changed = np.array(values, dtype=np.float64)
    changed[place] = value
    return changed


@pytest.mark.parametrize(
    ("kind", "answer", "words"),
    [
        (Bought, lambda f: f["bought"], ["KeyError", "bought", "validation rows"]),
        (Bought, lambda f: ["late"] * len(f), ["not answer with numbers"]),
        (Bought, lambda f: 0.5, ["shape []", "[200]", "a number for each of 200 rows"]),
        (Bought, lambda f: np.zeros((len(f), 1)), ["shape [200, 1]", "[200] is needed"]),
        (Bought, lambda f: np.zeros(7), ["shape [7]"]),
        (Bought, lambda f: spoilt(np.zeros(len(f)), 3, np.nan), ["1 of 200", "row 3", "nan"]),
        (Bought, lambda f: f["height"], ["200 of 200", "row 0", "no probability, 0 to 1"]),
        (Size, lambda f: np.full((len(f), 3), 1 / 3), ["[200, 4]", "4 numbers"]),
        (Size, lambda f: np.full((len(f), 4), 0.5), ["2 is the sum", "not 1"]),
        (BoughtAndWide, lambda f: spoilt(np.zeros((len(f), 2)), (5, 1), -1), ["row 5", "-1"]),
        (Price, lambda f: spoilt(f["height"], slice(2, 4), np.inf), ["2 of 200", "row 2", "inf"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_rule_is_named(
    kind: type[Task], answer: Any, words: list[str]
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Rule().fit(ground(with_rule(kind, answer)))
    assert refused.value.what.startswith(f"{kind.__name__}.rule ")
    for word in words:
        assert word in refused.value.what
    assert refused.value.hint


def test_a_price_may_be_any_number() -> None:
    assert Rule().fit(ground(with_rule(Price, lambda f: -1e9 * np.ones(len(f))))) is not None
    assert AVERAGES  # what the sound rule of two labels goes by
