"""Sentences and numbers of the report."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from report_sample_models import evaluation, promotion
from report_sample_rich import rich, slices
from report_samples import crashed, finished, stopped

from components.common.decision_figures import Comparison
from components.report_run import decision_words, formats, words


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [(0.001, 0.003, "better"), (-0.003, -0.001, "worse"), (-0.001, 0.002, "unclear"),
     (0.0, 0.002, "unclear"), (float("nan"), float("nan"), "unclear")],
)  # fmt: skip
def test_better_and_worse_are_said_only_where_the_interval_excludes_zero(
    low: float, high: float, word: str
) -> None:
    compared = Comparison(against="champion", difference=0, low=low, high=high, noise=0, clusters=1)
    assert words.standing(compared) == word


def test_a_positive_difference_is_a_lower_loss_of_the_challenger() -> None:
    said = words.difference(evaluation().comparisons[0], metric="log_loss", unit="day")
    assert said == (
        "Against champion the challenger’s log loss is 0.0046 lower (interval of the difference "
        "0.0018 to 0.0075, over 14 days): it is better beyond the interval."
    )
    said = words.difference(evaluation("hold").comparisons[0], metric="log_loss", unit="day")
    assert "0.0061 higher (interval of the difference −0.0092 to −0.0029" in said
    assert "worse" in said


def test_the_outcome_is_promoted_only_where_promote_model_says_so() -> None:
    run, _ = finished()
    assert words.outcome(run, promotion()) == "promoted"
    assert words.outcome(run, None) == "held"
    assert words.outcome(run, promotion("hold")) == "held"
    assert words.outcome(finished("inconclusive")[0], promotion("inconclusive")) == "inconclusive"
    assert words.outcome(stopped()[0], None) == "stopped"
    assert words.outcome(crashed("running")[0], promotion()) == "interrupted"


def test_the_gate_that_failed_decides_before_one_that_is_unsure() -> None:
    seen = evaluation("inconclusive")
    assert (gate := words.deciding_gate(seen)) is not None
    assert gate.outcome == "unsure"
    seen.gates[-1].outcome = "fail"
    assert words.deciding_gate(seen) is seen.gates[-1]
    assert words.deciding_gate(evaluation()) is None


@pytest.mark.parametrize(
    ("code", "advice"),
    [(1, "A retry alone will not help"), (2, "Mend the configuration"), (3, "a retry may help")],
)
def test_what_to_do_after_a_failure_follows_the_exit_code(code: int, advice: str) -> None:
    run = crashed()[0].model_copy(update={"exit_code": code, "hint": "look at the lr"})
    said = words.next_step(run, words.Outcome.FAILED, None)
    assert said.startswith("Look at the lr. ")
    assert advice in said


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (0.47021, "0.470"), (-0.00612, "−0.00612"), (40312.4, "40,312"),
     (1.2e-7, "1.20×10⁻⁷"), (float("nan"), "unknown"), (float("inf"), "unknown"), (1.0, "1.00")],
)  # fmt: skip
def test_numbers_have_three_significant_digits_and_a_true_minus(value: float, shown: str) -> None:
    assert formats.number(value) == shown


def test_a_sentence_begins_large_unless_it_begins_with_a_name() -> None:
    shown = {
        "the data is bad": "The data is bad.",
        "row_key has nulls": "row_key has nulls.",
        "april.parquet changed": "april.parquet changed.",
        "wait. then run again": "Wait. then run again.",
        " ": "",
    }
    assert {text: formats.sentence(text) for text in shown} == shown


def test_an_interval_shows_two_digits_of_its_half_width() -> None:
    assert formats.interval(-0.00213, 0.00378) == "−0.0021 to 0.0038"
    assert formats.interval(12.3, 56.7) == "12 to 57"


def test_a_rounded_zero_has_no_sign() -> None:
    assert formats.fixed(-0.00001, 3) == "0.000"
    assert formats.signed(0.00001, 3) == "0.000"
    assert formats.signed(0.0046, 4) == "+0.0046"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.04, "0.0 s"), (9.97, "10 s"), (59.6, "1 min 00 s"), (192, "3 min 12 s"),
     (7500, "2 h 05 min")],
)  # fmt: skip
def test_seconds_are_read_at_a_glance(value: float, shown: str) -> None:
    assert formats.seconds(value) == shown


def test_a_measured_number_is_never_shown_as_none_nor_as_zero() -> None:
    shown = {None: "–", 0.0: "0.000", 0.4123: "0.412", 0.00012: "0.00012", -2.0: "−2.000"}
    assert {value: formats.measured(value) for value in shown} == shown
    assert formats.measured(float("nan")) == "unknown"


def test_instants_are_utc_and_a_midnight_is_a_date() -> None:
    assert formats.instant(datetime(2013, 5, 1, 4, 12, tzinfo=UTC)) == "2013-05-01 04:12 UTC"
    assert formats.instant("2013-05-01T06:12:00+02:00") == "2013-05-01 04:12 UTC"
    assert formats.instant("2013-04-17T00:00:00") == "2013-04-17"
    assert formats.instant("week 17") == "week 17"
    assert formats.instant(None) == "unknown"


def test_shares_and_sizes_have_units() -> None:
    shares = {0: "0 %", 0.00014: "0.01 %", 0.00002749: "0.003 %", 0.2031: "20.3 %", 1: "100 %"}
    assert {share: formats.percent(share) for share in shares} == shares
    sizes = {12: "12 bytes", 878_230: "878 kB", 3_100_000_000: "3.10 GB"}
    assert {size: formats.size(size) for size in sizes} == sizes


def test_slices_are_said_to_be_worse_only_where_that_is_shown() -> None:
    assert decision_words.slices(slices()) == (
        "No slice is shown to be worse than its margin, of 3 judged; of 1 it cannot be told."
    )
    assert decision_words.slices(slices(worse=True)).startswith("1 slice is shown to be worse")
    assert decision_words.worst_first(slices(worse=True))[0].outcome == "fail"
    assert decision_words.worst_first(slices())[-1].difference is None


def test_the_holdout_agrees_only_inside_what_was_expected() -> None:
    seen = rich().optimism
    assert seen is not None
    assert "the holdout agrees" in decision_words.optimism(seen, "log_loss")
    seen.measured = 0.02
    assert "the holdout does not agree" in decision_words.optimism(seen, "log_loss")


def test_where_higher_is_better_a_better_challenger_is_higher() -> None:
    compared = evaluation().comparisons[0]
    said = words.difference(compared, metric="auc", unit="day", better="higher")
    assert "AUC is 0.0046 higher" in said
    assert "it is better" in said
