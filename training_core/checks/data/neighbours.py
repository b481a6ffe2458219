"""Which raw example an example is nearest to."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from training_core.checks.data.arrays import flat, is_index
from training_core.examples import Examples
from training_core.task import PADDING, Kind


@dataclass(frozen=True)
class Space:
    """Distances between examples: numbers in deviations of their array, other indices count one.

    Numbers of one array are divided by one deviation where they are pixels (three dimensions or
    more), and by that of their column otherwise.
    """

    means: dict[str, np.ndarray]
    scales: dict[str, np.ndarray]

    @classmethod
    def of(cls, examples: Examples) -> Space:
        means, scales = {}, {}
        for name, array in examples.arrays.items():
            columns = flat(array)
            spread = columns.std(0) if array.ndim < 3 else np.array([columns.std()])
            means[name] = columns.mean(0)
            scales[name] = np.where(spread > 0, spread, 1.0)
        return cls(means, scales)

    def distances(self, one: Examples, other: Examples) -> Tensor:
        """Return the distance of each example to each other one, float64 [N, M]."""
        squared = torch.zeros(len(one), len(other), dtype=torch.float64)
        for name, array in one.arrays.items():
            if is_index(array):
                a, b = array.flatten(1) if array.ndim > 1 else array[:, None], other.arrays[name]
                b = b.flatten(1) if b.ndim > 1 else b[:, None]
                for i in range(a.shape[1]):
                    squared += a[:, i, None] != b[None, :, i]
                continue
            a, b = (
                torch.from_numpy((flat(e.arrays[name]) - self.means[name]) / self.scales[name])
                for e in (one, other)
            )
            squared += torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square()
        return squared.sqrt()


def target_distance(one: Tensor, other: Tensor, *, kind: Kind, spread: float) -> Tensor:
    """Return how far targets lie apart, float64 [N]: 0 alike, 1 as far as can be.

    Classes are alike or not; several labels count the share that differs, numbers the difference
    in deviations, sequences the share of positions that differ where both count.
    """
    a, b = one.double(), other.double()
    if kind == "multiclass" and a.ndim == 1:
        return (a != b).double()
    if kind == "sequence":
        counts = (one != PADDING) & (other != PADDING)
        wrong = ((one != other) & counts).double()
        return wrong.flatten(1).sum(1) / counts.flatten(1).sum(1).clamp(min=1)
    if kind == "regression":
        return (a - b).abs().flatten(1).mean(1) / spread if a.ndim > 1 else (a - b).abs() / spread
    return (a - b).abs() if a.ndim == 1 else (a - b).abs().flatten(1).mean(1)


def is_chance(wrong: Tensor, random: Tensor, *, least: float) -> bool:
    """Say whether neighbours' labels are wrong as often as anybody's, in enough examples.

    Args:
        wrong: Whether each neighbour's label is, bool [examples].
        random: Whether that of any other example is, bool [N].
        least: Examples, below which there is no telling.
    """
    count = len(wrong)
    if count < least:
        return False
    usual = float(random.double().mean())
    error = math.sqrt(max(usual * (1 - usual), 1 / count) / count)
    return float(wrong.double().mean()) > usual - 2 * error
