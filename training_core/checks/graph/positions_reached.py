"""Positions of signals and images that no output reads: what a stride leaps over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from training_core.checks.graph.calling import change_by_row, outputs_of
from training_core.determinism import seed_everything
from training_core.examples import Examples

ROWS = 64
MANY = 0.25  # of an array's positions: far more than what strides leave over at an end


@dataclass(frozen=True)
class Unread:
    """Positions of an array that no output reads.

    Attributes:
        array: Its name.
        share: Of its positions.
        inside: Whether positions on both sides of them are read.
    """

    array: str
    share: float
    inside: bool


def unread_positions(models: Sequence[nn.Module], examples: Examples) -> list[Unread]:
    """Return the arrays of signals and images of which a large part reaches no output.

    Where no output of any row has a gradient, values of other rows are put, which must not change
    an output by one bit. Channels are not positions; they are looked at one by one elsewhere.

    Args:
        models: Trained and untrained ones, in eval mode; what is unread is so in all of them.
        examples: Float arrays [N, channels, …] or [N, …, channels] are looked at.
    """
    names = [n for n, a in examples.arrays.items() if a.ndim > 2 and a.is_floating_point()]
    if not names:
        return []
    rows = examples.take(slice(0, ROWS))
    read = {name: torch.zeros(rows.arrays[name].shape[1:], dtype=torch.bool) for name in names}
    for model in models:
        for name, gradient in _gradients(model, rows, names).items():
            read[name] |= (gradient != 0).any(0)
    found = []
    for name in names:
        axis = 0 if read[name].shape[0] <= read[name].shape[-1] else -1  # of the channels
        unread = ~read[name].any(axis)
        varies = (rows.arrays[name] != rows.arrays[name][:1]).any(0).any(axis)
        share = float((unread & varies).double().mean())
        if share >= MANY and not _changes(models, rows, name, unread.unsqueeze(axis)):
            found.append(Unread(name, share, _is_inside(unread)))
    return found


def leaping(model: nn.Module) -> list[str]:
    """Return the names of convolutions and poolings whose stride is longer than what they read."""
    found = []
    for name, module in model.named_modules():
        sizes = [getattr(module, key, None) for key in ("stride", "kernel_size", "dilation")]
        stride, kernel, dilation = (_tuple(size) for size in sizes)
        reach = [
            (k - 1) * d + 1 for k, d in zip(kernel, dilation or (1,) * len(kernel), strict=False)
        ]
        if any(step > long for step, long in zip(stride, reach, strict=False)):
            found.append(name)
    return found


def _tuple(size: object) -> tuple[int, ...]:
    if isinstance(size, int):
        return (size,)
    return tuple(size) if isinstance(size, tuple) else ()


def _gradients(model: nn.Module, rows: Examples, names: list[str]) -> dict[str, Tensor]:
    given = rows.clone().arrays
    leaves = [given[name].requires_grad_() for name in names]
    seed_everything(0)
    # a copy of each: the model may write to its inputs, which a leaf does not allow
    outputs: Tensor = model(**{name: array.clone() for name, array in given.items()})
    if not outputs.requires_grad:
        return {}
    weights = torch.rand(outputs.shape) + 0.5
    found = torch.autograd.grad((outputs.float() * weights).sum(), leaves, allow_unused=True)
    return {n: g for n, g in zip(names, found, strict=True) if g is not None}


def _changes(models: Sequence[nn.Module], rows: Examples, name: str, places: Tensor) -> bool:
    changed = rows.clone()
    array = changed.arrays[name]
    changed.arrays[name] = torch.where(places, array.roll(1, 0), array)
    return any(
        bool(change_by_row(outputs_of(model, rows), outputs_of(model, changed)).any())
        for model in models
    )


def _is_inside(unread: Tensor) -> bool:
    """Say whether along an axis a position is unread between two that are read."""
    for axis in range(unread.ndim):
        other = [a for a in range(unread.ndim) if a != axis]
        line = (~unread).any(tuple(other)) if other else ~unread
        read = line.nonzero().flatten().tolist()
        if read and len(read) < read[-1] - read[0] + 1:
            return True
    return False
