"""From figures to a verdict: nothing but passes promotes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from components.common.decision_figures import Comparison, Gate, SliceFigure, SmokeFigures
from components.common.decision_settings import BASELINES, DecisionSettings
from components.common.resampling import Interval
from components.evaluate_model.gates import (
    baseline_gate,
    calibration_gate,
    champion_gate,
    decide,
    floor_gates,
    package_gates,
    slice_gate,
)


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
    beaten = baseline_gate(against("prior", low, high), settings(margin=0.5), 0.95)
    assert beaten.outcome == outcome
    assert champion_gate(against("champion", low, high), settings(), 0.95).outcome == outcome


@pytest.mark.parametrize("name", BASELINES)
def test_each_baseline_can_be_one_that_must_be_beaten(name: str) -> None:
    gate = baseline_gate(against(name, 0.1, 0.2), settings(must_beat=[name]), 0.95)
    assert gate.outcome == "pass"
    assert gate.name.startswith("baseline: the ")


def test_the_margin_is_what_the_champion_may_be_better_by() -> None:
    found = [
        champion_gate(against("champion", low, 0.1), settings(margin=0.05), 0.95).outcome
        for low in (-0.049, -0.051)
    ]
    assert found == ["pass", "unsure"]


def test_floors_hold_back_and_say_both_figures() -> None:
    rule = settings(floors={"log_loss": 0.3}, minimum_auc=0.8)
    scores = {"log_loss": 0.31, "auc": 0.79}
    gates = floor_gates(scores, rule, kind="binary")
    assert [g.outcome for g in gates] == ["fail", "fail"]
    assert "0.3100" in gates[0].message
    assert "0.3" in gates[0].threshold


def test_a_score_that_is_no_number_fails_its_floor() -> None:
    rule = settings(floors={"log_loss": 0.3}, minimum_auc=0.8)
    gates = floor_gates({"log_loss": math.nan, "auc": math.nan}, rule, kind="binary")
    assert [g.outcome for g in gates] == ["fail", "fail"]


def test_a_score_that_is_missing_holds_back_and_is_no_failure() -> None:
    gates = floor_gates({}, settings(floors={"log_loss": 0.3}), kind="binary")
    assert [g.outcome for g in gates] == ["skipped", "skipped"]
    assert decide(gates)[0] == "inconclusive"


@pytest.mark.parametrize(("value", "outcome"), [(0.7, "fail"), (0.8, "pass"), (0.9, "pass")])
def test_a_floor_of_what_is_better_higher_is_the_smallest(value: float, outcome: str) -> None:
    gate = floor_gates({"f1": value}, settings(floors={"f1": 0.8}), kind="multiclass")[0]
    assert gate.outcome == outcome
    assert (gate.value, gate.limit, gate.unit) == (value, 0.8, "f1")


def test_numbers_of_a_gate_are_data() -> None:
    gate = champion_gate(against("champion", -0.1, 0.2), settings(margin=0.05), 0.99)
    assert (gate.kind, gate.low, gate.high, gate.limit) == ("champion", -0.1, 0.2, -0.05)
    assert "99% interval" in gate.message
    endless = champion_gate(against("champion", -math.inf, math.inf), settings(), 0.95)
    assert (endless.low, endless.high) == (None, None)


def part(outcome: Any, low: float, high: float) -> SliceFigure:
    return SliceFigure(
        words=f"carrier = {outcome}", source="settings", rows=100, clusters=7, challenger=0.5,
        champion=0.4, difference=(low + high) / 2, low=low, high=high, margin=0.02,
        outcome=outcome,
    )  # fmt: skip


def test_one_slice_that_is_shown_to_be_worse_holds_back_all() -> None:
    parts = [part("pass", -0.01, 0.1), part("fail", -0.3, -0.1), part("unsure", -0.3, 0.2)]
    gate = slice_gate(parts, settings())
    assert gate is not None
    assert gate.outcome == "fail"
    assert "carrier = fail (100 rows)" in gate.message


def test_slices_of_which_nothing_is_shown_do_not_hold_back_and_are_counted() -> None:
    gate = slice_gate([part("pass", -0.01, 0.1), part("unsure", -0.3, 0.2)], settings())
    assert gate is not None
    assert gate.outcome == "pass"
    assert "2 were judged, of 1 it cannot be told" in gate.message


def test_without_a_champion_slices_are_no_gate() -> None:
    assert slice_gate([part("skipped", -0.1, 0.1)], settings()) is None


@pytest.mark.parametrize(
    ("low", "high", "outcome"), [(0.01, 0.04, "pass"), (0.01, 0.06, "unsure"), (0.06, 0.09, "fail")]
)
def test_calibration_has_a_limit_where_one_is_set(low: float, high: float, outcome: str) -> None:
    found = Interval((low + high) / 2, low, high, 7)
    gate = calibration_gate(found, settings(maximum_calibration_error=0.05))
    assert gate is not None
    assert gate.outcome == outcome
    assert calibration_gate(found, settings()) is None


def test_a_limit_of_what_is_not_there_holds_back() -> None:
    gate = calibration_gate(None, settings(maximum_calibration_error=0.05))
    assert gate is not None
    assert gate.outcome == "skipped"
    assert package_gates(None, settings())[0].outcome == "skipped"


def test_a_package_that_does_not_work_is_large_or_slow_holds_back() -> None:
    rule = settings(maximum_size_mb=1, maximum_latency_ms=2)
    worked = SmokeFigures(outcome="pass", message="", size_mb=3, latency_ms=1)
    assert [g.outcome for g in package_gates(worked, rule)] == ["pass", "fail", "pass"]
    broken = SmokeFigures(outcome="fail", message="it did not load")
    assert [g.outcome for g in package_gates(broken, rule)] == ["fail", "skipped", "skipped"]
    assert decide(package_gates(broken, rule)) == (
        "hold", ["it did not load", "the package's size was not measured",
                 "the time of one row was not measured"],
    )  # fmt: skip
