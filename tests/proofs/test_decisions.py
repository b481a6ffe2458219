"""The proof of decisions in its short form."""

from __future__ import annotations

from tests.proofs.decision_simulations import coverage, power_by_days, power_by_rows
from tests.proofs.decision_twins import twins


def test_a_true_gain_is_seen_and_none_is_not() -> None:
    assert power_by_rows(10, gain=0.02, noise=0.0) >= 0.8
    assert power_by_rows(10, gain=0.0, noise=0.0) <= 0.2


def test_days_that_move_together_show_less_and_as_much_as_a_t_test() -> None:
    ours, best = power_by_days(20, gain=0.05)
    assert ours >= best - 0.15
    assert power_by_days(20, gain=0.0)[0] <= 0.15


def test_intervals_hold_the_truth() -> None:
    for name, share in coverage(60).items():
        assert share >= 0.85, name


def test_twins_on_flights_are_rarely_promoted_over_each_other() -> None:
    figures = twins(12, networks=3, dates=(3,))
    assert figures["aa_promoted"] <= 0.25
    assert figures["aa_noise"] > 0
