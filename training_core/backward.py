"""Backward of per-example losses, without what `Tensor.backward` looks at each time.

And what each example's loss counts for in it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import graph

# Private, as of torch 2.13. `Tensor.backward` is this call after checks of shape and type that cost
# 20 to 35 µs; here both hold by construction. Where it is gone, the public one does the same.
_run: Any = getattr(graph, "_engine_run_backward", None)


def backward(losses: Tensor, shares: Tensor) -> None:
    """Add to each leaf's gradient that of the losses' weighted sum.

    Args:
        losses: Of each example, float [N].
        shares: What each of them counts for: same shape, type and device.
    """
    if _run is None or not losses.requires_grad:
        torch.autograd.backward(losses, shares)
    else:
        _run((losses,), (shares,), False, False, (), allow_unreachable=True, accumulate_grad=True)


class Shares:
    """What each example's loss counts for in its step: 1 / units, and what processes make of that.

    Args:
        factor: The strategy's `gradient_factor`.
        scaler: Of the loss, under fp16; a disabled one otherwise.
    """

    def __init__(self, factor: float, scaler: torch.amp.GradScaler) -> None:
        self._factor, self._scaler = factor, scaler
        self._known: dict[tuple[int, float], Tensor] = {}

    def of(self, losses: Tensor, weight: Tensor | None, units: float) -> Tensor:
        """Return the shares, float [N]; zeros for a microbatch that has a weight.

        Args:
            losses: Of a microbatch, float [N].
            weight: The microbatch's (`feeds.batches.Microbatch`).
            units: Of the step, over all ranks and microbatches.
        """
        if weight is not None:
            return torch.zeros_like(losses)
        share = self._known.get((len(losses), units))
        if share is None:
            factor = self._factor / (units or 1.0)  # of padding alone: nothing
            share = torch.full_like(losses, factor).detach()
            if len(self._known) < 16:  # steps are alike, but for the last one of an epoch
                self._known[len(losses), units] = share
        return self._scaler.scale(share)
