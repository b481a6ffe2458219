"""A thread that prepares batches while the ones before are worked on."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from dataclasses import replace
from queue import SimpleQueue

import torch

from training_core.examples import Examples
from training_core.feeds.batches import Feed, Sharing, StepBatch
from training_core.feeds.chunks import ChunkedFeed

Chunk = list[StepBatch]


class Prefetched(ChunkedFeed):
    """Another feed, some chunks ahead in a thread.

    Worth it where the feed waits for a disk or for workers, and for a GPU: rows are gathered into
    page-locked memory, which is not used again before the stream that was current when they were
    handed out has done its copies. An error in the thread is raised where the batch is asked for.
    The thread ends when the iterator is closed or collected.

    Args:
        feed: One of ours goes ahead by chunks; any other by steps, each of which is copied.
        depth: Chunks ahead, at least 1.
        pin: Prepare in page-locked memory; None: if there is a GPU.
    """

    def __init__(self, feed: Feed, *, depth: int = 2, pin: bool | None = None) -> None:
        self._feed = feed if isinstance(feed, ChunkedFeed) else _Copied(feed)
        self._depth = depth
        self._pin = torch.cuda.is_available() if pin is None else pin

    @property
    def inner(self) -> Feed:
        """The feed that it goes ahead in."""
        return self._feed

    def __len__(self) -> int:
        return len(self._feed)

    def chunks(
        self, sharing: Sharing, *, samples: int, buffers: int = 1, pin: bool = False
    ) -> Generator[Chunk, None, None]:
        """Yield this rank's part of every step, many steps at once (see `ChunkedFeed`)."""
        pin = pin or self._pin
        count = self._depth + buffers
        source = self._feed.chunks(sharing, samples=samples, buffers=count, pin=pin)
        ahead = _Ahead(source, free=count)
        try:
            for done, chunk in enumerate(ahead, 1):
                yield chunk
                if done >= buffers:  # the oldest of those that had to stay valid
                    ahead.release(_copies_until_now() if pin else None)
        finally:
            ahead.stop()


class _Ahead:
    """A thread that draws from an iterator as long as there is free memory for it.

    Args:
        source: Used in the thread alone.
        free: How many items may be alive at once.
    """

    def __init__(self, source: Generator[Chunk, None, None], *, free: int) -> None:
        self._source = source
        self._free: SimpleQueue[torch.cuda.Event | None] = SimpleQueue()
        self._ready: SimpleQueue[Chunk | BaseException] = SimpleQueue()
        self._stopped = False
        for _ in range(free):
            self._free.put(None)
        self._thread = threading.Thread(target=self._run, name="prefetch", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[Chunk]:
        while True:
            chunk = self._ready.get()
            if isinstance(chunk, StopIteration):
                return
            if isinstance(chunk, BaseException):
                raise chunk
            yield chunk

    def release(self, copies: torch.cuda.Event | None) -> None:
        """Give an item's memory back, to be used again once its copies are done."""
        self._free.put(copies)

    def stop(self) -> None:
        """End the thread, at the latest after the item that it is at."""
        self._stopped = True
        self._free.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            while True:
                copies = self._free.get()
                if self._stopped:
                    return
                if copies is not None:
                    copies.synchronize()
                self._ready.put(next(self._source))
        except BaseException as error:  # noqa: BLE001 (raised again where the batch is asked for)
            self._ready.put(error)
        finally:
            self._source.close()  # here: a running generator can be closed by its own thread alone


class _Copied(ChunkedFeed):
    """A feed whose batches are valid until the next: each is copied, to outlive it."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def __len__(self) -> int:
        return len(self._feed)

    def chunks(
        self, sharing: Sharing, *, samples: int, buffers: int = 1, pin: bool = False
    ) -> Generator[Chunk, None, None]:
        """Yield one step at a time, in memory of its own."""
        for step in self._feed.steps(sharing, samples=samples):
            microbatches = [
                replace(microbatch, examples=_copy(microbatch.examples, pin=pin))
                for microbatch in step.microbatches
            ]
            yield [replace(step, microbatches=microbatches)]


def _copy(examples: Examples, *, pin: bool) -> Examples:
    return examples.pin() if pin else examples.clone()


def _copies_until_now() -> torch.cuda.Event:
    """Return an event that occurs when what the current stream was asked to do is done."""
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record()
    return event
