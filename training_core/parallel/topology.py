"""The same weights, bit for bit, on any number of ranks: canonical microbatches.

Each step is cut into a fixed number of microbatches, whatever the number of ranks. A rank computes
its share of them, each from the same running statistics and from a random state that depends on
the step and the microbatch alone. The gradients of all are gathered and added up in one fixed
order. Floating-point addition is not associative: any all-reduce would add in an order that
depends on the ranks.

What it costs: microbatches that may be smaller than a rank's share, one gradient buffer for each
of them, and an all-gather of `parts` gradients instead of one all-reduce, not overlapped. Each
rank must compute with as many threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce

import torch
import torch.distributed as dist
from torch import Tensor, nn

from training_core.errors import ConfigurationError
from training_core.feeds.order import mixed_seed
from training_core.parallel.group import ProcessGroup
from training_core.parallel.single import SingleProcess


class CanonicalMicrobatches:
    """Replicated training whose result does not depend on the number of ranks.

    Args:
        inner: The processes.
        parts: Microbatches a step, over all ranks; the number of ranks divides it.
        seed: Of the random states.
    """

    gradient_factor = 1.0
    shards = False
    flat = True

    def __init__(self, inner: SingleProcess | ProcessGroup, *, parts: int, seed: int) -> None:
        if parts % inner.world_size:
            raise ConfigurationError(
                f"training.canonical_microbatches is {parts}, which {inner.world_size} processes "
                "cannot share equally",
                hint="start a number of processes that divides it",
            )
        self.inner, self.seed, self.parts = inner, seed, parts
        self.rank, self.world_size, self.device = inner.rank, inner.world_size, inner.device
        self.sum_, self.gather, self.close = inner.sum_, inner.gather, inner.close
        self.gradient_norm = inner.gradient_norm
        self._first = self.rank * (parts // self.world_size)

    def prepare(self, model: nn.Module) -> nn.Module:
        model = model.to(self.device)
        self.inner.share(model)
        self._trained = [p for p in model.parameters() if p.requires_grad]
        self._buffers = list(model.buffers())
        self._floating = [b for b in self._buffers if b.is_floating_point()]
        self._before = [torch.empty_like(b) for b in self._buffers]
        self._floating_before = [
            before
            for before, buffer in zip(self._before, self._buffers, strict=True)
            if buffer.is_floating_point()
        ]
        values = (*self._trained, *self._floating)
        shapes = [value.shape for value in values]
        dtype = reduce(torch.promote_types, (value.dtype for value in values))
        sizes = [shape.numel() for shape in shapes]
        self._rows, self._all = (
            torch.zeros(rows, sum(sizes), dtype=dtype, device=self.device)
            for rows in (self.parts // self.world_size, self.parts)
        )

        def views(row: Tensor) -> list[Tensor]:
            pieces = zip(torch.split(row, sizes), shapes, strict=True)
            return [piece.view(shape) for piece, shape in pieces]

        self._views = [views(row) for row in self._rows]
        self._summed = views(self._all[0])
        return model

    def unwrapped(self, model: nn.Module) -> nn.Module:
        return model

    @contextmanager
    def microbatch(
        self, model: nn.Module, *, samples: int, index: int, last: bool
    ) -> Iterator[None]:
        """Compute a microbatch as if no other were there, and put its gradient aside."""
        torch.manual_seed(mixed_seed(self.seed, samples, self._first + index))
        if self._buffers:
            pairs = (self._before, self._buffers) if index == 0 else (self._buffers, self._before)
            torch._foreach_copy_(*pairs)
        yield
        for view, parameter in zip(self._views[index], self._trained, strict=False):
            if parameter.grad is None:
                view.zero_()
            else:
                view.copy_(parameter.grad)
                parameter.grad.zero_()
        changes = self._views[index][len(self._trained) :]
        for view, buffer, before in zip(
            changes, self._floating, self._floating_before, strict=True
        ):
            view.copy_(buffer - before)  # what does not change then stays as it is

    @torch.no_grad()
    def gradients_ready(self) -> None:
        """Add up the gradients of all microbatches, and average the statistics, in their order."""
        if self.world_size > 1:
            dist.all_gather_single(self._all, self._rows)
        else:
            self._all.copy_(self._rows)
        for row in self._all[1:]:
            self._all[0].add_(row)
        for parameter, view in zip(self._trained, self._summed, strict=False):
            if parameter.grad is None:
                parameter.grad = view.clone()
            else:
                parameter.grad.copy_(view)
        changes = self._summed[len(self._trained) :]
        for buffer, before, view in zip(
            self._floating, self._floating_before, changes, strict=True
        ):
            buffer.copy_(before + view / self.parts)

    def synchronise_statistics(self) -> None:
        """They never differ."""
