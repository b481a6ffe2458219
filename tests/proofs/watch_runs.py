"""The Kubeflow of simulated watchers, its runs, and the advice that they ask for."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from components.common.advice import Advice
from components.common.run_record import RunRecord, run_record_key
from infra.errors import OutsideError
from pipelines.watch.starter import Ended
from tests.proofs.simulation import World
from tests.proofs.watch_world import LATE, STORM, Fate, Outages, Shelf


class SimulatedAdvising:
    """A process that finds drift wherever it looks, after a while; now and then it fails."""

    def __init__(self, world: World) -> None:
        self._world, self._until = world, 0.0
        self.under_way = False

    def begin(self) -> None:
        self.under_way = True
        self._until = self._world.now + self._world.chance.uniform(1, 20)

    def result(self) -> Advice | None:
        if self._world.now < self._until:
            return None
        self.under_way = False
        if self._world.now < STORM and self._world.chance.random() < 0.1:
            raise OutsideError("it was killed")
        return Advice(
            advice="retrain", retrain=True, gain=None, worth=0.0, reasons=["it has moved"],
            unknown=[], moved=True,
        )  # fmt: skip

    def close(self) -> None:
        self.under_way = False


@dataclass
class SimulatedRun:
    """A run: whoever started it, when, and how it will end."""

    id: str
    name: str
    begun: float
    ends: float
    exit_code: int | None
    skipped: bool = False


class SimulatedKubeflow:
    """Runs by name; one name may be started often, and each is kept."""

    def __init__(self, world: World, outages: Outages, shelf: Shelf) -> None:
        self.world, self.outages, self.shelf = world, outages, shelf
        self.runs: list[SimulatedRun] = []
        self.longest = 120.0
        self.failing = 0.0

    def begin(self, name: str) -> str:
        """Start a run now; one that finds another under way ends at once."""
        world, chance = self.world, self.world.chance
        ends = world.now + chance.uniform(1, self.longest)
        code = chance.choices([0, 1, 3, None], [1, self.failing / 3, self.failing, self.failing])[0]
        run = SimulatedRun(f"run-{len(self.runs)}", name, world.now, ends, code)
        if self.under_way():
            run.skipped, run.exit_code, run.ends = True, 0, world.now + 2
        self.runs.append(run)
        if run.exit_code is not None:
            world.add(run.id, lambda: self._write(run), after=run.ends - world.now - 0.5)
        return run.id

    def under_way(self) -> SimulatedRun | None:
        now = self.world.now
        return next((r for r in self.runs if not r.skipped and r.begun <= now < r.ends), None)

    def _write(self, run: SimulatedRun) -> None:
        """The record that the run's exit handler leaves; a run that was killed leaves none."""
        status = {0: "finished", 1: "stopped", 3: "failed"}[run.exit_code or 0]
        record = RunRecord(
            run=run.id, project="simulated", key="", status=status,  # type: ignore[arg-type]
            exit_code=run.exit_code or 0, verdict="", reasons=["as drawn"], hint="", started=None,
            seconds=0, data_digest="", data_rows=0, steps=[], champion_before="",
            champion_after="", commit="", report="",
        ).model_dump(mode="json")  # fmt: skip
        if run.skipped:
            record["status"] = "skipped"
        self.shelf.put(run_record_key(run.id), json.dumps(record).encode())


class SimulatedStarter:
    """Kubeflow as one process reaches it; a `RunStarter`."""

    about, glance, late = "a simulation", 15.0, LATE

    def __init__(self, kubeflow: SimulatedKubeflow, fate: Fate) -> None:
        self._kubeflow, self._fate = kubeflow, fate

    def _call(self, effect: Callable[[], Any], *, writes: bool = False) -> Any:
        outages, world = self._kubeflow.outages, self._kubeflow.world
        return self._fate.call(lambda: outages.at(world.now), effect, writes=writes)

    def find(self, name: str) -> str | None:
        runs = self._kubeflow.runs
        found: str | None = self._call(lambda: next((r.id for r in runs if r.name == name), None))
        world, fate = self._kubeflow.world, self._fate
        if fate.stalls and world.now < fate.until and world.chance.random() < 0.1:
            world.sleep(world.chance.uniform(100, 200))  # the worst moment to stand still
        return found

    def start(self, name: str, *, overrides: tuple[str, ...], force: bool) -> str:
        world = self._kubeflow.world
        if world.chance.random() < self._fate.loses and not self._kubeflow.outages.at(world.now):
            # the request is on its way for long; who sent it gives up before
            wait = world.chance.uniform(1, LATE)
            world.add("late", lambda: self._begin(name), after=wait)
            world.sleep(min(wait, 30.0))
            raise OutsideError("no answer in time")
        found: str = self._call(lambda: self._kubeflow.begin(name), writes=True)
        return found

    def ended(self, name: str, run: str) -> Ended | None:
        def effect() -> Ended | None:
            there = next(r for r in self._kubeflow.runs if r.id == run)
            if self._kubeflow.world.now < there.ends:
                return None
            return Ended(0 if there.exit_code == 0 else None)

        found: Ended | None = self._call(effect)
        return found

    def prepare(self) -> None:
        """It is there, or will be."""

    def close(self) -> None:
        """Nothing is kept."""

    def _begin(self, name: str) -> None:
        self._kubeflow.begin(name)
