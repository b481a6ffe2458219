"""Warm starts do on a small real case what their papers say; figures in docs/transfer.md."""

from __future__ import annotations

import numpy as np
import pytest
import tuned_digits
from growing_digits import WARM, digits, study, trained

from training_core.examples import Examples

pytestmark = pytest.mark.slow


@pytest.mark.smoke  # 24 trainings
def test_shrink_and_perturb_mends_most_of_what_a_warm_start_costs() -> None:
    """Over ten seeds: warm 0.05 behind a network from scratch, shrunk and perturbed 0.02."""
    seeds = [study(seed) for seed in range(3)]
    cold, warm, shrunk = (
        float(np.mean([found[way] for found in seeds])) for way in ("cold", "warm", "shrunk")
    )
    assert warm < cold - 0.02
    assert shrunk > (cold + warm) / 2


@pytest.mark.smoke  # 24 trainings
def test_what_was_learned_before_helps_and_few_numbers_are_nearly_enough() -> None:
    """Over twenty seeds, see docs/transfer.md."""
    seeds = [tuned_digits.study(seed) for seed in range(4)]
    accuracy = {way: float(np.mean([found[way][0] for found in seeds])) for way in seeds[0]}
    trained_numbers = {way: many for way, (_, many) in seeds[0].items()}
    assert accuracy["from scratch"] < accuracy["all weights"] - 0.08
    assert accuracy["rates by depth"] > accuracy["all weights"] - 0.005
    assert accuracy["gradual unfreezing"] > accuracy["all weights"] - 0.005
    assert accuracy["LoRA, rank 4"] > accuracy["all weights"] - 0.03
    assert trained_numbers["LoRA, rank 4"] < 0.12 * trained_numbers["all weights"]


def test_a_warm_start_reaches_the_loss_of_a_cold_one_in_fewer_steps() -> None:
    pixels, labels = digits()
    order = np.random.default_rng(0).permutation(len(labels))
    test = Examples({"pixels": pixels[order[800:]]}, labels[order[800:]])
    early, all_ = (
        Examples({"pixels": pixels[order[:rows]]}, labels[order[:rows]]) for rows in (400, 800)
    )
    often = {"evaluate_every": 5, "epochs": 10}
    champion = trained(early, test, seed=0, epochs=10).module.state_dict()
    cold = trained(all_, test, seed=1, **often).outcome.evaluations
    warm = trained(all_, test, seed=1, start=WARM, weights=champion, **often).outcome.evaluations
    goal = min(metrics["loss"] for _, metrics in cold)
    cold_steps = next(step for step, metrics in cold if metrics["loss"] <= goal)
    warm_steps = next(step for step, metrics in warm if metrics["loss"] <= goal)
    assert warm_steps <= 0.7 * cold_steps, (warm_steps, cold_steps)
