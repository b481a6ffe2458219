"""How far a gradient's norm may go: a fixed limit, a running percentile of norms, or both."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

# torch.nn.utils.clip_grad_norm_ adds it to the norm as well
_TINY = 1e-6


class Clipping:
    """Says what gradients are divided by: 1, or more where their norm is beyond the limit.

    The percentile is that of the newest norms, this step's among them (AutoClip: Seetharaman et al.
    2020); it lives in a ring on the device, so nothing waits. A norm that is not finite takes a
    place in the ring and counts for nothing.

    Args:
        norm: Fixed limit; 0: none.
        percentile: Of the newest norms; 0: none.
        history: How many norms that are.
        device: Where norms are.
    """

    def __init__(
        self, *, norm: float, percentile: float, history: int, device: torch.device
    ) -> None:
        self._fixed, self._share = norm, percentile / 100
        self._norms = torch.full((history if percentile else 0,), torch.nan, device=device)
        self._next = torch.zeros((), dtype=torch.int64)  # on the CPU: an index that is known there

    def limit(self, norm: Tensor) -> Tensor | float | None:
        """Return the largest norm of this step, or None for no limit; counts `norm` in."""
        if not self._share:
            return self._fixed or None
        place = int(self._next) % len(self._norms)
        self._next += 1
        self._norms[place] = torch.where(torch.isfinite(norm), norm, torch.nan)
        # before the first finite norm there is no limit
        limit = torch.nanquantile(self._norms, self._share).nan_to_num(torch.inf)
        return limit.clamp(min=_TINY, max=self._fixed or None)

    def divisor(self, norm: Tensor) -> Tensor | None:
        """Return what gradients of this norm are divided by (0-d, at least 1); None: by nothing."""
        limit = self.limit(norm)
        return None if limit is None else ((norm + _TINY) / limit).clamp_(min=1)

    def divisor_of(self, value: float, norm: Tensor) -> float:
        """Return the same as a number, for a norm whose value is known."""
        limit = self.limit(norm)
        return 1.0 if limit is None else max(1.0, (value + _TINY) / float(limit))

    def state_dict(self) -> dict[str, Tensor]:
        """Return the live tensors; without a percentile there are none."""
        return {"clip_norms": self._norms, "clip_next": self._next} if self._share else {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on with the norms of a state, as many as there is room for."""
        if not self._share or "clip_norms" not in state:
            return
        kept, place = state["clip_norms"], int(state["clip_next"])
        if len(kept) == len(self._norms):
            self._norms.copy_(kept)
            self._next.fill_(place)
            return
        newest = kept.roll(-place % len(kept))[-len(self._norms) :]
        self._norms.fill_(torch.nan)
        self._norms[: len(newest)] = newest
        self._next.fill_(len(newest))
