"""The checkpoints of one training: listed, read against their hashes, removed.

    <prefix>/<step>/shard-<rank>.<attempt>.bin    that rank's pieces of the tensors, 64-byte aligned
    <prefix>/<step>/manifest.json                 written last; what has none is not a checkpoint

What fails its hash is reported and passed over. Nothing that is read here can be executed: a shard
is numbers, and a manifest is JSON that says where they lie.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from training_core.checkpoints.live import AVERAGE, MODEL
from training_core.checkpoints.manifest import Chunk, Manifest, StoredTensor, dtype_of
from training_core.checkpoints.retention import kept_steps
from training_core.checkpoints.settings import CheckpointSettings
from training_core.checkpoints.store import CheckpointStore

_MANIFEST = "manifest.json"


def _warn(words: str) -> None:
    print(f"warning: {words}", file=sys.stderr, flush=True)


class Checkpoints:
    """The checkpoints of one training.

    Every method raises what the store raises when it cannot be reached: an outage must not look
    like a lost checkpoint.

    Args:
        store: Where they lie.
        prefix: Their common key prefix, one for each training.
        on_report: Told once of each thing a person should know; else it is a line on stderr.

    Attributes:
        damaged: What was passed over, and why: one sentence for each file, with its name.
        notes: What else went wrong, and cost no checkpoint.
        unusable: The steps it was passed over at.
    """

    def __init__(
        self,
        store: CheckpointStore,
        prefix: str,
        *,
        on_report: Callable[[str], None] = _warn,
    ) -> None:
        self.store = store
        self.prefix = prefix.rstrip("/")
        self.on_report = on_report
        self.damaged: list[str] = []
        self.notes: list[str] = []
        self.unusable: set[int] = set()
        self._half_removed: set[int] = set()
        self._known: dict[int, Manifest] = {}  # for retention, which is asked at each checkpoint

    def manifests(self) -> list[Manifest]:
        """Return the manifests of all checkpoints, oldest first; unreadable ones are reported."""
        self._known.clear()
        return self._manifests()

    def _manifests(self) -> list[Manifest]:
        found = []
        for step in self.steps():
            try:
                if step not in self._known:
                    self._known[step] = self._manifest(step)
                found.append(self._known[step])
            except LookupError:  # removed since it was listed
                continue
            except ValueError as error:
                self.report(step, f"{self.key(step, _MANIFEST)} is no manifest ({error})")
        return found

    def steps(self) -> list[int]:
        """Return the steps that have a manifest, readable or not, in order."""
        return sorted(step for step, names in self._listing().items() if _MANIFEST in names)

    def model_state(self, manifest: Manifest) -> dict[str, Tensor] | None:
        """Return the whole model on the CPU by name, however many ranks have saved it.

        Its averaged weights, where training kept an average: those were evaluated. None, and a
        report, if anything of it is missing or damaged.
        """
        family = AVERAGE if has_average(manifest) else MODEL
        wanted = {n: t for n, t in manifest.tensors.items() if n.startswith(family)}
        shards = self.shards(manifest, {c.shard for t in wanted.values() for c in t.chunks})
        if shards is None:
            return None
        return {n.removeprefix(family): whole_tensor(t, shards) for n, t in wanted.items()}

    def shards(self, manifest: Manifest, names: Iterable[str]) -> dict[str, Tensor] | None:
        """Return shards by name as bytes: uint8 [size]; None, and a report, if one is damaged."""
        found = {}
        for name in sorted(names):
            shard = self._shard(manifest, name)
            if shard is None:
                return None
            found[name] = shard
        return found

    def remove(self, step: int) -> None:
        """Remove a checkpoint; its manifest goes first: half of one is none."""
        self._half_removed.add(step)
        self._known.pop(step, None)
        self.store.delete(self.key(step, _MANIFEST))
        for entry in list(self.store.list(f"{self.prefix}/{step:09d}/")):
            self.store.delete(entry.key)
        self._half_removed.discard(step)

    def remove_strays(self, step: int, names: Iterable[str]) -> None:
        """Remove files of a step, but none that its manifest names."""
        named: set[str] = set()
        try:
            named.update(self._manifest(step).shards)
        except LookupError:
            pass
        except ValueError:  # what it would name is not known
            return
        for name in sorted(set(names) - named):
            self.store.delete(self.key(step, name))

    def sweep(self) -> None:
        """Remove what writers that were killed have left; never while one may be writing."""
        for step, names in self._listing().items():
            if _MANIFEST not in names:
                self.remove(step)
            else:
                self.remove_strays(step, {n for n in names if n.startswith(("shard-", "part-"))})

    def retain(
        self, settings: CheckpointSettings, *, newest: int | None = None, clean: int | None = None
    ) -> list[int]:
        """Remove what the settings do not keep; return the steps that stay.

        What could not be removed entirely the time before is tried again.

        Args:
            settings: The policies.
            newest: The step that was written last; what lies beyond it is of an abandoned course
                and is left alone. None: the newest there is.
            clean: As in `kept_steps`.
        """
        readable = [m for m in self._manifests() if newest is None or m.step <= newest]
        usable = [m for m in readable if m.step not in self.unusable]
        kept = kept_steps(usable, settings, clean=clean)
        if kept:
            for manifest in readable:
                if manifest.step not in kept:
                    self.remove(manifest.step)
        for step in sorted(self._half_removed):
            self.remove(step)
        return sorted(kept)

    def report(self, step: int, words: str) -> None:
        """Note that a checkpoint cannot be used, and why."""
        self.unusable.add(step)
        self._tell(words, self.damaged)

    def note(self, words: str) -> None:
        """Note what went wrong, though it cost no checkpoint."""
        self._tell(words, self.notes)

    def written(self, manifest: Manifest) -> None:
        """Note that a checkpoint was written and verified, whatever was there before."""
        self.unusable.discard(manifest.step)
        self._half_removed.discard(manifest.step)
        self._known[manifest.step] = manifest

    def key(self, step: int, name: str) -> str:
        """Return where a file of a checkpoint lies."""
        return f"{self.prefix}/{step:09d}/{name}"

    def _tell(self, words: str, told: list[str]) -> None:
        if words not in told:
            told.append(words)
            self.on_report(words)

    def _manifest(self, step: int) -> Manifest:
        return Manifest.from_json(self.store.get(self.key(step, _MANIFEST)))

    def _shard(self, manifest: Manifest, name: str) -> Tensor | None:
        key, expected = self.key(manifest.step, name), manifest.shards[name]
        for attempt in (1, 2):  # a bit may also flip on its way here
            memory = torch.empty(expected.size, dtype=torch.uint8)
            try:
                if self._read(key, memory) == expected.sha256:
                    return memory
            except LookupError:
                self.report(manifest.step, f"{key} is missing")
                return None
            if attempt == 2:
                self.report(manifest.step, f"{key} is damaged: its sha256 is not the manifest's")
        return None

    def _read(self, key: str, memory: Tensor) -> str:
        """Fill memory with an object; return the object's hash, which also tells its length."""
        target, position, found = memory.numpy().data, 0, hashlib.sha256()
        for piece in self.store.pieces(key):
            found.update(piece)
            fitting = piece[: len(target) - position]
            target[position : position + len(fitting)] = fitting
            position += len(fitting)
        return found.hexdigest()

    def _listing(self) -> dict[int, set[str]]:
        """Names of the files of each step."""
        found: dict[int, set[str]] = {}
        for entry in self.store.list(f"{self.prefix}/"):
            step, _, name = entry.key.removeprefix(f"{self.prefix}/").partition("/")
            if step.isascii() and step.isdecimal() and name:
                found.setdefault(int(step), set()).add(name)
        return found


