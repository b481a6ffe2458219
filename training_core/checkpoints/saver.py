"""Saving and restoring a training: checkpoints cost it a copy, taken while it goes on.

    saver = Saver(checkpoints, model=..., optimisers=[...], strategy=..., settings=...)
    restored = saver.restore()
    for ...:                          # each step
        ...                           # forward, backward
        saver.weights_may_change()
        optimiser.step()
        if due:
            saver.begin(step=..., samples=..., metrics=..., progress=..., extra=..., own=...)
    saver.finish()

All ranks call the same methods at the same step.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from training_core.checkpoints.agreement import agreed, fail_with
from training_core.checkpoints.background import Worker
from training_core.checkpoints.catalogue import Checkpoints
from training_core.checkpoints.live import LiveState
from training_core.checkpoints.manifest import Manifest
from training_core.checkpoints.restoring import Restored, load
from training_core.checkpoints.settings import CheckpointSettings
from training_core.checkpoints.snapshot import Snapshot
from training_core.checkpoints.writing import Saving, Writers
from training_core.errors import TrainingFailed
from training_core.parallel.strategy import Strategy

# Nothing waits for what is written while training goes on, so all else goes first; but a stop may
# come in the middle of it, which waits, and torchrun kills 30 s later. Beside four busy processes
# on two cores, a training that stopped with 240 MB took 3 s at 0, 9 s at 10 and 38 s at 19.
_NICENESS = 10

_LEFT_ALONE_SECONDS = 5.0  # that parts of other ranks may take when training has failed here


class Saver:
    """Saves and restores one training on all its ranks.

    Making one sweeps what killed writers have left under the prefix. Of several ranks rank 0 alone
    passes on what is reported: it learns of all.

    Args:
        checkpoints: Where they lie.
        model: The user's module, not wrapped.
        optimisers: Of its parameters.
        strategy: The ranks.
        settings: What is kept, and whether training goes on meanwhile.
        constant: Names of weights that never change and are not kept.
        on_blocked: Told each time for how long training has waited.
        others: As of `LiveState`.

    Attributes:
        stall_seconds: For which training waited because the checkpoint before was still written.
        blocked_seconds: For which training waited for checkpoints in all.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        *,
        model: nn.Module,
        optimisers: Sequence[Optimizer],
        strategy: Strategy,
        settings: CheckpointSettings,
        constant: Collection[str] = (),
        on_blocked: Callable[[float], None] = lambda seconds: None,
        others: Callable[[], Mapping[str, Tensor]] = dict,
    ) -> None:
        self.checkpoints, self.strategy, self.settings = checkpoints, strategy, settings
        self.stall_seconds = self.blocked_seconds = 0.0
        self._on_blocked = on_blocked
        self._live = LiveState(model, optimisers, others, constant=constant)
        self._snapshot = Snapshot(self._live, strategy)
        self._superseded: set[int] = set()  # steps that this training will come to again
        if strategy.rank > 0:
            checkpoints.on_report = lambda words: None
        self._copier, self._urgent_writer = Worker("copy"), Worker("write at once")
        self._writer = Worker("write", niceness=_NICENESS)
        self._saving: Saving | None = None
        self._copying: Saving | None = None
        attempt = agreed(strategy, self._sweep)[0]
        self._writers = Writers(checkpoints, settings, strategy.rank, strategy.world_size, attempt)

    # ---- saving --------------------------------------------------------------------------------

    def begin(
        self,
        *,
        step: int,
        samples: int,
        metrics: dict[str, float],
        progress: dict[str, Any],
        extra: dict[str, Tensor],
        own: dict[str, Tensor],
        clean: int | None = None,
        urgent: bool = False,
    ) -> None:
        """Begin a checkpoint right after an optimiser's step; it is written while training goes on.

        Args:
            step: Optimiser steps done.
            samples: Samples consumed, over all ranks.
            metrics: Validation metrics at this step, if it was evaluated.
            progress: What else must be remembered, as plain data; the same on every rank.
            extra: Small tensors; the same on every rank.
            own: Small tensors of this rank, such as its random state.
            clean: The newest checkpoint at or before this step stays, to go back to; None: it
                may go.
            urgent: Training will wait for it: let it not wait for others on this machine.

        Raises:
            TrainingFailed: The checkpoint before could not be written on some rank; on the rank
                where that happened, what happened is raised.
            TypeError: `progress` is no plain data.
        """
        began = time.perf_counter()
        self._settle()
        self.stall_seconds += time.perf_counter() - began
        if step in self._superseded:
            self._remove(lambda: [step])
        facts = json.dumps([samples, metrics, progress])  # now: lists grow while it is written
        small = {f"rank.{self.strategy.rank}.{name}": value for name, value in own.items()}
        if self.strategy.rank == 0:
            small |= {f"extra.{name}": value for name, value in extra.items()}
        self._snapshot.begin(small)
        self._saving = self._copying = Saving(self._writers, step, facts, self._snapshot, clean)
        self._copier.give(self._saving.copy)
        urgent = urgent or not self.settings.asynchronous
        (self._urgent_writer if urgent else self._writer).give(self._saving.write)
        self._blocked(time.perf_counter() - began)
        if not self.settings.asynchronous:
            self.finish()

    def weights_may_change(self) -> None:
        """Wait until weights and optimiser state are copied; call it before every update."""
        if self._copying is not None:
            began = time.perf_counter()
            self._copying.copied.wait()
            self._copying = None
            self._snapshot.hold_updates()
            self._blocked(time.perf_counter() - began)

    def failed(self) -> str | None:
        """Say why this rank could not write, if so; costs nothing, waits for nothing.

        Other ranks may not know: combine the answers, then call `raise_failure` on all ranks.
        """
        return None if self._saving is None else self._saving.words

    def raise_failure(self) -> None:
        """Raise what `failed` has said, on all ranks; as `finish`."""
        self.finish()

    def finish(self) -> None:
        """Wait until the checkpoint that was begun is there, on all ranks together.

        Raises:
            TrainingFailed: As `begin`.
        """
        began = time.perf_counter()
        try:
            self._settle()
        finally:
            self._blocked(time.perf_counter() - began)

    def abandon(self) -> None:
        """Wait for what this rank is writing, without the other ranks: when training has failed.

        Rank 0 still makes a checkpoint of it if the others' parts come in time. Raises nothing.
        """
        saving = self._saving
        if saving is None:
            return
        if not saving.ended.wait(_LEFT_ALONE_SECONDS):
            saving.abandon()
            saving.ended.wait()
        self._saving = None
        if saving.words is not None:
            self.checkpoints.note(f"step {saving.step} has no checkpoint: {saving.words}")

    # ---- restoring -----------------------------------------------------------------------------

    def restore(self, *, before_step: int | None = None) -> Restored | None:
        """Load the newest checkpoint that every rank can read whole; all ranks together.

        Every byte is verified before the first weight changes. What is damaged is reported in
        `checkpoints.damaged` and the one before is used; None: there is none, nothing was loaded.

        Args:
            before_step: Only checkpoints of this step or an earlier one.

        Raises:
            TrainingFailed: The ranks do not see the same checkpoints.
            ConfigurationError: The checkpoint is of another model or optimiser.
        """
        self._settle()
        manifests: list[Manifest] = []

        def look() -> tuple[list[int], list[str]]:
            manifests.extend(self.checkpoints.manifests())
            return self.checkpoints.steps(), [manifest.seal for manifest in manifests]

        seen = agreed(self.strategy, look)
        if any(each != seen[0] for each in seen):
            raise TrainingFailed(
                f"the ranks read different checkpoints (steps {[steps for steps, _ in seen]})",
                hint="run the same command again; if it persists, the storage is inconsistent",
            )
        self._superseded = set(seen[0][0])
        for manifest in reversed(manifests):
            if before_step is not None and manifest.step > before_step:
                continue
            restored = load(self.checkpoints, manifest, self._live, self.strategy)
            if restored is not None:
                self._superseded = {step for step in seen[0][0] if step > manifest.step}
                return restored
        return None

    def discard_after(self, step: int) -> None:
        """Remove all checkpoints after a step, on which training will go another way; all ranks."""
        self._settle()
        self._remove(lambda: [each for each in self.checkpoints.steps() if each > step])

    # ---- within --------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Bring the checkpoint that is being written to its end, with the same end on all ranks."""
        saving = self._saving
        if saving is None:
            return
        saving.written.wait()
        failures = self.strategy.gather(saving.words)
        if any(failures):
            saving.abandon()
            saving.ended.wait()
        else:
            saving.ended.wait()
            failures = self.strategy.gather(saving.words)
        self.weights_may_change()
        self._saving = None
        if any(failures):
            with suppress(Exception):  # what is left will be swept; what failed matters more
                agreed(self.strategy, lambda: self._writers.withdraw(saving.step))
            if saving.failure is not None and failures[self.strategy.rank]:
                raise saving.failure
            fail_with(failures)

    def _remove(self, choose: Callable[[], Iterable[int]]) -> None:
        """Choose and remove checkpoints, by rank 0 for all."""

        def remove() -> list[int]:
            steps = list(choose()) if self.strategy.rank == 0 else []
            for step in steps:
                self.checkpoints.remove(step)
            return steps

        self._superseded.difference_update(agreed(self.strategy, remove)[0])

    def _sweep(self) -> str:
        """Clear the ground, by rank 0 for all; return a token, of which rank 0's counts."""
        if self.strategy.rank == 0:
            self.checkpoints.sweep()
        return uuid.uuid4().hex[:8]

    def _blocked(self, seconds: float) -> None:
        self.blocked_seconds += seconds
        self._on_blocked(seconds)
