"""The verdict from plain predictions, for every kind of task: what is better promotes, else not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from components.common.decision_figures import (
    EvaluateFigures,
    NoiseFigure,
    QuestionFigure,
    SmokeFigures,
)
from components.common.decision_settings import DecisionSettings
from components.common.predictions import as_columns, from_columns
from components.common.records import StepRecord
from components.evaluate_model.comparing import Holdout
from components.evaluate_model.judging import judge
from training_core.errors import ConfigurationError
from training_core.task import PADDING

WORKED = SmokeFigures(outcome="pass", message="it works")
ROWS = 1500
MAIN = {
    "binary": "log_loss", "multiclass": "log_loss", "multilabel": "brier",
    "regression": "absolute_error", "sequence": "perplexity",
}  # fmt: skip


def softmax(logits: Any) -> Any:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def truth_and(kind: str, skill: float, *, seed: int = 1) -> tuple[Any, Any]:
    """Labels, and predictions that know them with some skill: 0 knows nothing."""
    truth: Any
    random = np.random.default_rng(0)  # the same labels whatever the skill
    blur = np.random.default_rng(seed)
    if kind == "regression":
        truth = random.normal(50, 10, ROWS).astype(np.float32)
        return truth, 50 + skill * (truth - 50) + blur.normal(0, 1, ROWS)
    if kind == "sequence":
        truth = np.where(random.random((ROWS, 4)) < 0.2, PADDING, random.integers(0, 5, (ROWS, 4)))
        logits = skill * np.eye(5)[np.maximum(truth, 0)] + blur.normal(0, 0.1, (ROWS, 4, 5))
        return truth, softmax(logits)
    if kind == "multiclass":
        truth = random.integers(0, 4, ROWS)
        return truth, softmax(skill * np.eye(4)[truth] + blur.normal(0, 0.1, (ROWS, 4)))
    shape = ROWS if kind == "binary" else (ROWS, 3)
    truth = random.integers(0, 2, shape).astype(np.float32)
    return truth, 1 / (1 + np.exp(-skill * (2 * truth - 1) + blur.normal(0, 0.1, shape)))


def decided(
    kind: str, *, champion: float | None, challenger: float, **more: Any
) -> EvaluateFigures:
    truth, best = truth_and(kind, challenger)
    predictions = {"challenger": best}
    if champion is not None:
        predictions["champion"] = truth_and(kind, champion, seed=2)[1]
    blind = truth_and(kind, 0.0, seed=3)[1]
    predictions |= {"prior": blind, "input_independent": blind}
    settings: dict[str, Any] = {"metric": MAIN[kind], "retraining_noise": 0, "resamples": 300}
    rows = pd.DataFrame({"place": np.arange(ROWS) % 3})
    return judge(
        Holdout(kind, truth, np.arange(ROWS) // 50, rows, ["a", "b"]),  # type: ignore[arg-type]
        predictions,
        settings=DecisionSettings(**settings | more.pop("settings", {})),
        noise=NoiseFigure(deviation=more.pop("noise", 0.0), source="settings"),
        **{"smoke": WORKED, **more},
    )


@pytest.mark.parametrize("kind", MAIN)
def test_of_every_kind_the_better_one_is_promoted_and_the_worse_one_held(kind: str) -> None:
    better = decided(kind, champion=0.5, challenger=0.9)
    assert better.verdict == "promote", better.reasons
    assert better.reasons[0].startswith("the challenger's ")
    worse = decided(kind, champion=0.9, challenger=0.5)
    assert worse.verdict == "hold"
    assert {g.kind for g in worse.gates if g.outcome == "fail"} >= {"champion"}


@pytest.mark.parametrize("kind", MAIN)
def test_of_every_kind_two_that_are_alike_are_told_apart_by_nothing(kind: str) -> None:
    assert decided(kind, champion=0.5, challenger=0.5).verdict != "promote"


@pytest.mark.parametrize("kind", MAIN)
def test_the_figures_survive_their_way_through_json(kind: str) -> None:
    found = decided(kind, champion=0.5, challenger=0.9, settings={"slices": ["place"]})
    again = EvaluateFigures.model_validate_json(found.model_dump_json())
    assert again == found
    assert found.slices
    assert found.intervals["challenger"].keys() == found.metrics["challenger"].keys()
    assert found.directions.keys() >= found.metrics["challenger"].keys()


def test_one_day_says_nothing_and_its_figures_can_be_read_again() -> None:
    truth, predictions = truth_and("binary", 0.9)
    found = judge(
        Holdout("binary", truth, np.zeros(ROWS), pd.DataFrame(), ["no", "yes"]),
        {"challenger": predictions, "prior": predictions, "input_independent": predictions},
        settings=DecisionSettings(retraining_noise=0, resamples=300),
        noise=NoiseFigure(deviation=0.0, source="settings"),
        smoke=WORKED,
    )
    assert found.verdict == "inconclusive"
    recorded = StepRecord(
        step="evaluate_model", run="r", run_key="k", figures=found.model_dump(mode="json")
    )
    text = StepRecord.model_validate_json(recorded.model_dump_json()).figures
    assert EvaluateFigures.model_validate(text).comparisons[0].low == -np.inf


def test_retraining_noise_makes_a_small_gain_one_that_may_be_chance() -> None:
    assert decided("binary", champion=0.5, challenger=0.6).verdict == "promote"
    assert decided("binary", champion=0.5, challenger=0.6, noise=0.5).verdict == "inconclusive"


def test_a_worn_holdout_needs_more_evidence() -> None:
    close = {"champion": 0.5, "challenger": 0.504}
    once = decided("binary", **close)
    worn = QuestionFigure(number=9, uses=9.0, confidence=1 - 0.05 / 81, rows=ROWS)
    often = decided("binary", **close, question=worn)
    widths = [f.comparisons[0].high - f.comparisons[0].low for f in (once, often)]
    assert widths[1] > 1.3 * widths[0]
    assert often.confidence == worn.confidence


def test_cold_start_is_decided_by_floors_and_baselines() -> None:
    first = decided("binary", champion=None, challenger=0.5)
    assert first.verdict == "promote"
    assert {g.kind for g in first.gates} == {"floor", "baseline", "package"}
    useless = decided("binary", champion=None, challenger=0.0)
    assert useless.verdict != "promote"


def test_a_package_that_does_not_work_is_held_however_good_the_model() -> None:
    broken = SmokeFigures(outcome="fail", message="it did not load")
    found = decided("binary", champion=0.5, challenger=2.0, smoke=broken)
    assert (found.verdict, found.reasons[0]) == ("hold", "it did not load")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"metric": "rmse"}, "a binary task has none"),
        ({"floors": {"r2": 0.5}}, "a binary task has none"),
        ({"slices": ["colour"]}, "the column 'colour', which the data lacks"),
    ],
)
def test_what_the_task_or_the_data_lacks_is_refused(settings: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        decided("binary", champion=0.5, challenger=0.9, settings=settings)


@pytest.mark.parametrize("kind", MAIN)
def test_predictions_come_back_from_their_columns(kind: str) -> None:
    _, predictions = truth_and(kind, 0.5)
    found = from_columns(as_columns({"linear": predictions, "prior": predictions * 0.5}))
    assert list(found) == ["linear", "prior"]
    assert np.array_equal(found["linear"], predictions)
