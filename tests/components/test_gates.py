"""From figures to a verdict: nothing but passes promotes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from components.common.decision_figures import Comparison, Gate
from components.common.decision_settings import BASELINES, DecisionSettings
from components.evaluate_model.gates import baseline_gate, champion_gate, decide, floor_gates


def gate(outcome: Any, name: str = "x") -> Gate:
    return Gate(name=name, outcome=outcome, observed="", threshold="", message=f"{name} {outcome}")


def against(name: str, low: float, high: float) -> Comparison:
    return Comparison(
        against=name, difference=(low + high) / 2, low=low, high=high, noise=0, clusters=7
    )


def settings(**values: Any) -> DecisionSettings:
    return DecisionSettings(**{"retraining_noise": 0, **values})


def test_every_mix_of_outcomes_has_the_verdict_of_its_worst() -> None:
    outcomes = ("pass", "fail", "unsure", "skipped")
    for count in (1, 2, 3):
        for mix in itertools.product(outcomes, repeat=count):
            verdict, reasons = decide([gate(outcome) for outcome in mix])
            if "fail" in mix:
                assert verdict == "hold"
            elif set(mix) == {"pass"}:
                assert verdict == "promote"
            else:
                assert verdict == "inconclusive"
            assert reasons


def test_no_gate_at_all_promotes_nothing() -> None:
    assert decide([]) == ("inconclusive", ["no gate could be evaluated"])


def test_a_champion_that_could_not_be_compared_holds_back_what_passed_all_else() -> None:
    verdict, reasons = decide([gate("pass"), gate("skipped", "champion"), gate("pass")])
    assert (verdict, reasons) == ("inconclusive", ["champion skipped"])


def test_the_champion_is_the_first_reason_of_a_promotion() -> None:
    _, reasons = decide([gate("pass", "floor"), gate("pass", "champion")])
    assert reasons[0] == "champion pass"


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (0.001, 0.2, "pass"),
        (0.0, 0.2, "unsure"),
        (-0.1, 0.2, "unsure"),
        (-0.2, 0.0, "fail"),
        (-0.2, -0.1, "fail"),
        (-math.inf, math.inf, "unsure"),
        (math.nan, math.nan, "unsure"),
    ],
)
def test_an_interval_passes_only_wholly_above_nothing(
    low: float, high: float, outcome: str
) -> None:
    assert baseline_gate(against("prior", low, high), settings(margin=0.5)).outcome == outcome
    assert champion_gate(against("champion", low, high), settings()).outcome == outcome


@pytest.mark.parametrize("name", BASELINES)
def test_each_baseline_can_be_one_that_must_be_beaten(name: str) -> None:
    gate = baseline_gate(against(name, 0.1, 0.2), settings(must_beat=[name]))
    assert gate.outcome == "pass"
    assert gate.name.startswith("baseline: the ")


def test_the_margin_is_what_the_champion_may_be_better_by() -> None:
    found = [
        champion_gate(against("champion", low, 0.1), settings(margin=0.05)).outcome
        for low in (-0.049, -0.051)
    ]
    assert found == ["pass", "unsure"]


def test_floors_hold_back_and_say_both_figures() -> None:
    rule = settings(floors={"log_loss": 0.3}, minimum_auc=0.8)
    scores = {"log_loss": 0.31, "auc": 0.79}
    gates = floor_gates(scores, rule)
    assert [g.outcome for g in gates] == ["fail", "fail"]
    assert "0.3100" in gates[0].message
    assert "0.3" in gates[0].threshold


def test_a_score_that_is_no_number_fails_its_floor() -> None:
    rule = settings(floors={"log_loss": 0.3}, minimum_auc=0.8)
    gates = floor_gates({"log_loss": math.nan, "auc": math.nan}, rule)
    assert [g.outcome for g in gates] == ["fail", "fail"]
