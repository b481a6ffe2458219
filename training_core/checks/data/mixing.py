"""How much of an augmented example is made of other examples of its batch, by experiment.

mixup (Zhang et al. 2018) and CutMix (Yun et al. 2019) mix inputs and targets in one proportion;
mixed inputs with an unmixed target say that an example is what it is only half of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from training_core.checks.data.arrays import flat, is_index
from training_core.examples import Examples

_TRIALS = 16
_GROUPS = 8  # of numbers: as many quantiles
_FEWEST = 8  # examples in which others have a part
_MOVES = 0.05  # of the usual difference between rows: below, an example follows nobody

# Augments with the same generator each time, and returns the state it leaves this one in as well.
Draw = Callable[[Examples], tuple[Examples, Tensor]]


@dataclass(frozen=True)
class Mixed:
    """How much others, of other targets, have a part in an example, on the mean.

    Attributes:
        inputs: Of all arrays alike. Where others are drawn from all rows: examples of the same
            target are left out, and counted as those of other ones.
        target: The same of the target.
        array: In which they have the largest part.
    """

    inputs: float
    target: float
    array: str


def mixed_of(draw: Draw, raw: Examples, others: Examples) -> Mixed | None:
    """Say how much other examples of the batch have a part in each; None: it cannot be said.

    Rows of some targets are replaced by other rows, and the chance stays the same: what moves in a
    row of another target came from elsewhere, and what moves when its own rows are replaced is
    its own. A neighbour of the same target may be mixed in: the label is right for it. Trials in
    which other numbers were drawn, since the data decides how many are, say nothing.

    Args:
        draw: Augments, with the same chance each time.
        raw: N rows.
        others: As many, to be put in their places.
    """
    groups = _groups(raw.target)
    kinds = int(groups.max()) + 1
    if kinds < 2:
        return None
    plain, state = draw(raw)
    generator = torch.Generator().manual_seed(0)
    scales = {name: _scale(array) for name, array in raw.arrays.items()}
    moved: dict[str, list[Tensor]] = {name: [] for name in raw.arrays}
    of_target, replaced = [], []
    for trial in range(_TRIALS):
        chosen = torch.rand(kinds, generator=generator) < 0.5
        chosen[trial % kinds], chosen[(trial + 1 + trial // kinds % (kinds - 1)) % kinds] = 1, 0
        here = chosen[groups]
        arrays = {
            name: _put(array, others.arrays[name], here) for name, array in raw.arrays.items()
        }
        after, end = draw(Examples(arrays, raw.target, raw.units))
        relabelled = _put(raw.target, others.target, here)
        answer, end_too = draw(Examples(raw.arrays, relabelled, raw.units))
        if not (torch.equal(end, state) and torch.equal(end_too, state)):
            continue
        replaced.append(here)
        of_target.append(_apart(plain.target, answer.target, None))
        for name, array in plain.arrays.items():
            moved[name].append(_apart(array, after.arrays[name], scales[name]))
    if not replaced:
        return None
    put_in = torch.stack(replaced)
    other_targets = 1 - float((groups.bincount() / len(groups)).square().sum())
    parts = {}
    for name, array in raw.arrays.items():
        usual = float(_apart(array, others.arrays[name], scales[name]).mean())
        parts[name] = _parts(torch.stack(moved[name]), put_in, _MOVES * usual)
    inputs = torch.stack([*parts.values()]).nanmean(0)
    target = _parts(torch.stack(of_target), put_in, 0.0)
    known = torch.isfinite(inputs) & torch.isfinite(target)
    if int((known & (inputs > _MOVES)).sum()) < _FEWEST:
        return None
    return Mixed(
        inputs=min(1.0, float(inputs[known].mean()) / other_targets),
        target=min(1.0, float(target[known].mean()) / other_targets),
        array=max(parts, key=lambda name: float(parts[name][known].nanmean().nan_to_num(0.0))),
    )


def _parts(moved: Tensor, put_in: Tensor, floor: float) -> Tensor:
    """Return the foreign part of each row's movement, float64 [N]; NaN: unknown, it hardly moves.

    The least that moves with its own rows is its own: with them, at times, the others are replaced.
    """
    foreign = torch.where(put_in, 0.0, moved).amax(0)
    own = torch.where(put_in, moved, torch.inf).amin(0)
    known = torch.isfinite(own) & (~put_in).any(0) & (foreign + own > floor)
    return torch.where(known, foreign / (foreign + own), torch.nan)


def _groups(target: Tensor) -> Tensor:
    """Number the targets: classes as they are, numbers by their quantile, int64 [N]."""
    values = flat(target)
    if values.shape[1] == 1 and target.is_floating_point() and len(np.unique(values)) > _GROUPS:
        edges = np.quantile(values, np.linspace(0, 1, _GROUPS + 1)[1:-1])
        values = np.searchsorted(edges, values).astype(np.float64)
    _, numbers = np.unique(values, axis=0, return_inverse=True)
    return torch.from_numpy(numbers.reshape(-1))


def _scale(array: Tensor) -> np.ndarray | None:
    """Return the deviation of each column: those in thousands would else decide alone."""
    if is_index(array):
        return None
    spread = flat(array).std(0)
    return np.where(spread > 0, spread, np.inf)


def _apart(one: Tensor, other: Tensor, scale: np.ndarray | None) -> Tensor:
    """Return the mean difference in each row, float64 [N]; of indices the share that differs."""
    a, b = flat(one), flat(other)
    if not a.shape[1]:
        return torch.zeros(len(one)).double()
    apart = (a != b).astype(np.float64) if scale is None else np.abs(a - b) / scale
    return torch.from_numpy(np.nan_to_num(apart).mean(1))


def _put(into: Tensor, other: Tensor, chosen: Tensor) -> Tensor:
    return torch.where(chosen.view(-1, *[1] * (into.ndim - 1)), other, into)
