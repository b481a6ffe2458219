"""Checkpoints: one exists when its manifest does.

    <prefix>/<step>/state.pt          model, optimiser, scaler, history, position
    <prefix>/<step>/rank-<r>.pt       random states of rank r
    <prefix>/<step>/manifest.json     written last: sha256 of each shard and of itself, metrics

Shards are written, read back and compared with their hash before the manifest is written, in one
atomic put. What has no manifest is not a checkpoint; what fails its hash is reported and passed
over for the one before (torch.load alone would load a flipped bit without a word).
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from training_core.errors import TrainingFailed
from training_core.parallel import Strategy
from training_core.settings import CheckpointSettings


class StoredObject(Protocol):
    """An entry of a listing."""

    @property
    def key(self) -> str:
        """Its key."""


class CheckpointStore(Protocol):
    """What checkpoints need of an object store: whole-object, atomic writes."""

    def put(self, key: str, data: bytes) -> None:
        """Write an object."""

    def get(self, key: str) -> bytes:
        """Read an object; LookupError if there is none (any other error: the store is away)."""

    def list(self, prefix: str = "") -> Iterator[StoredObject]:
        """List objects by prefix."""

    def delete(self, key: str) -> None:
        """Remove an object."""


@dataclass(frozen=True)
class Manifest:
    """What a checkpoint holds.

    Attributes:
        step: Optimiser steps done.
        samples: Samples consumed, over all ranks.
        metrics: Validation metrics at this step; empty when it was saved for another reason.
        shards: Name to sha256.
    """

    step: int
    samples: int
    metrics: dict[str, float]
    shards: dict[str, str]


@dataclass(frozen=True)
class Whole:
    """A checkpoint that was read back.

    Attributes:
        state: What rank 0 saved.
        rank_state: What this rank saved; None if there was no such rank.
    """

    manifest: Manifest
    state: dict[str, Any]
    rank_state: dict[str, Any] | None


class Checkpoints:
    """The checkpoints of one training.

    Args:
        store: Where they lie.
        prefix: Their common key prefix, one for each training.
    """

    def __init__(self, store: CheckpointStore, prefix: str) -> None:
        self.store = store
        self.prefix = prefix.rstrip("/")
        self.damaged: list[str] = []  # what was passed over, and why

    def save(
        self,
        *,
        step: int,
        samples: int,
        metrics: dict[str, float],
        state: dict[str, Any],
        rank_state: dict[str, Any],
        strategy: Strategy,
    ) -> None:
        """Save on all ranks together; `state` is rank 0's, `rank_state` each rank's own.

        Raises:
            TrainingFailed: A shard does not read back as it was written.
        """
        shards = {f"rank-{strategy.rank}.pt": rank_state}
        if strategy.rank == 0:
            shards["state.pt"] = state
        written: dict[str, str] = {}
        failure: BaseException | None = None
        try:
            written = {name: self._write(step, name, value) for name, value in shards.items()}
        except Exception as error:  # noqa: BLE001 (every rank must reach the gather below)
            failure = error
        words = None if failure is None else str(failure) or type(failure).__name__
        outcomes = strategy.gather((written, words))
        if failure is not None or any(word for _, word in outcomes):
            self._remove(step)
            if failure is not None:
                raise failure
            raise TrainingFailed(next(word for _, word in outcomes if word))
        if strategy.rank == 0:
            everything = {name: digest for part, _ in outcomes for name, digest in part.items()}
            manifest = {
                "format": "evertrain/checkpoint/1",
                "step": step,
                "samples": samples,
                "metrics": metrics,
                "shards": everything,
            }
            manifest["sha256"] = _seal(manifest)
            self.store.put(self._key(step, "manifest.json"), json.dumps(manifest).encode())

    def manifests(self) -> list[Manifest]:
        """Return the manifests of all checkpoints, oldest first; unreadable ones are reported."""
        found = []
        for entry in self.store.list(f"{self.prefix}/"):
            if entry.key.endswith("/manifest.json"):
                try:
                    content = json.loads(self.store.get(entry.key))
                    if content.pop("sha256") != _seal(content):
                        raise ValueError("its sha256 is another")
                    found.append(
                        Manifest(
                            content["step"],
                            content["samples"],
                            content["metrics"],
                            content["shards"],
                        )
                    )
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    self._report(f"{entry.key} is no manifest ({type(error).__name__}: {error})")
        return sorted(found, key=lambda manifest: manifest.step)

    def load(self, manifest: Manifest, *, shard: str = "state.pt") -> dict[str, Any] | None:
        """Return a shard's content, or None (and a report) if it is missing or damaged.

        A store that cannot be reached raises: an outage must not look like a lost checkpoint.
        """
        key = self._key(manifest.step, shard)
        try:
            data = self.store.get(key)
        except LookupError:
            self._report(f"{key} is missing")
            return None
        if hashlib.sha256(data).hexdigest() != manifest.shards.get(shard):
            self._report(f"{key} is damaged: its sha256 is not the manifest's")
            return None
        try:
            loaded: dict[str, Any] = torch.load(
                io.BytesIO(data), map_location="cpu", weights_only=True
            )
        except Exception as error:  # noqa: BLE001 (the hash is right, yet it is no state of ours)
            self._report(f"{key} cannot be loaded: {str(error).splitlines()[0]}")
            return None
        return loaded

    def newest(self, strategy: Strategy) -> Whole | None:
        """Return the newest checkpoint that every rank can read whole, or None; all ranks together.

        A rank that the checkpoint has no random state for (it was saved by fewer) gets none.

        Raises:
            TrainingFailed: The ranks do not see the same checkpoints.
        """
        manifests = self.manifests()
        seen = strategy.gather([manifest.step for manifest in manifests])
        if any(steps != seen[0] for steps in seen):
            raise TrainingFailed(
                f"the ranks read different checkpoints (steps {seen})",
                hint="run the same command again; if it persists, the storage is inconsistent",
            )
        own = f"rank-{strategy.rank}.pt"
        for manifest in reversed(manifests):
            state = self.load(manifest)
            rank_state = self.load(manifest, shard=own) if own in manifest.shards else {}
            whole = state is not None and rank_state is not None
            if all(strategy.gather(whole)):
                assert state is not None
                return Whole(manifest, state, rank_state or None)
        return None

    def retain(self, settings: CheckpointSettings, *, metric: str = "loss") -> list[int]:
        """Delete all but the last and the best ones; return the steps that stay."""
        manifests = self.manifests()
        scored = sorted(
            (m for m in manifests if metric in m.metrics), key=lambda m: m.metrics[metric]
        )
        kept = {m.step for m in manifests[-settings.keep_last :]}
        kept |= {m.step for m in scored[: settings.keep_best]}
        for manifest in manifests:
            if manifest.step not in kept:
                self._remove(manifest.step)
        return sorted(kept)

    def _write(self, step: int, name: str, value: dict[str, Any]) -> str:
        buffer = io.BytesIO()
        torch.save(value, buffer)
        data = buffer.getvalue()
        digest = hashlib.sha256(data).hexdigest()
        key = self._key(step, name)
        self.store.put(key, data)
        if hashlib.sha256(self.store.get(key)).hexdigest() != digest:
            raise TrainingFailed(
                f"the checkpoint {key} does not read back as it was written",
                hint="the storage is faulty; the checkpoint before it is untouched",
            )
        return digest

    def _remove(self, step: int) -> None:
        """The manifest goes first: a half-deleted checkpoint is none."""
        self.store.delete(self._key(step, "manifest.json"))
        for entry in list(self.store.list(f"{self.prefix}/{step:09d}/")):
            self.store.delete(entry.key)

    def _report(self, words: str) -> None:
        if words not in self.damaged:
            self.damaged.append(words)

    def _key(self, step: int, name: str) -> str:
        return f"{self.prefix}/{step:09d}/{name}"


def _seal(manifest: dict[str, Any]) -> str:
    """Hash of a manifest's content: a flipped digit in it is as bad as one in a shard."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
