"""Bugs in augmentations of whole batches, and in plans that are kept and do not train."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.planted_bugs import (
    healthy_arrows,
    healthy_bag_of_words,
    healthy_digits,
    healthy_multilabel,
    healthy_regression,
    healthy_residual,
    healthy_tiny,
)
from tests.planted_bugs.planting import Theme

AUGMENTED = tuple[dict[str, Tensor], Tensor]
PLANS = Theme("Augmentation of batches, plans")


@PLANS.task(
    healthy_regression.HEALTHY,
    "Rows are averaged with others of their batch, and their rents are not.",
    found_by=("augmentation_keeps_labels",),
    seen="Zhang et al. 2018, mixup: targets are mixed with the inputs",
)
class RowsAveragedAndRentsNot(healthy_regression.Rent):
    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> AUGMENTED:
        others = torch.randperm(len(target), generator=generator)
        numbers = {name: a for name, a in arrays.items() if a.is_floating_point()}
        return {**arrays, **{name: (a + a[others]) / 2 for name, a in numbers.items()}}, target


@PLANS.task(
    healthy_digits.HEALTHY,
    "Brightness is changed by grey levels, of pixels that are standardised.",
    found_by=("augmentation_keeps_labels",),
    seen="torchvision: transforms after Normalize that are meant for 0 to 255",
)
class BrightnessInGreyLevels(healthy_digits.Digits):
    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> AUGMENTED:
        arrays, target = super().augment(arrays, target, generator)
        light = 64 * torch.rand((len(target), 1, 1, 1), generator=generator) - 32
        return {"image": arrays["image"] + light}, target


@PLANS.task(
    healthy_arrows.HEALTHY,
    "Images are turned by any number of quarters, and their label is which way they point.",
    found_by=("augmentation_keeps_labels",),
    seen="Shorten & Khoshgoftaar 2019: rotations are not safe where direction is the label",
)
class TurnedByAnyQuarters(healthy_arrows.Arrows):
    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> AUGMENTED:
        image = arrays["image"]
        quarters = torch.randint(4, (len(target),), generator=generator)
        for quarter in range(1, 4):
            turned = image[quarters == quarter].rot90(quarter, (2, 3))
            image[quarters == quarter] = turned
        return {"image": image}, target


PLANS.settings(
    "milestones_of_a_longer_recipe",
    healthy_residual.HEALTHY,
    "Milestones of 1,000 epochs as shares of all steps: both lie within the warm-up.",
    found_by=("schedule_as_planned",),
    schedule={"shape": "step", "milestones": (0.02, 0.04), "warmup": 0.1},
)
PLANS.settings(
    "batch_of_a_larger_data_set",
    healthy_tiny.HEALTHY,
    "A batch of 8,192 holds all rows: an epoch is one step.",
    found_by=("schedule_as_planned",),
    warns=True,
    batch_size=8192,
    epochs=15,
)
PLANS.settings(
    "decay_rates_in_each_others_place",
    healthy_bag_of_words.HEALTHY,
    "Adam's decay rates are in each other's place: it goes where gradients of long ago pointed.",
    found_by=("update_health",),
    warns=True,
    seen="Kingma & Ba 2015: the first is that of the mean, the second that of the square",
    optimiser={"betas": (0.999, 0.9)},
)
PLANS.settings(
    "weights_forgotten_at_once",
    healthy_multilabel.HEALTHY,
    "Weight decay is 10: a weight loses more in each step than it learns.",
    found_by=("update_health",),
    warns=True,
    seen="Loshchilov & Hutter 2019: with adamw it is multiplied with the rate, not with the loss",
    optimiser={"weight_decay": 10.0},
)
