"""The inputs of a network one by one: columns, positions, channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from training_core.examples import Examples

WIDEST = 64  # an axis with more places is no axis of channels
DONORS = 64  # rows that values are taken from


@dataclass(frozen=True)
class Input:
    """One input.

    Attributes:
        array: Its array's name.
        axis, place: Where it is in that array; axis 0: the whole array.
        label: For a person.
    """

    array: str
    axis: int
    place: int
    label: str

    def of(self, examples: Examples) -> Tensor:
        """Return its values, a view, first dimension N."""
        array = examples.arrays[self.array]
        return array.select(self.axis, self.place) if self.axis else array


def inputs_of(examples: Examples, preprocessor: Any) -> list[Input]:
    """Return all inputs: columns of tables and tokens, channels of images and series.

    Of an array with more than two dimensions the shorter one of the second and the last axis is
    taken for the channels; if both are long the array is one input.
    """
    return [each for name in examples.arrays for each in _inputs(name, examples, preprocessor)]


def _inputs(name: str, examples: Examples, preprocessor: Any) -> list[Input]:
    array = examples.arrays[name]
    if not array.numel():
        return []
    if array.ndim < 2:
        return [Input(name, 0, 0, name)]
    if array.ndim == 2:
        labels = _columns(array, preprocessor)
        labels = labels or [f"{name}[{i}]" for i in range(array.shape[1])]
        return [Input(name, 1, i, label) for i, label in enumerate(labels)]
    axis = min((1, array.ndim - 1), key=lambda axis: array.shape[axis])
    if array.shape[axis] > WIDEST:
        return [Input(name, 0, 0, name)]
    where = "[:, {}]" if axis == 1 else "[..., {}]"
    return [Input(name, axis, i, name + where.format(i)) for i in range(array.shape[axis])]


def _columns(array: Tensor, preprocessor: Any) -> list[str]:
    """Return the columns' names where a preprocessor like the tabular one tells them."""
    attribute = "number_columns" if array.is_floating_point() else "categories"
    names = getattr(preprocessor, attribute, None)
    known = isinstance(names, list | tuple) and len(names) == array.shape[1]
    return [str(name) for name in names] if known else []  # type: ignore[union-attr]


@dataclass(frozen=True)
class Donors:
    """Rows that hold another value of an input, for any row there may be."""

    rows: Tensor
    values: Tensor

    def for_rows(self, values: Tensor) -> Tensor:
        """Return for each value, [n, …], a row that has another one, int64 [n]."""
        different = (values.flatten(1)[:, None] != self.values.flatten(1)[None]).any(2)
        return self.rows[different.int().argmax(1)]


def donors_of(each: Input, examples: Examples) -> Donors | None:
    """Return rows to take other values of an input from; None: it is the same in all rows."""
    values = each.of(examples).reshape(len(examples), -1)
    other = (values != values[:1]).any(1).nonzero().flatten()
    if not len(other):
        return None
    drawn = torch.randperm(len(values), generator=torch.Generator().manual_seed(0))[:DONORS]
    # any value differs from that of row 0, or from one that does
    rows = torch.cat([drawn, torch.tensor([0]), other[:1]])
    return Donors(rows, values[rows])
