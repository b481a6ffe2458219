"""Augmentations that do not keep labels, and rows that both splits share, are found."""

from __future__ import annotations

from typing import Any

import check_data_samples as samples
import numpy as np
import pandas as pd
import pytest
import torch
from check_data_samples import (
    Houses,
    Shapes,
    images,
    look,
    table,
)
from torch import Tensor, nn

from training_core.checks.data import (
    AugmentationKeepsLabels,
    NoSharedRows,
)
from training_core.checks.data.turned import turned
from training_core.checks.subject import Subject
from training_core.task import Preprocessor

Augmented = tuple[dict[str, Tensor], Tensor]


def _mixed(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    order = torch.randperm(len(target), generator=generator)
    return {name: array[order] for name, array in arrays.items()}, target


def _flipped(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    flip = torch.rand(len(target), generator=generator) < 0.5
    image = arrays["image"]
    image[flip] = image[flip].flip(3)
    return {"image": image}, target


def _relabelled(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    changed = torch.rand(len(target), generator=generator) < 0.3
    return arrays, torch.where(changed, (target + 1) % 3, target)


def _global(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    return {"image": arrays["image"] + 0.1 * torch.randn_like(arrays["image"])}, target


def _rolled(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    noise = 0.3 * torch.randn(arrays["image"].shape, generator=generator)
    return {"image": arrays["image"] + noise}, target.roll(1)


def _inverted(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    turned = torch.rand(len(target), generator=generator) < 0.5
    image = arrays["image"]
    image[turned] = -image[turned]
    return {"image": image}, target


def _narrow(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    return {"image": arrays["image"][..., 1:]}, target


@pytest.mark.parametrize(
    ("augment", "said"),
    [
        (_mixed, "of another example with their own label"),
        (_rolled, "of another example with their own label"),
        (_flipped, "change places"),
        (_relabelled, "with another label"),
        (_global, "the same generator gives another augmentation"),
        (_narrow, "augment makes float32 [192, 1, 12, 11] of 'image'"),
    ],
)
def test_an_augmentation_that_does_not_keep_labels_is_found(augment: Any, said: str) -> None:
    class Broken(Shapes):
        def augment(
            self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
        ) -> Augmented:
            result: Augmented = augment(arrays, target, generator)
            return result

    finding = look(AugmentationKeepsLabels, Broken(), images())
    assert finding.verdict == "fail", finding.message
    assert said in finding.message


def test_what_nobody_can_say_the_label_of_is_a_warning_at_most() -> None:
    class Far(Shapes):
        def augment(
            self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
        ) -> Augmented:
            return _inverted(arrays, target, generator)

    finding = look(AugmentationKeepsLabels, Far(), images())
    assert finding.verdict in ("pass", "warn"), finding.message


def test_labels_turn_in_a_ring_and_not_into_one() -> None:
    own = torch.arange(4).repeat(25)
    assert "0 and 1 and 2 and 3 change places" in turned("multiclass", own, (own + 1) % 4, own)
    assert turned("multiclass", own, torch.full_like(own, 2), own) == ""
    assert turned("multiclass", own, own, own) == ""


def test_two_of_several_labels_change_places() -> None:
    own = (torch.rand(100, 3, generator=torch.Generator().manual_seed(0)) < 0.4).float()
    assert "labels 0 and 2 change places" in turned("multilabel", own, own[:, [2, 1, 0]], own)
    assert turned("multilabel", own, own, own) == ""


def test_what_only_a_network_recognises_when_flipped_is_found() -> None:
    """Flipped, these arrows point the other way where no raw arrow is: no neighbour is near."""
    rows = images(500)
    rows["image"] = [np.roll(image, -2, axis=1) for image in rows["image"]]

    class Broken(Shapes):
        def build_model(self, preprocessor: Preprocessor) -> nn.Module:
            return samples.Anywhere()

        def augment(
            self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
        ) -> Augmented:
            return _flipped(arrays, target, generator)

    settings = samples.CheckSettings(input_steps=80)
    rate = samples.TRAINING.optimiser.model_copy(update={"lr": 0.01})
    training = samples.TRAINING.model_copy(update={"optimiser": rate})
    subject = Subject(Broken(), rows, training=training, settings=settings)
    finding = AugmentationKeepsLabels().look(subject)
    assert finding.verdict == "fail", finding.message
    assert "change places" in finding.message


def test_mixing_inputs_and_targets_alike_is_no_fault() -> None:
    class Mixed(Houses):
        def augment(
            self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
        ) -> Augmented:
            order = torch.randperm(len(target), generator=generator)
            share = torch.rand(len(target), generator=generator)
            numbers = arrays["numbers"]
            mixed = share[:, None] * numbers + (1 - share[:, None]) * numbers[order]
            return {**arrays, "numbers": mixed}, share * target + (1 - share) * target[order]

    finding = look(AugmentationKeepsLabels, Mixed(), table())
    assert finding.verdict in ("pass", "warn"), finding.message


# ---- no_shared_rows


def test_copies_of_train_rows_among_the_held_back_ones_are_found() -> None:
    rows = table()
    copies = pd.concat([rows, rows[:100]], ignore_index=True)
    finding = look(NoSharedRows, Houses(), copies)
    assert finding.verdict == "fail"
    assert "occur in train" in finding.message


def test_validation_rows_that_were_put_into_train_are_found() -> None:
    rows = images()
    task = Shapes()
    subject = Subject(task, rows, validation=rows[:50], training=samples.TRAINING)
    finding = NoSharedRows().look(subject)
    assert finding.verdict == "fail"
    assert finding.measured == 1.0
