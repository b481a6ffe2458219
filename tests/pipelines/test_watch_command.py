"""`evertrain watch` on this machine: a process, signals, a port, and runs that outlive it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from infra.metrics import METRICS, series
from pipelines.watch.local_mark import GONE
from tests.infra.loopback import free_ports
from tests.pipelines.watch_child import WatchProcess
from tests.small_project.command import evertrain, make_project


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    """A project whose runs end in their first step: the same rows lie there twice."""
    project = make_project(tmp_path / "twice", 1)
    again(project, "copy")
    return project


def again(project: Path, name: str) -> None:
    """Let the same rows come once more."""
    first = sorted((project / "data").glob("2025*"))[0]
    shutil.copyfile(first, project / "data" / f".{name}")
    (project / "data" / f".{name}").rename(project / "data" / f"{name}.parquet")


def read(project: Path, key: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project / ".evertrain" / "store" / key).read_bytes())
    return found


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as reply:
            return reply.status, reply.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def runs(project: Path) -> list[Path]:
    return sorted((project / ".evertrain" / "store" / "runs").glob("*"))


def test_data_that_is_there_and_data_that_comes_each_get_one_run(twice: Path) -> None:
    (port,) = free_ports(1)
    words = ("--set", "watch.poll=0.5", "--listen", f"127.0.0.1:{port}")
    with WatchProcess(twice, *words) as watcher:
        assert watcher.wait_for("watching")["message"].startswith("small for data (")
        first = watcher.wait_for("started")
        assert first["message"].endswith("by data: 2 new objects of 2")
        assert "the very content" in watcher.wait_for("ended")["message"]
        again(twice, "third")
        assert watcher.wait_for("heard")["message"].endswith("/data/third.parquet came")
        second = watcher.wait_for("started")
        assert second["message"].endswith("by data: 1 new object of 3")
        ended = watcher.wait_for("ended")
        assert (ended["run"], ended["code"]) == (second["run"], 1)
        assert len(runs(twice)) == 2
        deadline = time.monotonic() + 20
        while 'evertrain_last_run_status{project="small",status="stopped"} 1.0' not in (
            metrics := get(port, "/metrics")[1]
        ):
            assert time.monotonic() < deadline, metrics
            time.sleep(0.2)
        assert 'evertrain_watch_runs_started_total{project="small",reason="data"} 2.0' in metrics
        assert 'evertrain_watch_event_to_start_seconds_count{project="small"} 2.0' in metrics
        assert get(port, "/healthz") == (200, "ok\n")
        assert get(port, "/readyz") == (200, "ok\n")
        assert get(port, "/else")[0] == 404
        assert watcher.stop() == 0
        assert watcher.wait_for("stopped")["message"] == "by SIGTERM: nothing is half done"
    assert read(twice, "watch/cursor.json")["order"] is None


def test_every_metric_of_the_table_is_exported_and_no_other(twice: Path) -> None:
    from pipelines.watch.exporting import Figures

    figures = Figures("p")
    figures.count("evertrain_watch_polls_total", source="sqs", outcome="succeeded")
    lines = figures.text().decode().splitlines()
    typed = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE")}
    assert typed == {name: metric.kind for name, metric in METRICS.items()}
    exported = {line.partition("{")[0] for line in lines if not line.startswith("#")}
    assert exported <= {each for name in METRICS for each in series(name)}
    with pytest.raises(AssertionError, match="polls_total"):
        figures.count("evertrain_watch_polls_total", source="sqs")


@pytest.mark.smoke
def test_a_run_outlives_its_watcher_and_when_it_is_killed_the_next_one_tries_it_again(
    fresh_project: Path,
) -> None:
    """SIGKILL of both: nothing is cleaned up, and nothing has to be."""
    more = {"EVERTRAIN_TEST": str(fresh_project)}
    words = ("--set", "watch.poll=0.5", "--set", "watch.retry_after=1")
    with WatchProcess(fresh_project, more=more) as watcher:
        started = watcher.wait_for("started")
        watcher.process.kill()
    mark = f"watch/runs/{started['name']}.json"
    assert read(fresh_project, mark)["exit_code"] is None
    with WatchProcess(fresh_project, *words, more=more) as watcher:
        watcher.wait_for("watching")
        until_it_stands_by(fresh_project)
        time.sleep(1)
        assert [path.name for path in runs(fresh_project)] == [started["run"]], "no second one"
        assert kill_runs(fresh_project) == 2, "the run, and what stands by for the next"
        long_ago = time.time() - GONE - 5
        os.utime(fresh_project / ".evertrain" / "store" / mark, (long_ago, long_ago))
        failed = watcher.wait_for("failed")
        assert (failed["run"], "it was killed; again in 1 s" in failed["message"]) == (
            started["run"],
            True,
        )
        assert watcher.wait_for("started")["name"] == f"{started['name']}-2"
        assert "started" in watcher.kinds()
        assert watcher.stop() == 0
    assert kill_runs(fresh_project) >= 1


def local_runs(project: Path) -> dict[int, list[bytes]]:
    """The processes that are, or stand by for, local runs of a project: their command lines."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = status.read_bytes().split(b"\0")
            variables = (status.parent / "environ").read_bytes()
        except OSError:
            continue
        if (
            b"pipelines.watch.local_run" in words
            and f"EVERTRAIN_TEST={project}".encode() in variables
        ):
            found[int(status.parent.name)] = words
    return found


