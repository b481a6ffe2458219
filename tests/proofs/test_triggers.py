"""Random events in their short form, and that what is missed or doubled is counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.watch import outcomes, starting
from pipelines.watch.by_data import DataTrigger
from pipelines.watch.cursor import Cursor
from pipelines.watch.starting import Starting
from pipelines.watch.watcher import Watcher
from tests.infra.loopback import S3Server
from tests.infra.ministack import Ministack, ministack_running
from tests.infra.seaweed import s3_running
from tests.proofs.simulation import World
from tests.proofs.triggers import Servers, prove
from tests.proofs.watch_queue import SimulatedQueue
from tests.proofs.watch_runs import SimulatedStarter
from tests.proofs.watch_world import SimulatedStore


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_running(tmp_path_factory.mktemp("weed")) as server:
        yield server


@pytest.fixture(scope="module")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ministack]:
    with ministack_running(tmp_path_factory.mktemp("ministack")) as server:
        yield server


def proved(count: int, folder: Path) -> dict[str, int]:
    return prove(count, folder)


@pytest.mark.slow
def test_each_version_of_the_data_gets_one_run(
    tmp_path: Path, s3: S3Server, ministack: Ministack
) -> None:
    simulated = prove(24, tmp_path)
    real = prove(2, tmp_path, servers=Servers(s3, ministack), seed=98)
    assert (simulated["sequences"], real["real"]) == (24, 1)
    assert simulated["runs"] > 100
    assert simulated["due"] > 20
    assert simulated["crashes"] > 100
    for figures in (simulated, real):
        assert (figures["missed"], figures["doubled"]) == (0, 0)


def test_the_same_seed_is_the_same_sequence(tmp_path: Path) -> None:
    assert proved(3, tmp_path) == proved(3, tmp_path)


def test_runs_that_are_not_looked_for_are_started_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimulatedStarter, "find", lambda self, name: None)
    assert proved(20, tmp_path)["doubled"] > 0


def test_claims_that_go_stale_before_a_start_is_done_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimulatedStarter, "late", -5.0)  # what the code believes
    monkeypatch.setattr(starting, "STALE", 5.0)
    monkeypatch.setattr(starting, "FRESH", 5.0)
    assert proved(20, tmp_path)["doubled"] > 0


def test_starts_by_whoever_stood_still_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimulatedStarter, "late", -1e9)
    monkeypatch.setattr(starting, "FRESH", 1e9 - 1)
    assert proved(40, tmp_path)["doubled"] > 0


def test_writes_without_a_comparison_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace(self: SimulatedStore, key: str, data: bytes, *, version: str) -> Any:
        def effect() -> str:
            self._shelf.put(key, data)
            return self._shelf.kept[key].version

        return self._call(effect, writes=True)

    monkeypatch.setattr(SimulatedStore, "replace", replace)
    assert proved(20, tmp_path)["doubled"] > 0


def test_gates_that_are_tried_again_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "_WORLD_FAILED", (1, 3, 130))
    assert proved(20, tmp_path)["doubled"] > 0


def test_lost_events_that_nobody_looks_for_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_at_first(self: DataTrigger, cursor: Cursor) -> Cursor:
        return cursor if self._looks.last is not None else self._look(cursor)

    most_are_lost = property(lambda self: 0.8, lambda self, value: None)
    monkeypatch.setattr(SimulatedQueue, "lost", most_are_lost, raising=False)
    assert proved(12, tmp_path)["missed"] == 0
    monkeypatch.setattr(DataTrigger, "prepare", only_at_first)
    assert proved(12, tmp_path)["missed"] > 0


def test_orders_that_are_forgotten_once_given_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pursue = Watcher._pursue

    def forget(self: Watcher, order: Any) -> Cursor:
        pursue(self, order)
        return self._cursors.update(lambda c: c.with_(order=None))

    monkeypatch.setattr(Watcher, "_pursue", forget)
    assert proved(20, tmp_path)["missed"] > 0


def test_a_watcher_without_claims_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pursue(self: Starting, order: Any) -> starting.Progress:
        run = self._starter.find(order.name)
        run = run or self._starter.start(order.name, overrides=(), force=False)
        start = starting.Start(
            key=order.key, name=order.name, reason=order.reason, token="t", by="b", run=run
        )
        over = self._starter.ended(order.name, run) is not None
        if over:
            ended = start.model_copy(update={"state": "ended"}).model_dump_json().encode()
            self._store.create(starting._place(order.key), ended)
        return starting.Progress("ended" if over else "under_way", start, 5.0)

    monkeypatch.setattr(Starting, "pursue", pursue)
    assert proved(20, tmp_path)["doubled"] > 0


def test_simulated_time_passes_for_one_at_a_time_and_in_order() -> None:
    import random

    world, seen = World(random.Random(1)), []

    def count(name: str, every: float) -> None:
        for _ in range(3):
            world.sleep(every)
            seen.append((world.now, name))

    world.add("slow", lambda: count("slow", 5))
    world.add("fast", lambda: count("fast", 2))
    world.run(until=12)
    assert seen == [(2, "fast"), (4, "fast"), (5, "slow"), (6, "fast"), (10, "slow")]
    assert (world.now, world.failed) == (12, [])
