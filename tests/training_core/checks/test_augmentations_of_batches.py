"""Mixed examples, other scales and hidden labels are found; usual augmentations are not."""

from __future__ import annotations

from typing import Any

import check_data_samples as samples
import numpy as np
import pytest
import torch
from check_data_samples import NUMBERS, Houses, Prices, Shapes, images, look, table
from torch import Tensor

from training_core.checks.contract import Finding
from training_core.checks.data import AugmentationKeepsLabels
from training_core.checks.data.unlearnable import told_apart, unlearnable
from training_core.checks.subject import Subject
from training_core.task import Task

Augmented = tuple[dict[str, Tensor], Tensor]
TABLE, IMAGES = table(), images()


def _found(host: type[Task], augment: Any, **options: Any) -> Finding:
    class Changed(host):  # type: ignore[misc, valid-type]
        def augment(
            self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
        ) -> Augmented:
            made: Augmented = augment(arrays, target, generator, **options)
            return made

    return look(AugmentationKeepsLabels, Changed(), IMAGES if host is Shapes else TABLE)


def _mixed(
    arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator, *, label: str
) -> Augmented:
    """Mixup of the numbers, with the target as it is, mixed alike, or among equal targets."""
    others = torch.randperm(len(target), generator=generator)
    if label == "of the same":
        among = torch.rand(len(target), generator=generator) + 10 * target.argsort().argsort()
        others = among.argsort().roll(1)
        others = torch.where(target[others] == target, others, torch.arange(len(target)))
    share = torch.rand(len(target), generator=generator)
    numbers, kept = arrays["numbers"], target
    mixed = share[:, None] * numbers + (1 - share[:, None]) * numbers[others]
    categories = torch.where(share[:, None] > 0.5, arrays["categories"],
                             arrays["categories"][others])  # fmt: skip
    if label == "mixed":
        kept = share * target + (1 - share) * target[others]
    return {"categories": categories, "numbers": mixed}, kept


def _swapped(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    """A tenth of the numbers are those of other rows: swap noise."""
    numbers = arrays["numbers"]
    others = torch.randperm(len(target), generator=generator)
    chosen = torch.rand(numbers.shape, generator=generator) < 0.1
    return {**arrays, "numbers": torch.where(chosen, numbers[others], numbers)}, target


def _drawn_by_the_data(
    arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
) -> Augmented:
    """Noise on positive numbers only: how many are drawn depends on the whole batch."""
    numbers = arrays["numbers"].clone()
    noise = torch.randn(int((numbers > 0).sum()), generator=generator)
    numbers[numbers > 0] += noise.to(numbers.dtype)
    return {**arrays, "numbers": numbers}, target


@pytest.mark.parametrize("host", [Houses, Prices])
def test_inputs_mixed_without_their_targets_fail(host: type[Task]) -> None:
    finding = _found(host, _mixed, label="own")
    assert finding.verdict == "fail", finding.message
    assert "made of other examples, of other targets" in finding.message


@pytest.mark.parametrize("label", ["mixed", "of the same"])
def test_inputs_mixed_with_their_targets_or_among_equal_ones_pass(label: str) -> None:
    finding = _found(Houses, _mixed, label=label)
    assert finding.verdict in ("pass", "warn"), finding.message
    assert "made of other examples" not in finding.message


def test_swap_noise_and_noise_that_the_data_draws_are_no_fault() -> None:
    for augment in (_swapped, _drawn_by_the_data):
        assert _found(Houses, augment).verdict in ("pass", "warn")


def _scaled(
    arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator, *, how: str
) -> Augmented:
    image = arrays["image"]
    each = (len(image), 1, 1, 1)
    drawn = torch.rand(each, generator=generator)
    noise = torch.randn(image.shape, generator=generator)
    changed = {
        "grain in grey levels": image + 10 * noise,
        "light in grey levels": image + 60 * (drawn - 0.5),
        "standardised once more": image / 60,
        "too quiet": image + 0.0005 * noise,
        "grain": image + 0.15 * noise,
        "light and contrast": image * (0.6 + 0.8 * drawn) + 0.5 * (drawn - 0.5),
        "gaps": image * (torch.rand(image.shape, generator=generator) > 0.5),
        "shift": image.roll(1, 2) if float(drawn[0]) < 2 else image,
    }
    return {"image": changed[how]}, target


@pytest.mark.parametrize("how", ["grain in grey levels", "light in grey levels",
                                 "standardised once more"])  # fmt: skip
def test_an_augmentation_of_another_scale_fails_by_the_array(how: str) -> None:
    finding = _found(Shapes, _scaled, how=how)
    assert finding.verdict == "fail", finding.message
    assert "'image'" in finding.message
    assert "deviation" in finding.message


def test_an_augmentation_that_is_not_heard_is_a_warning() -> None:
    assert "next to nothing" in _found(Shapes, _scaled, how="too quiet").message


@pytest.mark.parametrize("how", ["grain", "light and contrast", "gaps", "shift"])
def test_usual_augmentations_of_images_do_not_fail(how: str) -> None:
    finding = _found(Shapes, _scaled, how=how)
    assert finding.verdict in ("pass", "warn"), finding.message
    assert "deviation" not in finding.message


class _Hidden(Houses):
    """Every example is mirrored about the mean half the time: old and new look alike."""

    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> Augmented:
        sign = 1 - 2 * (torch.rand(len(target), generator=generator) < 0.5).float()
        return {**arrays, "numbers": arrays["numbers"] * sign[:, None]}, target


def test_labels_that_no_network_learns_any_more_are_named() -> None:
    drawn = np.random.default_rng(0).normal(size=(4, len(TABLE)))
    rows = TABLE.assign(kind="hut", dear=drawn[0] > 0, **dict(zip(NUMBERS, drawn, strict=True)))
    rate = samples.TRAINING.optimiser.model_copy(update={"lr": 0.02})
    training = samples.TRAINING.model_copy(update={"optimiser": rate})
    settings = samples.CheckSettings(input_steps=60)
    subject = Subject(_Hidden(), rows, training=training, settings=settings)
    plain = Subject(Houses(), rows, training=training, settings=settings)
    assert told_apart(plain, plain.trained.model, plain.held_back)["the two classes"] > 0.95
    found = unlearnable(subject, lambda: plain.trained)
    assert found is not None
    assert found.broken
    assert "the two classes are told apart without the augmentation" in found.said
