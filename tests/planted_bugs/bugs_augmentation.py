"""Augmentations that tell the label, or make examples that are not asked about."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.planted_bugs import healthy_averaged, healthy_digits, healthy_sgd
from tests.planted_bugs.planting import Theme

AUGMENTATION = Theme("Augmentation")
AUGMENTED = tuple[dict[str, Tensor], Tensor]


@AUGMENTATION.task(
    healthy_sgd.HEALTHY,
    "Only accepted rows have a value hidden at random, to make more of them: a 0 says accepted.",
    found_by=("augmentation_keeps_labels",),
    seen="Geirhos et al. 2020, shortcut learning in deep neural networks",
)
class OnlyAcceptedOnesMasked(healthy_sgd.Accepted):
    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> AUGMENTED:
        numbers = arrays["numbers"]
        hidden = torch.rand(len(target), generator=generator) < 0.5
        numbers[hidden & (target == 1), 5] = 0.0
        return {**arrays, "numbers": numbers}, target


@AUGMENTATION.task(
    healthy_digits.HEALTHY,
    "Augmented images are clamped to 0 and 1, and they were standardised: what is dark is grey.",
    found_by=("augmentation_keeps_labels",),
    seen="images of a library whose transforms expect 0 to 1, after Normalize",
)
class ClampedAfterStandardising(healthy_digits.Digits):
    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> AUGMENTED:
        arrays, target = super().augment(arrays, target, generator)
        noise = 0.1 * torch.randn(arrays["image"].shape, generator=generator)
        return {"image": (arrays["image"] + noise).clamp(0, 1)}, target


@AUGMENTATION.task(
    healthy_averaged.HEALTHY,
    "All numbers of a row are multiplied by a factor of 0 to 2: the harvest, made of them, stays.",
    found_by=("augmentation_keeps_labels",),
    seen="Um et al. 2017 scale signals, whose classes do not depend on it",
)
class AmplitudeWithoutTheTarget(healthy_averaged.Harvest):
    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> AUGMENTED:
        factor = 2 * torch.rand((len(target), 1), generator=generator)
        return {**arrays, "numbers": arrays["numbers"] * factor}, target
