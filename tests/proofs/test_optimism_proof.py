"""The proof of optimism in its short form: some trials of each kind, and what must not pass."""

from __future__ import annotations

import numpy as np

from components.select_checkpoint.choosing import Place
from tests.proofs.optimism import judge, prove, simulated


def test_what_was_predicted_is_what_the_holdout_shows() -> None:
    figures = prove(8)
    assert figures["trials"] == 8
    assert min(figures["simulated_inside"], figures["real_inside"]) >= 6 / 8
    assert figures["simulated_predicted"] > 0
    assert figures["real_predicted"] > 0


def test_a_hundred_made_up_trials_are_inside() -> None:
    found = [simulated(number) for number in range(100)]
    assert sum(trial.inside for trial in found) >= 88
    predicted = np.mean([trial.predicted for trial in found])
    measured = np.mean([trial.measured for trial in found])
    assert 0.6 < predicted / measured < 1.6


def test_a_holdout_that_is_harder_lies_outside() -> None:
    """Something else than chance: as if the validation split had been learned by heart."""
    random = np.random.default_rng(0)
    days = np.repeat(np.arange(14.0), 100)
    validation, holdout = (random.normal(0.5, 0.1, (3, 1400)) for _ in range(2))
    same = judge(
        validation, holdout, days=(days, days), rule="best", places=[Place(k) for k in range(3)],
        seed=0,
    )  # fmt: skip
    harder = judge(
        validation, holdout + 0.02, days=(days, days), rule="best",
        places=[Place(k) for k in range(3)], seed=0,
    )  # fmt: skip
    assert same.inside
    assert not harder.inside
