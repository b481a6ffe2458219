"""Scale of the columns of an array, and what the untrained network makes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from training_core.checks.data.arrays import Numbers, flat
from training_core.checks.subject import Subject
from training_core.examples import Examples

_ROWS = 64


@dataclass(frozen=True)
class Scales:
    """Mean, deviation, smallest and largest of each column: float64 [columns], of finite values."""

    mean: Numbers
    deviation: Numbers
    low: Numbers
    high: Numbers

    @classmethod
    def of(cls, columns: Numbers) -> Scales:
        """Measure columns, [N, columns]."""
        known = np.where(np.isfinite(columns), columns, 0.0)
        return cls(known.mean(0), known.std(0), known.min(0), known.max(0))

    @property
    def largest(self) -> Numbers:
        """Of |mean| and deviation, whichever is larger."""
        return np.maximum(np.abs(self.mean), self.deviation)

    @property
    def is_bounded(self) -> npt.NDArray[np.bool_]:
        """Columns within -1 and 1: yes and no, shares, cycles; constant ones too."""
        return np.asarray(((self.low >= -1) & (self.high <= 1)) | (self.deviation == 0))


def standardised(array: Tensor) -> Tensor:
    """Return an array [N, …] whose columns have mean 0 and deviation 1, as far as they vary."""
    columns = flat(array)
    scales = Scales.of(columns)
    spread = np.where(scales.deviation > 0, scales.deviation, 1.0)
    changed = (columns - scales.mean) / spread
    return torch.from_numpy(changed.reshape(array.shape)).to(array.dtype)


def growth(subject: Subject, name: str) -> tuple[float, float]:
    """Return how much larger outputs and loss are for an array as it is than standardised.

    Of the untrained network in train mode, in which a normalisation layer does its work.
    """
    batch = subject.batch(_ROWS, seed=2)
    own, its_loss = _size(subject, batch)
    arrays = {**batch.arrays, name: standardised(batch.arrays[name])}
    other, other_loss = _size(subject, Examples(arrays, batch.target, batch.units))
    return own / max(other, 1e-12), its_loss / max(other_loss, 1e-12)


def runs_on(subject: Subject, batch: Examples) -> bool:
    """Say whether the untrained network's outputs are finite."""
    outputs = _call(subject.build(), batch, lambda model: model.eval())
    return bool(torch.isfinite(outputs).all())


def takes_last(subject: Subject, name: str, batch: Examples) -> bool:
    """Say whether a negative index reads a table of weights from its end, without a word."""
    model = subject.build()
    array = batch.arrays[name]
    own = _call(model, batch, lambda model: model.eval())
    sizes = {weight.shape[0] for weight in model.parameters() if weight.ndim == 2}
    for size in sizes:
        wrapped = torch.where(array < 0, array + size, array)
        try:
            other = _call(
                model,
                Examples({**batch.arrays, name: wrapped}, batch.target, batch.units),
                lambda model: model.eval(),
            )
        except (IndexError, RuntimeError):  # not the size of this table
            continue
        if torch.equal(own, other):
            return True
    return False


@torch.no_grad()
def _size(subject: Subject, batch: Examples) -> tuple[float, float]:
    torch.manual_seed(0)
    outputs = _call(subject.build(), batch, lambda model: model.train())
    return float(outputs.std()), abs(float(subject.loss(outputs, batch)))


@torch.no_grad()
def _call(model: nn.Module, batch: Examples, mode: Callable[[nn.Module], nn.Module]) -> Tensor:
    outputs: Tensor = mode(model)(**batch.clone().arrays)
    return outputs.float()
