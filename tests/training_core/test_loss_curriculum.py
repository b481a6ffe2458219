"""A curriculum by loss: what each epoch draws, and that it goes on exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ranks import run_ranks
from ranks_techniques_worker import by_loss
from training_samples import Sales, examples_of, largest_difference, trainer, weights

from training_core.evaluation import evaluate
from training_core.feeds.memory import MemoryFeed
from training_core.feeds.prefetch import Prefetched
from training_core.feeds.sampling import (
    sampling_of,
)
from training_core.feeds.sampling_settings import SamplingSettings

BY_LOSS: dict[str, Any] = {
    "epochs": 4, "sampling": {"curriculum": "loss", "start_share": 0.4, "full_at": 1.0},
}  # fmt: skip


def test_the_second_epoch_draws_what_the_network_found_easy_at_the_end_of_the_first() -> None:
    run = trainer(noting=True, task=Sales(), **BY_LOSS)
    losses: list[np.ndarray[Any, Any]] = []

    def stop() -> bool:
        if run.outcome.steps == 6:  # the first epoch's end
            inputs = run.feed.inner.stored(0, 43)  # type: ignore[attr-defined]
            evaluated = len(run.module.evaluated)  # type: ignore[arg-type]
            run.module.eval()
            with torch.no_grad():
                found = run.task.loss(run.module(**inputs.arrays), inputs.target)
            run.module.train()
            del run.module.evaluated[evaluated:]  # type: ignore[union-attr]
            losses.append(found.numpy())
        return run.outcome.steps == 12

    run.should_stop = stop
    run.fit()
    first, second = run.model.trained[:43], run.model.trained[43:86]  # type: ignore[index]
    assert sorted(first) == list(range(43))
    easiest = np.argsort(losses[0], kind="stable")[: int(np.ceil((0.4 + 0.25 * 0.6) * 43))]
    assert set(second) == set(easiest.tolist())
    assert evaluate(run.task, run.module, run.validation)["loss"] > 0


@pytest.mark.parametrize("stop", [6, 12, 14, 15])  # at epochs' ends, at an evaluation, or neither
def test_a_curriculum_by_loss_goes_on_as_if_nothing_had_happened(tmp_path: Path, stop: int) -> None:
    def run_in(place: str) -> Any:
        return trainer(tmp_path / place, task=Sales(), evaluate_every=7, **BY_LOSS)

    whole, first = run_in("whole"), run_in("run")
    whole.fit()
    first.should_stop = lambda: first.outcome.steps == stop
    first.fit()
    second = run_in("run")
    assert second.fit().resumed_from == stop
    assert largest_difference(weights(whole.model), weights(second.model)) == 0.0
    assert second.outcome.evaluations == whole.outcome.evaluations
    plain = trainer(task=Sales(), epochs=4, evaluate_every=7)
    plain.fit()
    assert largest_difference(weights(plain.model), weights(whole.model)) > 0


def test_a_feed_that_goes_ahead_does_not_run_into_an_epoch_whose_losses_are_not_known() -> None:
    def run(*, ahead: bool) -> Any:
        _, examples = examples_of(Sales(), 43)
        settings = SamplingSettings.model_validate(BY_LOSS["sampling"])
        made = sampling_of(settings, epochs=4, target=examples.target.numpy())
        feed: Any = MemoryFeed(examples, sampling=made)
        return trainer(task=Sales(), train=Prefetched(feed) if ahead else feed, **BY_LOSS)

    plain, ahead = run(ahead=False), run(ahead=True)
    plain.fit()
    ahead.fit()
    assert largest_difference(weights(plain.model), weights(ahead.model)) == 0.0


@pytest.mark.smoke
@pytest.mark.slow
def test_ranks_measure_the_same_losses_and_go_on_exactly(tmp_path: Path) -> None:
    found = run_ranks(2, by_loss, tmp_path)
    for kind in ("ddp", "fsdp"):
        whole, resumed = found[f"{kind} whole"], found[f"{kind} run"]
        assert resumed["resumed_from"] == 14
        assert largest_difference(resumed["weights"], whole["weights"]) == 0.0, kind
        assert resumed["evaluations"] == whole["evaluations"], kind
        for mine in whole["curricula"]:
            assert torch.equal(mine, whole["curricula"][0])
        assert float(whole["curricula"][0].min()) > 0
    assert found["topology"]["losses"] == pytest.approx(found["topology alone"])
