"""One run of a project at a time: two homes, one store; the one that comes later ends green."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from infra.folder import FolderStore
from infra.lease import KEY, Lease
from infra.lease_record import Holder
from tests.small_project.command import command, environment, evertrain, make_project

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", 1, 2)


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "store")


def place(store: FolderStore, name: str) -> dict[str, str]:
    """The environment of a machine of its own; the store and the registry are shared."""
    beside = Path(store.uri).parent
    return {
        "EVERTRAIN_HOME": str(beside / name),
        "EVERTRAIN_STORE": store.uri,
        "MLFLOW_TRACKING_URI": f"sqlite:///{beside / 'mlflow.db'}",
    }


@contextmanager
def training(project: Path, store: FolderStore, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Run `evertrain run` elsewhere until it has the lease; end it with the block."""
    process = subprocess.Popen(
        command("run", project, "--json", *words), cwd="/", start_new_session=True, text=True,
        env=environment() | place(store, "there"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while store.info(KEY) is None:
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < until
            time.sleep(0.05)
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def held_by(store: FolderStore) -> str:
    seen = Lease(store).look()
    assert seen is not None
    return "" if seen.free else seen.record.holder.run


def test_the_second_is_skipped_green_and_says_who_is_under_way(
    project: Path, store: FolderStore
) -> None:
    here = place(store, "here")
    with training(project, store) as first:
        holder = held_by(store)
        shown = evertrain("lease", project, more=here)
        assert f"run {holder} of " in shown.out
        assert "(evertrain run) holds the lease since " in shown.out
        second = evertrain("run", project, more=here)
        assert second.code == 0, second.err
        assert "verdict:  skipped" in second.out
        assert f"reason:   run {holder} of " in second.out
        assert first.poll() is None, "the first works on"
        (skipped,) = evertrain("runs", project, "--json", more=here).json["runs"]
        assert (skipped["status"], skipped["exit_code"], skipped["key"]) == ("skipped", 0, "")
        assert [s["step"] for s in skipped["steps"] if s["status"] == "done"] == ["report_run"]
        page = store.get(skipped["report"]).decode()
        assert "Another run was under way" in page
        assert holder in page
        os.killpg(first.pid, signal.SIGINT)
        assert first.wait(timeout=60) == 130
    assert held_by(store) == "", "it let go when it was interrupted"


@pytest.mark.smoke
def test_in_the_folder_of_a_killed_run_nobody_waits_for_its_time(
    project: Path, store: FolderStore
) -> None:
    """Whoever has the folder's lock knows that it is dead."""
    with training(project, store) as first:
        os.killpg(first.pid, signal.SIGKILL)  # nobody is told
        first.wait()
    killed = Lease(store).look()
    assert killed is not None
    assert killed.record.held
    there = evertrain("run", project, "--json", "--data", "nowhere", more=place(store, "there"))
    assert there.code == 1, "there is no data, so it ended soon; it was not skipped"
    runs = evertrain("runs", project, "--json", more=place(store, "here")).json["runs"]
    assert [r["status"] for r in runs] == ["interrupted", "stopped"]
    log = [json.loads(store.get(info.key)) for info in store.list("promotions/")]
    assert [(e["action"], e["reason"].partition(": ")[2]) for e in log] == [
        ("fence", f"run {killed.record.holder.run} was killed")
    ]


@pytest.mark.smoke
def test_a_queued_run_says_that_it_waits_and_goes_on_when_the_time_of_the_dead_is_over(
    project: Path, store: FolderStore
) -> None:
    Lease(store).take(Holder(run="dead elsewhere"), seconds=600)
    words = ("run", project, "--data", "nowhere", "--set", "lease.busy=queue")
    waiting = subprocess.Popen(
        command(*words), cwd="/", env=environment() | place(store, "here"), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert waiting.stderr is not None
        line = waiting.stderr.readline()
        assert line.startswith("waits for its turn: run dead elsewhere holds the lease since 20")
        os.utime(Path(store.uri) / KEY, (0, 0))  # a folder's clock is that of its files
        waiting.communicate(timeout=60)
    finally:
        waiting.kill()
        waiting.communicate()
    assert waiting.returncode == 1, "there is no data, so it ended soon; it was not skipped"
    log = [json.loads(store.get(info.key)) for info in store.list("promotions/")]
    assert "run dead elsewhere gave no sign of life for" in log[-1]["reason"]


@pytest.mark.smoke
def test_a_run_under_way_elsewhere_is_not_closed_as_killed(
    project: Path, store: FolderStore
) -> None:
    here = place(store, "here")
    with training(project, store):
        holder = held_by(store)
        store.put("runs/waiting/snapshot_data.json", record("waiting", "running"))
        store.put("runs/gone/snapshot_data.json", record("gone", "done"))
        evertrain("run", project, more=here)
        runs = evertrain("runs", project, "--json", more=here).json["runs"]
    assert {r["run"]: r["status"] for r in runs if r["status"] != "skipped"} == {
        "gone": "interrupted"
    }
    assert holder not in [r["run"] for r in runs]


def record(run: str, status: str) -> bytes:
    said: dict[str, Any] = {"step": "snapshot_data", "run": run, "run_key": "", "status": status}
    return json.dumps(said).encode()


@pytest.mark.smoke
def test_breaking_it_asks_and_says_what_it_means_and_the_run_notices(
    project: Path, store: FolderStore
) -> None:
    here = place(store, "here")
    assert evertrain("lease", project, more=here).out == "free: no run ever took it\n"
    assert evertrain("lease", project, "--break", "--json", more=here).json["free"] is True
    with training(project, store, "--set", "lease.seconds=5") as first:
        holder = held_by(store)
        unsure = evertrain("lease", project, "--break", more=here)
        assert unsure.code == 2, "nobody can be asked"
        assert "stops at its next sign of life and promotes nothing" in unsure.err
        assert held_by(store) == holder
        broken = evertrain("lease", project, "--break", "--yes", more=here)
        assert broken.code == 0, broken.err
        assert broken.out.startswith(f"free: run {holder} of ")
        out, _ = first.communicate(timeout=120)
        assert first.returncode == 3, out
    ended = json.loads(out)
    assert (ended["status"], ended["exit_code"]) == ("failed", 3)
    assert "has lost the lease: " in ended["reasons"][0]
    assert " took it away" in ended["reasons"][0]


@pytest.mark.smoke
def test_a_damaged_one_stops_every_run_until_a_person_has_freed_it(
    project: Path, store: FolderStore
) -> None:
    here = place(store, "here")
    store.put(KEY, b"?")
    ended = evertrain("run", project, "--data", "nowhere", more=here)
    assert ended.code == 3
    assert "is no lease" in ended.out + ended.err
    assert "evertrain lease PROJECT --break" in ended.out + ended.err
    assert evertrain("lease", project, "--json", more=here).json["free"] is False
    assert evertrain("lease", project, "--break", "--yes", more=here).code == 0
    assert evertrain("run", project, "--data", "nowhere", more=here).code == 1
