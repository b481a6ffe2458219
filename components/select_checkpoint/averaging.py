"""The mean of several checkpoints' weights: one more candidate.

Checkpoints of one training lie around the same minimum, and their mean is often nearer to it than
each of them: Izmailov et al. 2018, arXiv:1803.05407.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

State = dict[str, Tensor]


def averaged(states: Iterable[State]) -> State:
    """Return the mean of weights, added up in float64 and given the type of the first's.

    What is no number with a fraction (counters, masks), and what has another shape in one of them,
    is taken from the first, which should be the best.

    Args:
        states: One or more, taken one at a time.
    """
    count, first, sums = 0, State(), State()
    for state in states:
        count += 1
        if count == 1:
            first = state
            sums = {n: _wide(t) for n, t in state.items() if _has_fraction(t)}
            continue
        for name in list(sums):
            other = state.get(name)
            if other is None or other.shape != sums[name].shape:
                del sums[name]
            else:
                sums[name] += _wide(other)
    means = {name: (total / count).to(first[name].dtype) for name, total in sums.items()}
    return {name: means.get(name, tensor) for name, tensor in first.items()}


def _has_fraction(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _wide(tensor: Tensor) -> Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64, copy=True)
