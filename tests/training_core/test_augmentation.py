"""Examples are augmented in training only, by draws that depend on the seed and the position."""

from __future__ import annotations

from pathlib import Path

import torch
from ranks import run_ranks
from ranks_worker import augmented
from torch import Tensor
from training_samples import Certain, Noisy, examples_of, largest_difference, trainer

from training_core.augmentation import augmentation_of, augments
from training_core.evaluation import evaluate


def test_only_a_task_with_an_augmentation_of_its_own_augments() -> None:
    assert augments(Noisy())
    assert not augments(Certain())
    assert not augments(object())
    _, examples = examples_of(Certain(), 4)
    assert augmentation_of(Certain(), seed=0)(examples, sample=1, part=0) is examples


def test_draws_depend_on_seed_position_and_part_and_on_nothing_else() -> None:
    _, examples = examples_of(Noisy(), 4)
    before = examples.arrays["numbers"].clone()

    def drawn(seed: int, sample: int, part: int) -> Tensor:
        augmented = augmentation_of(Noisy(), seed=seed)(examples, sample=sample, part=part)
        return augmented.arrays["numbers"]

    first = drawn(0, 8, 1)
    torch.rand(3)
    assert torch.equal(drawn(0, 8, 1), first)
    for other in [(1, 8, 1), (0, 9, 1), (0, 8, 0)]:
        assert not torch.equal(drawn(*other), first)
    assert torch.equal(examples.arrays["numbers"], before)


def test_training_sees_augmented_examples_and_evaluation_the_raw_ones() -> None:
    plain = trainer(task=Certain(), max_skipped=0)
    noisy = trainer(task=Noisy(), max_skipped=0)
    untrained = evaluate(Noisy(), noisy.module, noisy.validation)
    assert untrained == evaluate(Certain(), plain.module, plain.validation)
    plain.fit()
    noisy.fit()
    assert noisy.outcome.curve[0].loss != plain.outcome.curve[0].loss
    loss = evaluate(Certain(), noisy.module, noisy.validation)["loss"]
    assert noisy.outcome.evaluations[-1][1]["loss"] == loss


def test_a_run_that_goes_on_draws_what_the_undisturbed_one_does(tmp_path: Path) -> None:
    whole = trainer(tmp_path / "whole", task=Noisy())
    whole.fit()
    asked = iter([False, False, False, True])
    broken = trainer(
        tmp_path / "broken", task=Noisy(), hooks={"should_stop": lambda: next(asked, True)}
    )
    assert broken.fit().stop_reason == "asked to stop"
    resumed = trainer(tmp_path / "broken", task=Noisy())
    resumed.fit()
    for mine, other in zip(resumed.module.parameters(), whole.module.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_ranks_draw_for_each_part_what_one_process_with_as_many_microbatches_draws(
    tmp_path: Path,
) -> None:
    found = run_ranks(2, augmented, tmp_path)
    assert largest_difference(found["ranks"], found["one process"]) < 1e-6