def until_it_stands_by(project: Path) -> None:
    """Wait until a watcher has found that its project can be run."""
    deadline = time.monotonic() + 60
    while len(there := local_runs(project)) < 2 or any(b"--check" in w for w in there.values()):
        assert time.monotonic() < deadline, there
        time.sleep(0.1)


def kill_runs(project: Path) -> int:
    """Kill the local runs of a project, as a machine that is switched off does; say how many."""
    there = local_runs(project)
    for number in there:
        os.kill(number, signal.SIGKILL)
    return len(there)


def test_a_look_at_the_project_that_is_killed_is_taken_again(tmp_path: Path) -> None:
    project = make_project(tmp_path / "empty")
    more = {"EVERTRAIN_TEST": str(project)}
    with WatchProcess(project, more=more) as watcher:
        watcher.wait_for("watching")
        deadline = time.monotonic() + 60
        while not kill_runs(project):
            assert time.monotonic() < deadline
        assert "ended by SIGKILL" in watcher.wait_for("trouble")["message"]
        watcher.wait_for("well")
        assert watcher.stop() == 0


@pytest.mark.parametrize(
    ("sign", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)]
)  # fmt: skip
def test_a_watcher_that_waits_stops_at_once(
    tmp_path: Path, sign: signal.Signals, code: int
) -> None:
    project = make_project(tmp_path / "empty")
    with WatchProcess(project, "--set", "watch.poll=3600") as watcher:
        assert "there is nothing to read" in watcher.wait_for("waiting")["message"]
        began = time.monotonic()
        assert watcher.stop(sign) == code
        assert time.monotonic() - began < 15
        assert watcher.wait_for("stopped")["message"].startswith(f"by {sign.name}")


def test_faults_are_said_once_and_so_is_their_end(twice: Path) -> None:
    (port,) = free_ports(1)
    store = twice / ".evertrain" / "store"
    store.mkdir(parents=True)
    (store / "watch").write_text("a file where a folder should be")
    words = ("--set", "watch.poll=0.2", "--listen", f"127.0.0.1:{port}")
    with WatchProcess(twice, *words) as watcher:
        trouble = watcher.wait_for("trouble")["message"]
        assert "cannot write watch/cursor.json" in trouble
        assert trouble.endswith("trying again until it works")
        time.sleep(3)
        assert get(port, "/healthz")[0] == 200, "it lives"
        code, why = get(port, "/readyz")
        assert (code, "cannot write watch/cursor.json" in why) == (503, True)
        (store / "watch").unlink()
        watcher.wait_for("started")
        assert watcher.kinds().count("trouble") == 1
        assert "well" in [*watcher.kinds(), watcher.wait_for("well")["event"]]
        assert 'evertrain_watch_errors_total{kind="OutsideError"' in get(port, "/metrics")[1]
        assert watcher.stop() == 0


@pytest.mark.smoke
def test_once_looks_waits_for_quiet_starts_a_run_and_waits_for_its_end(twice: Path) -> None:
    words = ("watch", twice, "--once", "--set", "watch.quiet=1", "--json")
    ended = evertrain(*words)
    assert ended.code == 0, ended.err
    said = [json.loads(line)["event"] for line in ended.out.splitlines()]
    assert said == ["watching", "pending", "started", "ended"]
    assert len(runs(twice)) == 1
    ended = evertrain(*words)
    assert [json.loads(line)["event"] for line in ended.out.splitlines()] == ["watching", "looked"]
    again(twice, "third")
    plain = evertrain("watch", twice, "--once", "--set", "watch.quiet=0")
    assert plain.code == 0
    assert " UTC  started   run 20" in plain.out
    assert len(runs(twice)) == 2


@pytest.mark.smoke
def test_two_watchers_start_each_run_once(twice: Path) -> None:
    words = ("--set", "watch.poll=0.2")
    with WatchProcess(twice, *words) as one, WatchProcess(twice, *words) as two:
        one.wait_for("watching")
        two.wait_for("watching")
        names = []
        for number in range(4):
            if number:
                again(twice, f"more-{number}")
            deadline = time.monotonic() + 60
            while len(runs(twice)) < number + 1:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            time.sleep(6)
        assert one.stop() == 0
        assert two.stop() == 0
        for watcher in (one, two):
            watcher.wait_for("stopped")
            names += [said["name"] for said in watcher.said if said["event"] == "started"]
    assert len(names) == len(set(names)) == len(runs(twice)) == 4


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--listen", "8080"], 2, "no address with a port"),
        (["--set", "watch.when=[schedule]"], 2, "no schedule is enabled"),
        (["--set", "watch.when=[schedule]", "--set", "schedules=[{name: a, cron: 0 2 * * *}]"],
         2, "five fields"),
        (["--set", "watch.queue=https://sqs.eu-west-1.amazonaws.com/1/q"], 2, "is in no bucket"),
        (["--set", "watch.quiet=10", "--set", "watch.longest=5"], 2, "is shorter than quiet"),
        (["--set", "task.path=task:Nobody"], 2, "has no task class 'Nobody'"),
        (["--set", 'data.pattern="{date"'], 2, "a brace is not closed"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_said_before_anything_is_watched(
    fresh_project: Path, words: list[str], code: int, said: str
) -> None:
    ended = evertrain("watch", fresh_project, *words)
    assert ended.code == code
    assert said in ended.err
    assert "hint:" in ended.err
    assert not (fresh_project / ".evertrain" / "store").exists()


def test_a_port_that_is_taken_is_said(fresh_project: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = evertrain("watch", fresh_project, "--listen", f"127.0.0.1:{port}")
    assert ended.code == 3
    assert f"cannot listen on 127.0.0.1:{port}" in ended.err
