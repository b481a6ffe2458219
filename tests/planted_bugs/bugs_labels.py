"""Labels that are not those of their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from tests.planted_bugs import (
    healthy_arrows,
    healthy_categories,
    healthy_digits,
    healthy_rare,
    healthy_regression,
    healthy_sgd,
)
from tests.planted_bugs.planting import Theme

LABELS = Theme("Labels")
AUGMENTED = tuple[dict[str, Tensor], Tensor]


@LABELS.rows(
    healthy_regression.HEALTHY,
    "Each row has the label of the row before: a table joined one line off.",
    found_by=("inputs_help",),
    seen="Humbatova et al. 2020, wrong labels for training data",
)
def labels_of_the_row_before(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(rent=np.roll(rows["rent"], 1))


@LABELS.task(
    healthy_sgd.HEALTHY,
    "The task's target is shifted by one row against its features.",
    found_by=("rows_stay_themselves", "inputs_help"),
    seen="Karpathy 2019, off by one",
)
class TargetsShifted(healthy_sgd.Accepted):
    def target(self, frame: pd.DataFrame) -> npt.NDArray[np.float32]:
        return np.roll(super().target(frame), 1)


@LABELS.rows(
    healthy_categories.HEALTHY,
    "Labels were shuffled and features were not.",
    found_by=("inputs_help",),
    seen="Zhang et al. 2017, arXiv:1611.03530: a network learns them by heart all the same",
)
def labels_shuffled(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(plan=np.random.default_rng(5).permutation(rows["plan"].to_numpy()))


@LABELS.task(
    healthy_arrows.HEALTHY,
    "Images are mirrored at random, and their label, which way they point, is not.",
    found_by=("augmentation_keeps_labels",),
    seen="Karpathy 2019: flip the label when you flip the image",
)
class MirroredWithoutTheLabel(healthy_arrows.Arrows):
    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> AUGMENTED:
        changed, _ = super().augment(arrays, target.clone(), generator)
        return changed, target


@LABELS.task(
    healthy_digits.HEALTHY,
    "Digits are turned upside down half the time: a 6 is a 9 then.",
    found_by=("augmentation_keeps_labels",),
    seen="Shorten & Khoshgoftaar 2019, A survey on image data augmentation: 6 against 9",
    warns=True,
)
class DigitsUpsideDown(healthy_digits.Digits):
    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> AUGMENTED:
        turned = torch.rand(len(target), generator=generator) < 0.5
        image = arrays["image"]
        image[turned] = image[turned].flip(2, 3)
        return {"image": image}, target


@LABELS.task(
    healthy_digits.HEALTHY,
    "The augmentation shuffles the images of a batch and leaves the labels where they were.",
    found_by=("augmentation_keeps_labels",),
)
class ImagesShuffledInTheBatch(healthy_digits.Digits):
    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> AUGMENTED:
        changed, target = super().augment(arrays, target, generator)
        mixed = torch.randperm(len(target), generator=generator)
        return {"image": changed["image"][mixed]}, target


@LABELS.task(
    healthy_regression.HEALTHY,
    "The target is cast to a whole number on its way.",
    found_by=("inputs_before_network",),
    seen="Humbatova et al. 2020, wrong type of data",
)
class TargetTruncated(healthy_regression.Rent):
    def target(self, frame: pd.DataFrame) -> npt.NDArray[Any]:
        return super().target(frame).astype(np.int64).astype(np.float32)


@LABELS.task(
    healthy_rare.HEALTHY,
    "Labels are -1 and 1, and the loss reads 0 and 1.",
    found_by=("loss_function", "inputs_before_network", "one_batch", "initial_loss"),
)
class LabelsOfMinusOne(healthy_rare.Fraud):
    def target(self, frame: pd.DataFrame) -> npt.NDArray[np.float32]:
        return 2 * super().target(frame) - 1
