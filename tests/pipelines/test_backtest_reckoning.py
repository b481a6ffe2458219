"""What each policy would have served, and what that is reckoned to have cost."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from components.common.advice import Advice
from components.common.decision_settings import DecisionSettings
from pipelines.backtest.page import headline, render, sentences
from pipelines.backtest.policies import POLICIES, Moment, chosen_policies, follow
from pipelines.backtest.reckoning import MONTH, Reckoned, gains_of, moments_of, reckon
from pipelines.backtest.result import RESULT, BacktestResult, read_results, waiting_in
from pipelines.backtest.schedule import parse_day, periods
from tests.pipelines.backtest_samples import replay_of
from training_core.errors import ConfigurationError

RULE = DecisionSettings(retraining_noise=0.001, resamples=500)
A, B, C = "2013-04-01", "2013-05-01", "2013-06-01"
ALL = list(POLICIES)


def advice(retrain: bool) -> Advice:
    return Advice(
        advice="retrain" if retrain else "wait",
        retrain=retrain, gain=None, worth=0.0, reasons=[], unknown=[],
    )  # fmt: skip


def moment(
    date: str,
    *,
    promoted: bool = True,
    model: bool = True,
    holdout: dict[str, float] | None = None,
    retrain: bool = True,
) -> Moment:
    return Moment(
        date=date, model=model, promoted=promoted, holdout=holdout or {},
        seconds={"snapshot_data": 1, "validate_data": 2, "train_distributed": 10, "report_run": 5},
        advice=lambda champion: advice(retrain),
    )  # fmt: skip


def served(policy: str, *moments: Moment) -> list[str | None]:
    return [choice.served for choice in follow(policy, moments)]


def test_never_keeps_the_first_model_and_newest_always_takes_the_last() -> None:
    moments = (moment(A), moment(B, promoted=False), moment(C))
    assert served("never", *moments) == [A, A, A]
    assert served("newest", *moments) == [A, B, C]


def test_point_takes_what_is_better_on_the_holdout_than_its_own_champion() -> None:
    moments = (
        moment(A),
        moment(B, holdout={A: 0.50, B: 0.51}),
        moment(C, holdout={A: 0.50, B: 0.40, C: 0.49}),  # B, which it does not serve, is better
    )
    assert served("point", *moments) == [A, A, C]


def test_point_holds_where_a_score_is_missing() -> None:
    assert served("point", moment(A), moment(B, holdout={B: 0.1})) == [A, A]


def test_ours_follows_the_pipeline() -> None:
    assert served("ours", moment(A, promoted=False), moment(B), moment(C, promoted=False)) == [
        None, B, B
    ]  # fmt: skip


def test_drift_retrains_where_it_is_not_advised_to_wait_and_pays_for_watching() -> None:
    choices = follow("drift", [moment(A), moment(B, retrain=False), moment(C)])
    assert [choice.served for choice in choices] == [A, A, C]
    assert [choice.trained for choice in choices] == [True, False, True]
    assert [choice.seconds for choice in choices] == [13, 3, 13]


def test_drift_without_an_advice_retrains() -> None:
    silent = Moment(date=B, model=True, promoted=False)
    assert [choice.served for choice in follow("drift", [moment(A), silent])] == [A, B]


def test_a_run_that_left_no_model_costs_its_hours_and_changes_nothing() -> None:
    for policy in ("newest", "point", "ours", "drift"):
        choices = follow(policy, [moment(A), moment(B, model=False)])
        assert [choice.served for choice in choices] == [A, A]
        assert choices[1].seconds == 13
        assert not choices[1].took


def test_never_pays_for_one_training() -> None:
    assert [choice.seconds for choice in follow("never", [moment(A), moment(B)])] == [13, 0]


def test_ours_is_always_among_the_policies_and_an_unknown_one_is_refused() -> None:
    assert chosen_policies([]) == ALL
    assert chosen_policies(["point", "never"]) == ["never", "point", "ours"]
    with pytest.raises(ConfigurationError, match="hint: policies: never, newest, point, ours"):
        chosen_policies(["sometimes"])


def replayed() -> list[dict[str, float]]:
    return [{A: 0.50}, {A: 0.52, B: 0.50}, {A: 0.56, B: 0.48, C: 0.50}]


def reckoned(outcomes: list[str], policies: list[str] = ALL) -> Reckoned:
    return reckon(
        replay_of(replayed(), outcomes=outcomes), policies=policies, metric="log_loss", rule=RULE
    )


def test_the_figures_are_the_means_of_the_rows_that_were_served() -> None:
    found = {p.policy: p for p in reckoned(["promoted", "held", "promoted"]).policies}
    assert found["never"].metric == pytest.approx((0.50 + 0.52 + 0.56) / 3)
    assert found["newest"].metric == pytest.approx((0.50 + 0.50 + 0.50) / 3)
    assert found["ours"].metric == pytest.approx((0.50 + 0.52 + 0.50) / 3)
    assert found["oracle"].metric == pytest.approx((0.50 + 0.50 + 0.48) / 3)
    assert found["ours"].difference == 0
    assert found["newest"].difference == pytest.approx(-0.02 / 3)
    assert found["never"].low is not None
    assert 0 < found["never"].low < 0.02 < (found["never"].high or 0)
    assert found["ours"].regret == pytest.approx(1.52 / 1.48 - 1)
    assert (found["ours"].promotions, found["ours"].trainings) == (2, 3)
    assert found["ours"].hours == pytest.approx(3 * 90 / 3600)  # the report is no training
    assert found["oracle"].hours is None


def test_a_period_without_a_champion_of_every_policy_is_scored_for_none() -> None:
    found = reckoned(["held", "promoted", "promoted"])
    assert [bool(period.metric) for period in found.periods] == [False, True, True]
    assert "no champion yet by ours" in found.notes[0]
    never = found.policies[0]
    assert never.metric == pytest.approx((0.52 + 0.56) / 2)


def test_a_stopped_run_and_a_period_without_labels_are_said() -> None:
    means = [{A: 0.50}, {}, {A: 0.52, C: 0.51}]
    found = reckon(
        replay_of(means, outcomes=["promoted", "stopped", "promoted"]),
        policies=ALL, metric="log_loss", rule=RULE,
    )  # fmt: skip
    assert any("no labelled row" in note for note in found.notes)
    assert any("2013-05-01 left no new model" in note for note in found.notes)
    assert [len(period.metric) for period in found.periods] == [6, 0, 6]


def test_waiting_costs_what_older_models_lose_by_month() -> None:
    gains = gains_of(replay_of(replayed(), outcomes=["promoted"] * 3))
    assert [gain.period for gain in gains] == [B, C, C]
    assert [gain.gain for gain in gains] == pytest.approx([0.02, 0.06, -0.02])
    assert [gain.months for gain in gains] == pytest.approx([30 / MONTH, 61 / MONTH, 31 / MONTH])


def test_advice_in_a_backtest_knows_nothing_of_the_period_that_follows() -> None:
    """The third period is hard and spoils the old model: at its first day nobody knows."""
    dates = replay_of(
        [{A: 0.50}, {A: 0.50, B: 0.50}, {A: 0.90, B: 0.50, C: 0.50}], outcomes=["promoted"] * 3
    )
    before = moments_of(dates, metric="log_loss", rule=RULE)[2].advice(A)
    assert before is not None
    assert "is 0.5000, and 0.5000 when it was promoted" in before.reasons[-1]
    dates = replay_of(
        [{A: 0.50}, {A: 0.90, B: 0.50}, {A: 0.90, B: 0.50, C: 0.50}], outcomes=["promoted"] * 3
    )
    after = moments_of(dates, metric="log_loss", rule=RULE)[2].advice(A)
    assert after is not None
    assert after.advice == "retrain"
    assert "0.4000 worse" in after.reasons[0]


def result_of(found: Reckoned) -> BacktestResult:
    return BacktestResult(
        project="flights", metric="log_loss", confidence=0.95, first=A, last="2013-06-30",
        every="month", periods=found.periods, policies=found.policies, gains=found.gains,
        notes=found.notes,
    )  # fmt: skip


def test_the_page_is_whole_and_says_who_is_shown_to_be_worse() -> None:
    found = result_of(reckoned(["promoted", "held", "promoted"]))
    assert headline(found).startswith("The policy point would have beaten ours: log loss 0.4933")
    assert "Shown to be worse than ours: never." in sentences(found)
    assert sentences(found)[-1].endswith("in log loss: 1 month older 0.0000.")
    page = render(found)
    assert len(page.encode()) < 300_000
    assert "http" not in page.replace("http://www.w3.org", "")
    for policy in (*ALL, "oracle"):
        assert f"line p-{policy}" in page
    same = result_of(reckoned(["promoted"] * 3, ["never", "newest", "ours"]))
    assert headline(same).startswith("No policy is shown to beat ours")


def test_a_page_of_very_many_periods_stays_small_and_says_what_it_leaves_out() -> None:
    found = result_of(reckoned(["promoted"] * 3))
    found.periods = found.periods * 200
    page = render(found)
    assert len(page.encode()) < 300_000
    assert "of 600 periods; result.json holds all" in page


def test_a_finished_backtest_tells_what_waiting_costs(tmp_path: Path) -> None:
    found = result_of(reckoned(["promoted"] * 3))
    for name, text in (("a", found.model_dump_json()), ("b", json.dumps({"format": "other"}))):
        (tmp_path / name).mkdir()
        (tmp_path / name / RESULT).write_text(text)
    results = read_results(tmp_path)
    assert results == [found]
    waiting = waiting_in(results, "log_loss", 1.0)
    assert waiting is not None
    assert waiting.periods == 2
    assert waiting_in(results, "error", 1.0) is None


@pytest.mark.parametrize(
    ("every", "starts"),
    [
        ("month", ["2013-01-31", "2013-02-28", "2013-03-31"]),
        ("quarter", ["2013-01-31"]),
        ("10d", ["2013-01-31", "2013-02-10", "2013-02-20", "2013-03-02", "2013-03-12",
                 "2013-03-22", "2013-04-01"]),
    ],
)  # fmt: skip
def test_a_schedule_goes_by_the_calendar_and_covers_every_day(
    every: str, starts: list[str]
) -> None:
    found = periods(parse_day("2013-01-31", "--from"), parse_day("2013-04-05", "--to"), every)
    assert [period.name for period in found] == starts
    assert all(a.end == b.start for a, b in pairwise(found))
    assert f"{found[-1].end:%Y-%m-%d}" == "2013-04-06"
