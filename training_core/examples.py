"""Examples in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from training_core.task import PADDING, Kind, Preprocessor, Task


@dataclass(frozen=True)
class Examples:
    """N examples as the network gets them.

    Attributes:
        arrays: Inputs by name, first dimension N.
        target: First dimension N, as the kind of task has it; no NaN.
        units: float32 [N], how many units, such as tokens, each example's summed loss covers;
            None: one each.
        teacher: First dimension N, what another model says of each (`distillation.loss`); None:
            nobody was asked.
    """

    arrays: dict[str, Tensor]
    target: Tensor
    units: Tensor | None = None
    teacher: Tensor | None = None

    @classmethod
    def from_frame(cls, task: Task, preprocessor: Preprocessor, frame: pd.DataFrame) -> Examples:
        """Turn raw rows, every one with a label, into examples.

        Raises:
            ValueError: A row has no label.
        """
        target = task.target(frame)
        without = without_label(target, kind=task.kind)
        if without.any():
            raise ValueError(f"{int(without.sum())} rows have no label")
        arrays = {name: torch.from_numpy(a) for name, a in preprocessor.transform(frame).items()}
        labels = torch.from_numpy(target.copy())  # a copy: pandas lends its memory read-only
        return cls(arrays, labels, task.units(labels))

    def __len__(self) -> int:
        return len(self.target)

    def take(self, rows: Tensor | slice) -> Examples:
        """Return the examples of some rows, in the order given."""
        return self._each(lambda tensor: tensor[rows])

    def to(self, device: torch.device, *, non_blocking: bool = False) -> Examples:
        """Return them on a device; `non_blocking` overlaps the copy if they are pinned."""
        if self.target.device == device:
            return self
        return self._each(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin(self) -> Examples:
        """Return a copy in page-locked memory, from which a GPU can copy by itself."""
        return self._each(lambda tensor: tensor.pin_memory())

    def clone(self) -> Examples:
        """Return a copy in memory of its own."""
        return self._each(lambda tensor: tensor.clone())

    def contiguous(self) -> Examples:
        """Return them with each tensor's rows one after another in memory."""
        return self._each(lambda tensor: tensor.contiguous())

    def _each(self, change: Callable[[Tensor], Tensor]) -> Examples:
        arrays = {name: change(array) for name, array in self.arrays.items()}
        units = None if self.units is None else change(self.units)
        teacher = None if self.teacher is None else change(self.teacher)
        return Examples(arrays, change(self.target), units, teacher)


def without_label(target: npt.NDArray[Any], *, kind: Kind) -> npt.NDArray[np.bool_]:
    """Say of each row whether it has no label, bool [N].

    That is NaN or infinite, a class of -1, a sequence that is padding alone.
    """
    if kind == "sequence":  # of padding alone
        nothing: npt.NDArray[np.bool_] = (target == PADDING).reshape(len(target), -1).all(axis=1)
        return nothing
    wrong = target == -1 if kind == "multiclass" else ~np.isfinite(target)
    missing: npt.NDArray[np.bool_] = wrong.reshape(len(target), -1).any(axis=1)
    return missing
