"""A copy of a rank's state in host memory, taken while the next forward and backward run.

Weights and moments change in the optimiser's step only, so they may be read until then. The memory
is used again for each checkpoint: copying into fresh pages is six times slower than into old ones.
"""

from __future__ import annotations

import mmap
from contextlib import suppress

import torch
from torch import Tensor


class HostCopy:
    """One reused block of host memory, and the copying into it.

    On a GPU the memory is pinned and the copies run on a stream of their own: it begins when what
    was enqueued before is done, and the next update is made to wait for it on the device.

    Args:
        device: Where the tensors are.
    """

    def __init__(self, device: torch.device) -> None:
        self.memory = torch.empty(0, dtype=torch.uint8)
        self.device = device
        self._on_gpu = device.type == "cuda"
        self._stream = torch.cuda.Stream(device) if self._on_gpu else None  # type: ignore[no-untyped-call]
        self._copied = torch.cuda.Event() if self._on_gpu else None  # type: ignore[no-untyped-call]

    def reserve(self, size: int, *, room: int) -> bool:
        """Have so many bytes; if the memory must be new, `room` more. Say whether it is new."""
        if size <= len(self.memory):
            return False
        self.memory = torch.empty(0, dtype=torch.uint8)  # the old block goes before the new comes
        # zeros, so that no bytes of another origin lie between the pieces
        if self._on_gpu:
            self.memory = torch.zeros(size + room, dtype=torch.uint8, pin_memory=True)
        else:
            self.memory = torch.frombuffer(_fresh_pages(size + room), dtype=torch.uint8)
        return True

    @torch.no_grad()
    def copy_now(self, targets: list[Tensor], sources: list[Tensor]) -> None:
        """Copy what the next forward changes; the streamed copies come after it."""
        if targets:
            torch._foreach_copy_(targets, sources, non_blocking=self._on_gpu)
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self.device))

    @torch.no_grad()
    def copy(self, targets: list[Tensor], sources: list[Tensor]) -> None:
        """Copy what stays until the optimiser's step: done, or on a GPU enqueued, on return."""
        with torch.cuda.stream(self._stream):  # nothing where there is no stream
            if targets:
                torch._foreach_copy_(targets, sources, non_blocking=self._on_gpu)
            if self._copied is not None:
                self._copied.record(self._stream)

    def hold_updates(self) -> None:
        """Let what is enqueued from now on wait until the copies are made: no wait for the CPU."""
        if self._copied is not None:
            torch.cuda.current_stream(self.device).wait_event(self._copied)

    def content(self, size: int) -> memoryview:
        """Wait until the copies are made; return the first bytes of the block, not copied again."""
        if self._copied is not None:
            self._copied.synchronize()
        return self.memory[:size].numpy().data


def _fresh_pages(size: int) -> mmap.mmap:
    """Zeros from the kernel, which come when they are first written to: not while one waits."""
    pages = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without them
            pages.madvise(mmap.MADV_HUGEPAGE)
    return pages
