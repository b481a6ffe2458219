"""What a simulated watcher's process has of its own: how it is stopped, what it says."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.watch.stopping import StopAsked
from tests.proofs.simulation import World
from tests.proofs.watch_world import STORM


class SimulatedStopping:
    """Now and then somebody asks a watcher to stop while it waits."""

    def __init__(self, world: World, chance: random.Random, *, often: float) -> None:
        self._world, self._chance, self._often = world, chance, often
        self.asked = None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        yield
        if self._world.now < STORM and self._chance.random() < self._often:
            raise StopAsked


class Lines(io.StringIO):
    """What a watcher says, with the simulated time."""

    def __init__(self, log: list[str], world: World, number: int) -> None:
        super().__init__()
        self._log, self._world, self._number = log, world, number

    def write(self, text: str) -> int:
        if text.strip():
            self._log.append(f"{self._world.now:8.2f}  {self._number}  {text[25:].strip()}")
        return len(text)