def has_average(manifest: Manifest) -> bool:
    """Say whether a checkpoint holds averaged weights beside the live ones."""
    return any(name.startswith(AVERAGE) for name in manifest.tensors)


def sha256_of(store: CheckpointStore, key: str) -> str:
    """Read an object back and return its hash; memory stays bounded."""
    found = hashlib.sha256()
    for piece in store.pieces(key):
        found.update(piece)
    return found.hexdigest()


def chunk_view(stored: StoredTensor, chunk: Chunk, shards: dict[str, Tensor]) -> Tensor:
    """Return a chunk of a tensor in a shard's bytes; no copy."""
    dtype = dtype_of(stored)
    end = chunk.start + math.prod(chunk.sizes) * dtype.itemsize
    piece = shards[chunk.shard][chunk.start : end]
    return piece.view(dtype).view(chunk.sizes)


def whole_tensor(stored: StoredTensor, shards: dict[str, Tensor]) -> Tensor:
    """Put a tensor together from its chunks."""
    whole = torch.empty(stored.size, dtype=dtype_of(stored))
    for chunk in stored.chunks:
        target = whole
        for dimension, (offset, size) in enumerate(zip(chunk.offsets, chunk.sizes, strict=True)):
            target = target.narrow(dimension, offset, size)
        target.copy_(chunk_view(stored, chunk, shards))
    return whole
