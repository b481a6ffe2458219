"""A thread that runs ahead: not too far, not for longer than it is wanted, and never in silence."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from itertools import islice

import pytest
import torch
from feed_contract import noted, numbered

from training_core.feeds.batches import Sharing, StepBatch
from training_core.feeds.chunks import ChunkedFeed
from training_core.feeds.memory import MemoryFeed
from training_core.feeds.prefetch import Prefetched

ALONE = Sharing.of(batch_size=4, microbatches=1, rank=0, world_size=1, seed=0)


class Observed(ChunkedFeed):
    """Counts the chunks that were asked for, and breaks after some."""

    def __init__(self, *, breaks_after: int = 10**9) -> None:
        self._inner = MemoryFeed(numbered(5_000))
        self._breaks_after = breaks_after
        self.asked = 0
        self.closed = threading.Event()

    def __len__(self) -> int:
        return len(self._inner)

    def chunks(
        self, sharing: Sharing, *, samples: int, buffers: int = 1, pin: bool = False
    ) -> Generator[list[StepBatch], None, None]:
        try:
            for chunk in self._inner.chunks(sharing, samples=samples, buffers=buffers, pin=pin):
                self.asked += 1
                if self.asked > self._breaks_after:
                    raise OSError("the disk went away")
                yield chunk
        finally:
            self.closed.set()


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "prefetch"]


def eventually(condition: object) -> bool:
    assert callable(condition)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.001)
    return False


@pytest.mark.parametrize("depth", [1, 3])
def test_it_runs_ahead_by_its_depth_and_no_further(depth: int) -> None:
    feed = Observed()
    chunks = Prefetched(feed, depth=depth).chunks(ALONE, samples=0)
    next(chunks)
    assert eventually(lambda: feed.asked == 1 + depth)
    time.sleep(0.05)
    assert feed.asked == 1 + depth
    next(chunks)
    assert eventually(lambda: feed.asked == 2 + depth)


def test_a_batch_stays_as_it_is_while_the_thread_runs_ahead() -> None:
    feed = Observed()
    steps = Prefetched(feed).steps(ALONE, samples=0)
    for expected in islice(MemoryFeed(numbered(5_000)).steps(ALONE, samples=0), 2_000):
        step = next(steps)
        if step.samples_after % 500 == 0:
            time.sleep(0.002)  # time to spoil it
        assert noted(step) == noted(expected)


def test_closing_the_iterator_ends_the_thread_and_closes_the_feed() -> None:
    feed = Observed()
    steps = Prefetched(feed).steps(ALONE, samples=0)
    next(steps)
    assert threads()
    steps.close()
    assert not threads()
    assert feed.closed.is_set()


def test_dropping_the_iterator_ends_the_thread() -> None:
    steps = Prefetched(Observed()).steps(ALONE, samples=0)
    next(steps)
    del steps
    assert not threads()


def test_an_error_in_the_thread_is_raised_where_the_batch_is_asked_for() -> None:
    chunks = Prefetched(Observed(breaks_after=2)).chunks(ALONE, samples=0)
    next(chunks)
    next(chunks)
    with pytest.raises(OSError, match="the disk went away"):
        next(chunks)
    assert not threads()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="page-locked memory needs a GPU")
def test_copies_to_a_gpu_that_the_host_does_not_wait_for_have_the_right_rows() -> None:
    device = torch.device("cuda")
    steps = Prefetched(MemoryFeed(numbered(5_000)), depth=1).steps(ALONE, samples=0)
    whole = MemoryFeed(numbered(5_000)).steps(ALONE, samples=0)
    busy = torch.randn(4_096, 4_096, device=device)
    copies, expected = [], []
    for step, other in islice(zip(steps, whole, strict=False), 1_500):
        examples = step.microbatches[0].examples
        assert examples.target.is_pinned()
        busy = busy @ busy.T / 4_096  # the copies wait behind it, the host runs on
        copies.append(examples.to(device, non_blocking=True).arrays["row"])
        expected += noted(other).rows
    assert torch.cat(copies).tolist() == expected
