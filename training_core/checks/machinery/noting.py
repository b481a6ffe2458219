"""A network and a task that learn nothing and note which rows the trainer shows them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from training_core.examples import Examples

ROW = "row in the table"  # an array beside the task's own


def numbered(examples: Examples) -> Examples:
    """Return the examples with their places as one more array."""
    places = torch.arange(len(examples))
    return Examples({**examples.arrays, ROW: places}, examples.target, examples.units)


class Noting(nn.Module):
    """Notes the rows of each call in train mode, and hands all else to a network.

    Args:
        inner: The network; None: outputs are one weight for each row.

    Attributes:
        rows: int64 [n] of each call.
    """

    def __init__(self, inner: nn.Module | None = None) -> None:
        super().__init__()
        self.inner = inner
        self.rows: list[Tensor] = []
        if inner is None:
            self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, **arrays: Tensor) -> Tensor:
        rows = arrays.pop(ROW)
        if self.training:
            self.rows.append(rows.clone())
        outputs: Tensor = self.weight * rows if self.inner is None else self.inner(**arrays)
        return outputs


class Comparing(Noting):
    """Also compares what it is given with the examples of those rows.

    It is network and task in one: its loss sees the target of the call before.

    Args:
        examples: As `numbered` returns them.

    Attributes:
        wrong: The first array that differed; empty: none.
    """

    def __init__(self, examples: Examples) -> None:
        super().__init__()
        self.wrong = ""
        self._arrays, self._target = examples.arrays, examples.target
        self._last = torch.zeros(0, dtype=torch.int64)

    def forward(self, **arrays: Tensor) -> Tensor:
        self._last = arrays[ROW].clone()
        if self.training:
            for name, array in arrays.items():
                self._compare(name, array, self._arrays[name])
        return super().forward(**arrays)

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        """Return the outputs, float [N]."""
        if self.training:
            self._compare("the target", target, self._target)
        return outputs.flatten()

    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        """There are none."""
        return {}

    def _compare(self, name: str, found: Tensor, whole: Tensor) -> None:
        expected = whole[self._last]
        if found.is_floating_point():
            found, expected = found.nan_to_num(), expected.nan_to_num()
        if not torch.equal(found, expected):
            self.wrong = self.wrong or name
