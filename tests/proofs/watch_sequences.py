"""One random sequence of events: what comes, what goes wrong, and how many watchers there are."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, cast

from components.common.cluster_settings import ScheduleSettings
from components.common.data_settings import DataSettings
from components.common.sources import Place, Source
from components.common.trigger_settings import Trigger, WatchSettings
from components.snapshot_data.partitions import Pattern
from infra.errors import OutsideError
from infra.events.polling import SHARE, Polling
from infra.events.source import EventSource
from infra.events.sqs import SqsEvents
from infra.store import ObjectStore
from pipelines.watch.advice import Advising
from pipelines.watch.cursor import Cursors
from pipelines.watch.exporting import Figures
from pipelines.watch.outcomes import outcome_of
from pipelines.watch.parts import Parts
from pipelines.watch.places import WatchedPlace
from pipelines.watch.process import Life, Process
from pipelines.watch.schedules import Schedules
from pipelines.watch.starting import Starting
from pipelines.watch.stopping import Stopping
from pipelines.watch.telling import Teller
from tests.proofs.simulation import TheEnd, World
from tests.proofs.watch_process import Lines, SimulatedStopping
from tests.proofs.watch_queue import SimulatedQueue
from tests.proofs.watch_runs import SimulatedAdvising, SimulatedKubeflow, SimulatedStarter
from tests.proofs.watch_world import PAGE, STORM, Died, Fate, Outages, Shelf, SimulatedStore

BUCKET = "data"
CALM = 1500.0  # seconds after that in which nothing does
State = dict[str, tuple[int, str]]


@dataclass
class Happened:
    """What there was in a sequence, for whoever judges it.

    Attributes:
        states: Time, and the data from then on: key to size and version.
        alive: By incarnation of a watcher: from when to when it lived.
        away: When something that watchers need was away.
        log: What the watchers said.
        deaths: How many watchers were killed.
        patience: Seconds in which a watcher that nothing is in the way of starts a run: what the
            settings ask for, slow listings (which are made less often) or messages, the listing
            that finds a lost one, and where replies are lost or watchers killed the 120 after which
            a claim is taken over, or for which a process stands still.
    """

    settings: WatchSettings
    schedules: tuple[ScheduleSettings, ...]
    kubeflow: SimulatedKubeflow
    states: list[tuple[float, State]] = field(default_factory=list)
    alive: list[list[float]] = field(default_factory=list)
    away: list[tuple[float, float]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    control: dict[str, bytes] = field(default_factory=dict)
    by_queue: bool = False
    watchers: int = 0
    deaths: int = 0
    skew: float = 0.0
    patience: float = 0.0


def simulate(chance: random.Random) -> Happened:
    """Let a sequence happen; return what there was."""
    random.seed(chance.random())  # what the watchers themselves leave to chance
    sequence = _Sequence(chance)
    sequence.happen()
    return sequence.found


class _Sequence:
    def __init__(self, chance: random.Random) -> None:
        self.world, self.chance = World(chance), chance
        world = self.world
        self.control = Shelf(world, self._outages())
        self.data = Shelf(world, self._outages())
        self.queue = SimulatedQueue(world, self._outages())
        self.kubeflow = SimulatedKubeflow(world, self._outages(), self.control)
        self.settings, schedules = self._settings()
        self.by_queue = chance.random() < 0.5 and "data" in self.settings.when
        harsh = chance.random() < 0.6
        self.lost = chance.choice([0.0, 0.02, 0.05]) if harsh else 0.0
        self.stalls = chance.choice([0.0, 0.003, 0.02]) if harsh else 0.0
        self.deadly = chance.choice([0, 30, 300, 1500]) if harsh else 0
        self.kubeflow.failing = chance.choice([0.0, 0.2])
        self.kubeflow.longest = chance.choice([5, 60, 300])
        self.queue.lost = chance.choice([0.0, 0.2, 0.7])
        self.queue.twice = chance.choice([0.0, 0.3])
        self.queue.slowest = chance.choice([0.2, 2.0])
        self.found = Happened(self.settings, schedules, self.kubeflow, by_queue=self.by_queue)
        self.found.watchers = chance.choice([1, 2, 2, 2, 3])
        self.found.skew = chance.choice([0.0, 5.0, 300.0])
        self.found.states.append((0.0, {}))
        for shelf in (self.control, self.data, self.queue, self.kubeflow):
            self.found.away += shelf.outages.spans

    def _patience(self) -> float:
        settings, found = self.settings, 2 * self.settings.quiet + 45.0
        listing = 0.6 * (1 + len(self.data.kept) / PAGE)
        found += 3 * listing
        if self.by_queue:
            found += 60 * self.queue.slowest
            found += settings.look_every if self.queue.lost else 0.0
        else:
            found += max(settings.poll, listing / SHARE)
        found += 60.0 + 25.0 + 60.0 if "drift" in settings.when else 0.0
        found += 300.0 if self.stalls else 0.0
        rounds = {0.0: 1, 0.02: 3, 0.05: 5}[self.lost]  # a start whose reply is lost, once more
        return found + (170.0 * rounds if self.deadly or self.lost or self.stalls else 0.0)

    def happen(self) -> None:
        """Run the world: a storm, then a calm."""
        world = self.world
        world.add("uploads", self._upload, after=self.chance.uniform(0, 200))
        if self.chance.random() < 0.3:
            world.add("others", self._others, after=self.chance.uniform(0, 600))
        for number in range(self.found.watchers):
            world.add(
                f"watcher {number}", lambda n=number: self._watcher(n),  # type: ignore[misc]
                after=self.chance.uniform(0, 60),
            )  # fmt: skip
        world.run(until=STORM + CALM)
        self.found.patience = self._patience()
        self.found.control = {key: kept.data for key, kept in self.control.kept.items()}
        if world.failed:
            raise world.failed[0]

    def _outages(self) -> Outages:
        chance, spans = self.chance, []
        for _ in range(chance.choice([0, 0, 1, 2])):
            begin = chance.uniform(0, STORM)
            spans.append((begin, min(STORM, begin + chance.uniform(1, 200))))
        return Outages(spans)

    def _settings(self) -> tuple[WatchSettings, tuple[ScheduleSettings, ...]]:
        chance = self.chance
        when: list[Trigger] = ["data"]
        schedules: tuple[ScheduleSettings, ...] = ()
        if chance.random() < 0.2:
            when = ["data", "schedule"] if chance.random() < 0.7 else ["schedule"]
            schedules = (
                ScheduleSettings(
                    name="often", cron="0 */10 * * * *", catch_up=chance.random() < 0.3
                ),
            )
        elif chance.random() < 0.1:
            when = ["drift"]
        quiet = chance.choice([0.0, 5.0, 30.0])
        settings = WatchSettings(
            when=tuple(when), poll=chance.choice([5.0, 30.0, 60.0]), quiet=quiet,
            longest=chance.choice([0.0, 60.0, 900.0]), look_every=chance.choice([60.0, 300.0]),
            minimum=chance.choice([1, 1, 1, 4]), retries=3, retry_after=10.0, advise_every=60.0,
        )  # fmt: skip
        return settings, schedules

    # -- what happens ----------------------------------------------------------------------------

    def _upload(self) -> None:
        """Objects come, now and then one is overwritten or deleted, and much that is no data."""
        world, chance, number = self.world, self.chance, 0
        while world.now < STORM:
            for _ in range(chance.choice([1, 1, 2, 8])):
                keys = [key for key in self.data.kept if key.endswith(".parquet")]
                draw = chance.random()
                if keys and draw < 0.1:
                    self.data.kept.pop(chance.choice(keys))
                    self.queue.send("{}" if draw < 0.05 else '{"Records": [{}]}')
                elif keys and draw < 0.2:
                    self._put(chance.choice(keys))
                elif draw < 0.3:
                    self._put(f"_tmp/{number}.part")
                else:
                    self._put(f"day {number:04} {chance.randrange(9)}.parquet")
                number += 1
                self._note()
                world.sleep(chance.choice([0.01, 0.5, 3.0]))
            world.sleep(chance.expovariate(1 / chance.choice([5.0, 60.0, 800.0])))

    def _put(self, key: str) -> None:
        self.data.put(key, self.chance.randbytes(8))
        self.queue.tell_of(BUCKET, key.replace(" ", "+"))

    def _note(self) -> None:
        state = {
            key: (len(kept.data), kept.version)
            for key, kept in self.data.kept.items()
            if key.endswith(".parquet")
        }
        if state != self.found.states[-1][1]:
            self.found.states.append((self.world.now, state))

    def _others(self) -> None:
        """People and schedules start runs as well."""
        number = 0
        while self.world.now < STORM:
            self.kubeflow.begin(f"somebody's {number}")
            number += 1
            self.world.sleep(self.chance.uniform(60, 900))

    # -- watchers --------------------------------------------------------------------------------

    def _watcher(self, number: int) -> None:
        """A watcher that is started again whenever it was killed or asked to stop."""
        world, chance = self.world, self.chance
        while True:
            die_at = 0
            if self.deadly and world.now < STORM:
                die_at = 1 + int(chance.expovariate(1 / self.deadly))
            fate = Fate(
                world, die_at=die_at, after=chance.random() < 0.5, lost=self.lost,
                stalls=self.stalls, until=STORM,
            )  # fmt: skip
            life = [world.now, float("inf")]
            self.found.alive.append(life)
            try:
                self._process(number, fate).run()
            except TheEnd:
                life[1] = world.now
                raise
            except Died:
                self.found.deaths += 1
            except OutsideError:
                pass  # nothing to begin with: its pod is started again
            life[1] = world.now
            world.sleep(chance.uniform(0, chance.choice([1, 30, 300])))

    def _process(self, number: int, fate: Fate) -> Process:
        world, chance = self.world, self.chance
        offset, skew = chance.uniform(0, 1e6), chance.uniform(-1, 1) * self.found.skew

        def clock() -> float:
            return world.now + offset

        def now() -> float:
            return 1_700_000_000 + world.now + skew

        store = cast(ObjectStore, SimulatedStore(self.control, fate))
        place = Place("", cast(ObjectStore, SimulatedStore(self.data, fate)))
        source = Source("s3://data", [place])
        by_advice = "drift" in self.settings.when
        said = Lines(self.found.log, world, number)
        starting = Starting(
            store, SimulatedStarter(self.kubeflow, fate),
            outcome=lambda start, ended: outcome_of(store, start, ended),
            busy=self._busy, by=str(number), retries=self.settings.retries,
            pause=self.settings.retry_after, clock=clock,
        )  # fmt: skip
        parts = Parts(
            name="simulated", settings=self.settings, source=source, data=DataSettings(
                source="s3://data", row_key=["id"]
            ), events=self._events(place, fate, clock), store=store,
            cursors=Cursors(store, clock=clock, sleep=world.sleep), starting=starting,
            schedules=Schedules(self.found.schedules, zone="UTC"), busy=self._busy,
            advising=cast(Advising, SimulatedAdvising(world)) if by_advice else None,
            figures=Figures("simulated"), teller=Teller(as_json=False, file=said),
            now=now,
        )  # fmt: skip
        stopping = SimulatedStopping(world, chance, often=0.002 if world.now < STORM else 0.0)
        return Process(
            parts, life=Life(clock), observer=None, stopping=cast(Stopping, stopping),
            sleep=world.sleep,
        )  # fmt: skip

    def _events(self, place: Place, fate: Fate, clock: Any) -> EventSource:
        watched = WatchedPlace(place, Pattern("*.parquet"))
        if self.by_queue:
            client = self.queue.client(fate)
            return SqsEvents(
                "https://queue", chosen=lambda b, k: b == BUCKET and watched.chosen([k])[0],
                client=client,
            )  # fmt: skip
        return Polling(
            [watched], every=self.settings.poll, clock=clock, sleep=self.world.sleep,
            now=lambda: 0.0,
        )  # fmt: skip

    def _busy(self, but: str) -> str:
        """What the lease says; nobody's call fails here: others do that."""
        run = self.kubeflow.under_way()
        return f"{run.name} is under way" if run is not None and run.id != but else ""
