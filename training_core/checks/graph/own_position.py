"""Outputs of a sequence or an image that do not stand where their inputs do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from training_core.checks.graph.calling import change, outputs_of
from training_core.examples import Examples

ROWS, PLACES = 4, 128  # rows in which a position is replaced, and positions that are
FEWEST = 8  # positions
ELEMENTS = 8_000_000  # of all copies of the arrays
SHIFT = 2  # positions that inputs and outputs may be apart: a language model reads one before
OWN = 0.8  # mean percentile of the own position: chance is 0.5, and healthy is above 0.9
CLEARLY = 0.15  # more of it, once the view is undone


@dataclass(frozen=True)
class Misplaced:
    """An array whose positions are not those of the outputs.

    Attributes:
        array: Its name.
        own: Where the output at a position's own place ranks among all outputs that it moves, as
            the mean percentile.
    """

    array: str
    own: float


def misplaced(models: Sequence[nn.Module], examples: Examples) -> Misplaced | None:
    """Find outputs [N, C, T] that were viewed as [N, T, C], which a permute was meant to do.

    Each position's values are put from another row, and outputs at all positions compared: the own
    one answers most, or one beside it. Where it answers like any other, but does answer most once
    the view is undone, this is what happened. Networks that look everywhere, or elsewhere on
    purpose, answer neither way.

    Args:
        models: Trained and untrained ones, in eval mode; it has to be so in all of them.
        examples: Arrays [N, channels, H, W], [N, channels, T], [N, T, channels] and, of whole
            numbers, [N, T] are looked at.
    """
    outputs = outputs_of(models[0], examples.take(slice(0, ROWS)))
    if outputs.ndim != 3 or outputs.shape[1] < FEWEST or outputs.shape[2] < 2:
        return None
    _, places, classes = outputs.shape
    for name, array in examples.arrays.items():
        axes = _axes(array, places)
        if not axes:
            continue
        ranks = []
        for model in models:
            chosen, moved = _moved(model, examples, name, axes)
            if len(chosen) < FEWEST:
                break
            as_it_is = _own(chosen, moved.reshape(-1, places, classes).sum(2))
            undone = _own(chosen, moved.reshape(-1, classes, places).sum(1))
            ranks.append((as_it_is, undone))
        if (
            ranks
            and len(ranks) == len(models)
            and all(a < OWN < u and u - a > CLEARLY for a, u in ranks)
        ):
            return Misplaced(name, max(as_it_is for as_it_is, _ in ranks))
    return None


def _axes(array: Tensor, places: int) -> tuple[int, ...]:
    """Return the axes of an array that are the outputs' positions; none: it has no such axes."""
    shape = tuple(array.shape)
    if not array.is_floating_point():
        return (1,) if shape[1:] == (places,) else ()
    if array.ndim == 4:
        return (2, 3) if math.prod(shape[2:]) == places else ()
    if array.ndim == 3:
        return next(((axis,) for axis in (2, 1) if shape[axis] == places), ())
    return ()


def _moved(
    model: nn.Module, examples: Examples, name: str, axes: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """Return positions, int64 [places], and how far each moves outputs, [places, T * C]."""
    rows = examples.take(torch.arange(min(len(examples), 2 * ROWS)))
    width = sum(array[0].numel() for array in rows.arrays.values())
    shape = [rows.arrays[name].shape[axis] for axis in axes]
    whole = math.prod(shape)
    count = min(PLACES, whole, ELEMENTS // (ROWS * max(1, width)))
    chosen = torch.linspace(0, whole - 1, max(1, count)).long()
    base = rows.take(torch.arange(min(ROWS, len(rows))))
    before = outputs_of(model, base)
    found, kept = [], []
    for place in chosen.tolist():
        after = base.clone()
        into = _at(after.arrays[name], axes, shape, place)
        others = _at(rows.arrays[name], axes, shape, place).roll(-len(base), 0)
        into.copy_(others[: len(base)])
        if torch.equal(after.arrays[name], base.arrays[name]):
            continue
        moved = change(before, outputs_of(model, after)).flatten(1).mean(0)
        if moved.isfinite().all() and moved.any():
            found.append(moved)
            kept.append(place)
    return torch.tensor(kept, dtype=torch.int64), torch.stack(found) if found else before[:0]


def _at(array: Tensor, axes: tuple[int, ...], shape: list[int], place: int) -> Tensor:
    """Return the values at a position, a view, first dimension N."""
    if len(axes) == 2:
        return array[:, :, place // shape[1], place % shape[1]]
    return array.select(axes[0], place)


def _own(chosen: Tensor, moved: Tensor) -> float:
    """Return the mean percentile of the own position's answer, at the shift where it is highest.

    Args:
        chosen: Positions, int64 [places].
        moved: How far each moves the output at each position, float [places, T].
    """
    best = 0.0
    for shift in range(-SHIFT, SHIFT + 1):
        target = chosen + shift
        inside = (target >= 0) & (target < moved.shape[1])
        own = moved[inside].gather(1, target[inside, None])
        below = (moved[inside] < own).double() + 0.5 * (moved[inside] == own).double()
        best = max(best, float(below.mean()) if len(below) else 0.0)
    return best
