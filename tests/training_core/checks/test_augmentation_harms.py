"""What augmentation leaves behind, what raw examples lose by it, and answers that it moves."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest
import torch
from check_data_samples import QUICK, TRAINING, Houses, Jittered, table, using
from torch import Tensor

from tests.planted_bugs import healthy_averaged, healthy_digits
from training_core.checks.data.harm import Harm
from training_core.checks.data.raw_and_augmented import answers_moved, loses_on_raw
from training_core.checks.data.tell_tale import tell_tale
from training_core.checks.data.unlearnable import plain_training
from training_core.checks.subject import Subject
from training_core.tabular import TabularPreprocessor
from training_core.task import Task

Augmented = tuple[dict[str, Tensor], Tensor]
Augment = Callable[[dict[str, Tensor], Tensor, torch.Generator], Augmented]


def _subject(
    kind: type[Task], rows: pd.DataFrame, augmentation: Augment, steps: int = 20
) -> Subject:
    class Changed(kind):  # type: ignore[misc, valid-type]
        def augment(
            self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
        ) -> Augmented:
            return augmentation(arrays, target, generator)

    rate = TRAINING.optimiser.model_copy(update={"lr": 1e-2})
    training = TRAINING.model_copy(update={"optimiser": rate})
    checks = QUICK.model_copy(update={"input_steps": steps})
    return Subject(Changed(), rows, training=training, settings=checks)


# ---- what tells the label ----------------------------------------------------------------------


def _hidden(arrays: dict[str, Tensor], chosen: Tensor, place: int = 2) -> dict[str, Tensor]:
    numbers = arrays["numbers"]
    numbers[chosen, place] = 0.0
    return {**arrays, "numbers": numbers}


def _half(target: Tensor, generator: torch.Generator) -> Tensor:
    return torch.rand(len(target), generator=generator) < 0.5


def _dear_ones(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    return _hidden(arrays, _half(target, generator) & (target == 1)), target


def _everybody(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    return _hidden(arrays, _half(target, generator)), target


def _mixed(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    order = torch.randperm(len(target), generator=generator)
    share = torch.rand(len(target), generator=generator)
    numbers = arrays["numbers"]
    mixed = share[:, None] * numbers + (1 - share[:, None]) * numbers[order]
    return {**arrays, "numbers": mixed}, share * target + (1 - share) * target[order]


def _faint(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    numbers = arrays["numbers"]
    noise = 1e-3 * torch.randn(len(target), generator=generator)
    numbers[:, 1] += noise * target
    return {**arrays, "numbers": numbers}, target


def test_a_trace_in_examples_of_one_label_is_found() -> None:
    harm = tell_tale(_subject(Houses, table(), _dear_ones))
    assert harm is not None
    assert harm.broken
    assert "'distance'" in harm.said


def test_arrays_without_columns_are_passed_over() -> None:
    task = using(TabularPreprocessor, categories=[])
    harm = tell_tale(_subject(type(task), table(), _dear_ones))
    assert harm is not None
    assert harm.broken


@pytest.mark.parametrize("augmentation", [_everybody, _mixed])
def test_what_is_done_to_all_labels_alike_tells_nothing(augmentation: Augment) -> None:
    assert tell_tale(_subject(Houses, table(), augmentation)) is None


def test_noise_and_nulls_that_stay_nulls_tell_nothing() -> None:
    assert tell_tale(Subject(Jittered(), table(), training=TRAINING)) is None

    def unknown(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
        arrays["numbers"][::2, 1] = float("nan")
        return arrays, target

    assert tell_tale(_subject(Houses, table(), unknown)) is None


def test_one_label_alone_augmented_without_a_trace_is_a_doubt() -> None:
    harm = tell_tale(_subject(Houses, table(), _faint))
    assert harm is not None
    assert not harm.broken


# ---- what raw examples lose --------------------------------------------------------------------


def _clamped(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    return {"image": arrays["image"].clamp(0, 1)}, target


def _noisy(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    noise = 0.3 * torch.randn(arrays["image"].shape, generator=generator)
    return {"image": arrays["image"] + noise}, target


@pytest.mark.parametrize(("augmentation", "found"), [(_clamped, True), (_noisy, False)])
def test_raw_examples_that_training_never_saw_lose(augmentation: Augment, found: bool) -> None:
    rows = healthy_digits.rows(0, 600)
    harm = loses_on_raw(_subject(healthy_digits.Digits, rows, augmentation, steps=100))
    assert (harm is not None) is found


# ---- answers that move -------------------------------------------------------------------------


def _louder(most: float) -> Augment:
    def augmented(
        arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> Augmented:
        factor = 1 + most * (2 * torch.rand((len(target), 1), generator=generator) - 1)
        return {**arrays, "numbers": arrays["numbers"] * factor}, target

    return augmented


def _moved(augmentation: Augment) -> Harm | None:
    rows = healthy_averaged.rows(0, 600)
    subject = _subject(healthy_averaged.Harvest, rows, augmentation, steps=150)
    return answers_moved(subject, lambda: plain_training(subject))


def test_numbers_that_are_scaled_while_the_target_stays_are_found() -> None:
    harm = _moved(_louder(1.0))
    assert harm is not None
    assert harm.broken


def test_a_little_louder_and_noise_are_not() -> None:
    assert _moved(_louder(0.1)) is None


def test_a_target_that_moves_with_its_numbers_is_not() -> None:
    def both(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
        changed, _ = _louder(1.0)(arrays, target, generator)
        return changed, target + 1

    assert _moved(both) is None
