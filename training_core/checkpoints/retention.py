"""Which checkpoints stay: the union of what the settings ask for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Protocol

from training_core.checkpoints.settings import CheckpointSettings


class Scored(Protocol):
    """What retention looks at."""

    @property
    def step(self) -> int:
        """Optimiser steps done."""

    @property
    def metrics(self) -> Mapping[str, float]:
        """Validation metrics at this step, if any."""


def kept_steps(
    checkpoints: Iterable[Scored], settings: CheckpointSettings, *, clean: int | None = None
) -> set[int]:
    """Return the steps of the checkpoints that stay; the newest is always among them.

    Args:
        checkpoints: Readable ones, in any order.
        settings: The policies, of which any one suffices to stay.
        clean: Training may have to go back to the newest one at or before this step: it stays.
    """
    found = sorted(checkpoints, key=lambda each: each.step)
    # what a training puts down before it begins is worth nothing once it has begun
    started = [each for each in found if each.step > 0 or each.metrics] or found
    steps = [each.step for each in started]
    kept = set(steps[-settings.keep_last :])
    kept |= _best(started, settings.metric, settings.keep_best)
    if settings.keep_every:
        kept |= {step for step in steps if step % settings.keep_every == 0}
    if settings.keep_exponential:
        kept |= _spaced(steps)
    if clean is not None:
        kept |= set([each.step for each in found if each.step <= clean][-1:])
    return kept


def _best(checkpoints: list[Scored], metric: str, count: int) -> set[int]:
    """Lower is better; of equals the earlier; what is not finite is no score."""
    scored = [c for c in checkpoints if math.isfinite(c.metrics.get(metric, math.nan))]
    scored.sort(key=lambda each: (each.metrics[metric], each.step))
    return {each.step for each in scored[:count]}


def _spaced(steps: list[int]) -> set[int]:
    """The oldest of each doubling of the age: 1, 2–3, 4–7, … steps before the newest.

    The oldest, because it is the one that grows into the next doubling: were the newest kept,
    nothing would ever reach it.
    """
    oldest: dict[int, int] = {}
    for step in reversed(steps):
        oldest[(steps[-1] - step).bit_length()] = step
    return set(oldest.values())
