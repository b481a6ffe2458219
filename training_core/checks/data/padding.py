"""Where sequences are padded: a run of one token at the end of rows, of different lengths."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from training_core.checks.data.arrays import column_names
from training_core.checks.subject import Subject
from training_core.task import PADDING

_LENGTHS = 3  # different ones, so that a table's last column is not taken for a sequence
_LEAST = 4  # positions
_INSIDE = 0.01  # share of rows that may hold the token before their end


@dataclass(frozen=True)
class Padding:
    """Padding of an array.

    Attributes:
        name: The array, int [N, T].
        token: That fills it.
        runs: Padded positions at the end of each row, int64 [N].
    """

    name: str
    token: int
    runs: Tensor

    def within(self, width: int) -> Tensor:
        """Return which of T positions are padded, bool [N, T]."""
        return torch.arange(width) >= (width - self.runs).unsqueeze(1)


def find_padding(subject: Subject) -> Padding | None:
    """Return the padding of the first array of tokens that has any."""
    examples = subject.examples
    for name, array in examples.arrays.items():
        is_tokens = array.ndim == 2 and array.shape[1] >= _LEAST and not array.is_floating_point()
        if (
            not is_tokens
            or array.dtype is torch.bool
            or column_names(subject.preprocessor, name, tuple(array.shape))
        ):
            continue
        token = int(torch.mode(array[:, -1]).values)
        runs = trailing(array == token)
        if subject.task.kind == "sequence" and examples.target.shape == array.shape:
            # The token of the padding may mean something elsewhere; where the target counts, it
            # does. The last token has no next one, and is not padding for that.
            hidden = trailing(examples.target == PADDING) - 1
            counted = torch.minimum(runs, hidden.clamp(min=0))
            if len(torch.unique(counted)) >= _LENGTHS:
                return Padding(name, token, counted)
        inside = ((array == token).sum(1) > runs + 1).double().mean()
        several = len(torch.unique(runs)) >= _LENGTHS
        if several and float(inside) <= _INSIDE and len(torch.unique(array)) > 2:
            return Padding(name, token, runs)
    return None


def trailing(is_it: Tensor) -> Tensor:
    """Return the length of the run of True at the end of each row of bool [N, T]."""
    return is_it.flip(1).long().cumprod(1).sum(1)
