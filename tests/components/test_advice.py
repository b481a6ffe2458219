"""The advice: it retrains where one thing shows that it pays, and waits only where all is known."""

from __future__ import annotations

import pytest

from components.common.advice import (
    Advice,
    Estimate,
    Kept,
    Lost,
    Waiting,
    advise,
    expected_gain,
    moves_of,
    waiting_of,
)
from components.common.data_figures import Drift, Finding, ValidateFigures

STEADY: list[str] = []


def estimate(mean: float, half: float) -> Estimate:
    return Estimate(mean=mean, low=mean - half, high=mean + half)


def kept(now: float, *, half: float = 0.01) -> Kept:
    promised = estimate(0.50, 0.01)
    now_ = estimate(now, half)
    return Kept(metric="log_loss", promised=promised, now=now_, rows=1500, clusters=30)


def costs(mean: float, deviation: float = 0.001) -> Waiting:
    return Waiting(months=2.0, mean=2 * mean, deviation=deviation, periods=8, alike=True)


def advice(
    *, moved: list[str] | None = STEADY, kept: Kept | None = None, waiting: Waiting | None = None
) -> Advice:
    return advise(moved=moved, kept=kept, waiting=waiting, worth=0.005)


def test_nothing_known_cannot_be_said_and_retrains() -> None:
    found = advice(moved=None)
    assert (found.advice, found.retrain, found.gain) == ("cannot say", True, None)
    assert found.reasons == []
    assert len(found.unknown) == 3


def test_all_is_known_and_steady_waits_and_says_why() -> None:
    found = advice(kept=kept(0.501), waiting=costs(0.001))
    assert (found.advice, found.retrain, found.unknown) == ("wait", False, [])
    assert found.gain is not None
    assert found.gain.mean == pytest.approx(0.002)
    assert "no drift finding" in found.reasons[0]
    assert "0.0010 worse (-0.0131 to +0.0151), which may be chance" in found.reasons[1]
    assert "not above the 0.005" in found.reasons[2]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"moved": ["number moved by 0.4"], "kept": kept(0.50)}, "number moved by 0.4"),
        ({"kept": kept(0.56)}, "0.0600 worse"),
        ({"kept": kept(0.50), "waiting": costs(0.01)}, "above the 0.005"),
    ],
)
def test_one_thing_that_shows_it_is_enough_and_is_said_first(
    given: dict[str, object], words: str
) -> None:
    found = advice(**given)  # type: ignore[arg-type]
    assert (found.advice, found.retrain) == ("retrain", True)
    assert words in found.reasons[0]


@pytest.mark.parametrize(
    "given",
    [
        {"moved": None, "kept": kept(0.50), "waiting": costs(0.0)},
        {"kept": None, "waiting": costs(0.0)},
        {"kept": kept(0.508)},  # worse by more than a training is worth, and it may be chance
        {"kept": kept(0.50), "waiting": costs(0.01, deviation=0.05)},  # worth it, or chance
    ],
)
def test_one_thing_that_is_missing_or_open_retrains(given: dict[str, object]) -> None:
    found = advice(**given)  # type: ignore[arg-type]
    assert (found.advice, found.retrain) == ("cannot say", True)


def test_without_a_backtest_the_newest_labels_decide_and_the_gap_is_named() -> None:
    found = advice(kept=kept(0.50))
    assert (found.advice, found.gain) == ("wait", None)
    assert "evertrain backtest" in found.unknown[0]


def test_waiting_is_summed_up_from_models_about_as_old_each_period_once() -> None:
    lost = [
        Lost("may", 1.0, 0.010), Lost("may", 1.4, 0.020), Lost("june", 1.0, 0.005),
        Lost("june", 6.0, 0.5), Lost("july", 0.5, 0.5),
    ]  # fmt: skip
    found = waiting_of(lost, 1.0)
    assert found is not None
    assert (found.mean, found.periods, found.alike) == (pytest.approx(0.01), 2, True)
    assert found.deviation == pytest.approx(0.00707107, rel=1e-5)


def test_waiting_longer_than_was_ever_seen_is_scaled_and_said_to_be() -> None:
    lost = [Lost("may", 1.0, 0.010), Lost("june", 2.0, 0.010)]
    found = waiting_of(lost, 10.0)
    assert found is not None
    assert (found.mean, found.alike) == (pytest.approx(0.075), False)
    said = advice(kept=kept(0.50), waiting=found)
    assert any("models of other ages, scaled" in reason for reason in said.reasons)


def test_waiting_of_one_period_or_of_no_time_is_not_known() -> None:
    one = [Lost("may", 1.0, 0.010), Lost("may", 2.0, 0.010)]
    assert waiting_of(one, 1.0) is None
    assert waiting_of([*one, Lost("june", 1.0, 0.0)], 0.0) is None


def test_the_interval_of_the_gain_is_that_of_student() -> None:
    waiting = Waiting(months=2.0, mean=0.02, deviation=0.04, periods=4, alike=True)
    found = expected_gain(waiting, confidence=0.95)
    assert found.mean == 0.02
    assert found.high - found.mean == pytest.approx(3.182446 * 0.04 / 2, rel=1e-6)


def test_what_moved_is_what_the_findings_of_drift_say() -> None:
    drift = Drift(
        reference="the data of champion 1", rows_now=1, rows_before=1, columns=[], label_now=None,
        label_before=None, classifier_auc=None, classifier_columns=[],
    )  # fmt: skip

    def finding(check: str) -> Finding:
        return Finding(
            check=check,  # type: ignore[arg-type]
            column="", level="warn", measured=None, limit=None, message=f"{check} it is",
        )  # fmt: skip

    def figures(*checks: str, compared: bool = True) -> ValidateFigures:
        return ValidateFigures(
            rows=1, new_rows=1, quarantined={}, quarantine="", expectations=[], warnings=0,
            columns=[], drift=[drift] if compared else [], findings=[finding(c) for c in checks],
        )  # fmt: skip

    assert moves_of(None) is None
    assert moves_of(figures(compared=False)) is None
    assert moves_of(figures("leak")) == []
    assert moves_of(figures("leak", "joint_shift")) == ["joint_shift it is"]
