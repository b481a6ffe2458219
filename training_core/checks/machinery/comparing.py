"""When two trainings of the same model count as the same: beyond rounding, and no further."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

# A bug of the loop changes updates by some per cent or more; the same sums in another order by
# some 1e-6 of them (measured on the networks of the tests, fp32).
TOLERANCE = 1e-3
_AMPLIFIED = 8.0  # times what a disturbance in the last bits grows to
_UNDECIDED = 0.2  # share of an update that rounding decides: nothing can be said of it


@dataclass(frozen=True)
class Difference:
    """One tensor after two trainings.

    Attributes:
        name: Of the parameter or buffer.
        apart: 2-norm of the difference, as a share of how far the training moved it.
        limit: What rounding explains, in the same unit.
    """

    name: str
    apart: float
    limit: float

    @property
    def beyond(self) -> float:
        """How many times the limit; more than 1 is a difference."""
        return self.apart / self.limit


def worst(
    found: Mapping[str, Tensor],
    expected: Mapping[str, Tensor],
    *,
    before: Mapping[str, Tensor],
    disturbed: Mapping[str, Tensor],
) -> Difference | None:
    """Return the tensor that is furthest beyond its limit; None: rounding decides all of them.

    Adam makes a whole step of a gradient that is rounding alone (a bias before a BatchNorm), so
    how far rounding goes is measured: by a training that began with weights a few bits off.

    Args:
        found, expected: State after the two trainings.
        before: State before.
        disturbed: State after the plain training of `disturb`ed weights.
    """
    differences = []
    for name, value in expected.items():
        if not value.is_floating_point():
            continue
        moved = _norm(value - before[name])
        rounding = float(torch.finfo(value.dtype).eps) * _norm(value) * 8
        noise = _AMPLIFIED * _norm(disturbed[name] - value)
        if noise > _UNDECIDED * moved and moved > rounding:
            continue
        unit = max(moved, rounding, 1e-30)
        limit = TOLERANCE + (noise + rounding) / unit
        apart = _norm(found[name] - value) / unit
        differences.append(Difference(name, apart if apart == apart else float("inf"), limit))
    return max(differences, key=lambda each: each.beyond, default=None)


@torch.no_grad()
def disturb(model: nn.Module) -> nn.Module:
    """Change trained weights in their last bits, in place."""
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        if parameter.requires_grad and parameter.is_floating_point():
            signs = torch.randint(0, 2, parameter.shape, generator=generator) * 2 - 1
            parameter.mul_(1 + signs * 2 * torch.finfo(parameter.dtype).eps)
    return model


def _norm(value: Tensor) -> float:
    return float(torch.linalg.vector_norm(value.double()))
