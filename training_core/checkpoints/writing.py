"""One checkpoint on its way from host memory to the store: what background threads do.

    every rank   hash, write, read back, compare; then announce the part with its hash
    rank 0       wait for all parts, write the manifest; then remove the parts, apply retention

Threads speak through the store alone: a collective in a thread would meet those of the training.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from training_core.checkpoints import background
from training_core.checkpoints.agreement import words_of
from training_core.checkpoints.catalogue import Checkpoints, sha256_of
from training_core.checkpoints.manifest import (
    Manifest,
    Shard,
    StoredTensor,
    merged,
    tensors_from_data,
    tensors_to_data,
)
from training_core.checkpoints.numbers import from_json, to_json
from training_core.checkpoints.settings import CheckpointSettings
from training_core.checkpoints.snapshot import Snapshot
from training_core.errors import PeerFailed, TrainingFailed

Result = TypeVar("Result")

_POLL_SECONDS = (0.01, 1.0)  # first and longest pause between two looks for a part
GRACE_SECONDS = 20.0  # that a checkpoint may take after the training's end; torchrun kills at 30


@dataclass(frozen=True)
class Writers:
    """Who writes: the same for all checkpoints of one training.

    Attributes:
        attempt: A token of this training, in the names of all it writes: no other training's files
            are mistaken for its own, or written over.
    """

    checkpoints: Checkpoints
    settings: CheckpointSettings
    rank: int
    world_size: int
    attempt: str

    def shard_name(self, rank: int) -> str:
        """Return the name of what a rank writes."""
        return f"shard-{rank}.{self.attempt}.bin"

    def part_name(self, rank: int) -> str:
        """Return the name of what a rank announces it with."""
        return f"part-{rank}.{self.attempt}.json"

    def withdraw(self, step: int) -> None:
        """Remove what is left of a checkpoint that failed, by rank 0 for all.

        It is whole if the store wrote the manifest and said that it could not: then it stays.
        """
        if self.rank == 0:
            ranks = range(self.world_size)
            names = [f(rank) for f in (self.shard_name, self.part_name) for rank in ranks]
            self.checkpoints.remove_strays(step, names)


class Saving:
    """One checkpoint being written by this rank.

    Its `copy` and its `write` are called once each, in two background threads: weights wait for the
    copy, so that one has to be quick; nothing waits for the rest, so that one has to be patient.

    Args:
        writers: Who writes.
        step: Optimiser steps done.
        facts: Samples, metrics and progress of the manifest, as a JSON list.
        snapshot: This rank's part, begun.
        clean: As in `kept_steps`.

    Attributes:
        copied: Set when weights may change again.
        written: Set when this rank has written its part, or failed.
        ended: Set when nothing more happens: on rank 0, if nothing failed, the checkpoint is there.
        failure: Why there is no checkpoint; on rank 0 also if it is for another rank.
    """

    def __init__(
        self, writers: Writers, step: int, facts: str, snapshot: Snapshot, clean: int | None
    ) -> None:
        self.step, self._clean = step, clean
        self._writers, self._facts, self._snapshot = writers, facts, snapshot
        self._tensors: dict[str, StoredTensor] = {}
        self.copied, self.written, self.ended = (threading.Event() for _ in range(3))
        self.failure: BaseException | None = None
        self._abandoned = threading.Event()

    @property
    def words(self) -> str | None:
        """Why it failed, in words; None if it has not, so far."""
        return None if self.failure is None else words_of(self.failure)

    def abandon(self) -> None:
        """Wait for no other rank's part."""
        self._abandoned.set()

    # ---- in the background ---------------------------------------------------------------------

    def copy(self) -> None:
        """Copy what may change at the next update."""
        self._guarded(self._snapshot.copy)
        self.copied.set()

    def write(self) -> None:
        """Write, verify and announce this rank's part; on rank 0 make a checkpoint of all."""
        self.copied.wait()
        shard = self._guarded(self._write) if self.failure is None else None
        if self._writers.rank > 0:
            self._guarded(lambda: self._announce(shard))
        self.written.set()
        if self._writers.rank == 0 and shard is not None:
            self._guarded(lambda: self._promote(shard))
        self.ended.set()

    def _guarded(self, work: Callable[[], Result]) -> Result | None:
        try:
            return work()
        except BaseException as error:  # noqa: BLE001 (whatever it is, the main thread raises it)
            self.failure = self.failure or error
            return None

    def _write(self) -> Shard:
        name = self._writers.shard_name(self._writers.rank)
        self._tensors = self._snapshot.tensors(name)
        content = self._snapshot.content()
        store, key = self._writers.checkpoints.store, self._key(name)
        digest = hashlib.sha256(content).hexdigest()
        store.put(key, content)
        if sha256_of(store, key) != digest:
            raise TrainingFailed(
                f"the checkpoint {key} does not read back as it was written",
                hint="the storage is faulty; the checkpoint before it is untouched",
            )
        return Shard(digest, len(content))

    def _announce(self, shard: Shard | None) -> None:
        part = {
            "shard": [shard.sha256, shard.size] if shard else [],
            "tensors": tensors_to_data(self._tensors),
            "failure": self.words,
        }
        key = self._key(self._writers.part_name(self._writers.rank))
        self._writers.checkpoints.store.put(key, to_json(part))

    def _promote(self, shard: Shard) -> None:
        """Make a checkpoint of all ranks' parts."""
        checkpoints, world_size = self._writers.checkpoints, self._writers.world_size
        parts = [self._await_part(rank) for rank in range(1, world_size)]
        shards = [shard, *(Shard(*part["shard"]) for part in parts)]
        tables = [self._tensors, *(tensors_from_data(part["tensors"]) for part in parts)]
        samples, metrics, progress = json.loads(self._facts)
        manifest = Manifest(
            self.step,
            samples,
            metrics,
            progress,
            tensors=merged(tables),
            shards={self._writers.shard_name(rank): each for rank, each in enumerate(shards)},
        )
        key = self._key("manifest.json")
        if not checkpoints.store.create(key, manifest.to_json()):
            raise TrainingFailed(
                f"another training has written {key} meanwhile",
                hint="let only one training at a time use these checkpoints",
            )
        checkpoints.written(manifest)
        try:
            self._tidy_up()
        except Exception as error:  # noqa: BLE001 (whatever it is, the checkpoint is there)
            words = words_of(error)
            checkpoints.note(f"{key} is written, but not all that it replaces is gone: {words}")

    def _tidy_up(self) -> None:
        """Remove what the checkpoint makes superfluous."""
        checkpoints = self._writers.checkpoints
        for rank in range(1, self._writers.world_size):
            checkpoints.store.delete(self._key(self._writers.part_name(rank)))
        checkpoints.retain(self._writers.settings, newest=self.step, clean=self._clean)

    def _await_part(self, rank: int) -> dict[str, Any]:
        key = self._key(self._writers.part_name(rank))
        pause, longest = _POLL_SECONDS
        patience = GRACE_SECONDS
        while True:
            try:
                part: dict[str, Any] = from_json(self._writers.checkpoints.store.get(key))
                break
            except LookupError:
                began = time.monotonic()
                if self._abandoned.wait(pause) or patience < 0:
                    raise PeerFailed(f"rank {rank} has not written its part, {key}") from None
                if background.ending.is_set():
                    patience -= time.monotonic() - began
                pause = min(longest, pause * 1.5)
        if part["failure"] is not None:
            raise PeerFailed(f"rank {rank} failed: {part['failure']}")
        return part

    def _key(self, name: str) -> str:
        return self._writers.checkpoints.key(self.step, name)
