"""From an event to the first step's start: `make bench-trigger`.

Each round one object lands in a bucket or folder that an `evertrain watch` process watches, and the
clock runs until the record of the run's first step is in the object store: the message or the
listing, the look, the claim, a new process with its imports, the compiled pipeline, and the step's
own process. `watch.quiet` is 0; what a project sets there comes on top. All objects are copies of
one, so a gate ends each run in its first step.

SQS and its bucket are ministack, listings those of a folder. `kubeflow` is the same by SQS with a
double of Kubeflow Pipelines for the runs: until it is asked for one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.reporting import last_line, table, words_of
from tests.cluster.kfp_server import KfpServer
from tests.infra.ministack import Ministack, ministack_running
from tests.proofs.trigger_processes import upload_pipeline
from tests.small_project.command import environment, make_project

POLL = 5.0  # seconds between listings
_PATIENCE = 60.0  # seconds for a run to start


def measure(rounds: int, folder: Path) -> dict[str, list[float]]:
    """Return the seconds of each round, by figure."""
    project = make_project(folder / "project", 1)
    with ministack_running(folder) as server:
        by_sqs = _by_queue(rounds, project, folder / "sqs", server)
        by_kubeflow = _by_queue(rounds, project, folder / "kubeflow", server, kubeflow=True)
    by_polling = _by_listing(rounds, project, folder / "polling")
    return {
        "sqs_seconds": by_sqs,
        "kubeflow_seconds": by_kubeflow,
        "polling_seconds": by_polling,
        "polling_over_interval_seconds": [seconds - POLL for seconds in by_polling],
    }


def _by_queue(
    rounds: int, project: Path, home: Path, server: Ministack, *, kubeflow: bool = False
) -> list[float]:
    bucket = f"data-{home.name}"
    queue = server.notified_bucket(bucket)
    client = server.client("s3")
    content = next((project / "data").iterdir()).read_bytes()

    def land(name: str) -> None:
        client.put_object(Bucket=bucket, Key=f"data/{name}", Body=content)

    words = ["--data", f"s3://{bucket}/data", "--set", f"watch.queue={queue}"]
    if not kubeflow:
        with _watching(project, home, *words, more=server.environment) as watcher:
            return _rounds(rounds, watcher, land, starts=lambda: _first_records(home))
    with KfpServer() as double:
        home.mkdir()
        upload_pipeline(double, home)
        words += ["--host", double.url, "--set", "watch.poll=1"]  # how often a run is looked at
        more = server.environment | {"HOME": str(home)}
        with _watching(project, home, *words, more=more) as watcher:
            return _rounds(rounds, watcher, land, starts=lambda: len(double.runs))


def _by_listing(rounds: int, project: Path, home: Path) -> list[float]:
    data = home / "data"
    data.mkdir(parents=True)
    first = next((project / "data").iterdir())

    def land(name: str) -> None:
        shutil.copyfile(first, data / f".{name}")
        (data / f".{name}").rename(data / name)

    words = ["--data", str(data), "--set", f"watch.poll={POLL}"]
    with _watching(project, home, *words, more={}) as watcher:
        return _rounds(rounds, watcher, land, starts=lambda: _first_records(home))


def _rounds(
    count: int,
    watcher: subprocess.Popen[str],
    land: Callable[[str], None],
    *,
    starts: Callable[[], int],
) -> list[float]:
    """Land an object, wait for the start of its run, and for its end."""
    found = []
    for number in range(count + 1):  # the first two objects are a warm-up
        before, began = starts(), time.perf_counter()
        if not number:
            land("first.parquet")
        land(f"{number:03}.parquet")
        while starts() == before:
            if time.perf_counter() - began > _PATIENCE:
                raise SystemExit("no run was started; the watcher's log is above")
            time.sleep(0.01)
        found.append(time.perf_counter() - began)
        _wait_for(watcher, "ended")
        time.sleep(2 + random.uniform(0, POLL))  # at any moment of the watcher's rhythm
    return found[1:]


def _first_records(home: Path) -> int:
    return len(list((home / "store" / "runs").glob("*/snapshot_data.json")))


@contextmanager
def _watching(
    project: Path, home: Path, *words: str, more: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Run a watcher until the block ends."""
    home.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pipelines.cli", "watch", str(project), "--json"]
    command += ["--set", "watch.quiet=0", *words]
    variables = environment() | {"EVERTRAIN_HOME": str(home)} | more
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env=variables, cwd="/", text=True
    ) as process:
        try:
            assert process.stdout is not None
            os.set_blocking(process.stdout.fileno(), False)
            _wait_for(process, "watching")
            time.sleep(2)  # its first look, and the process that stands by
            yield process
        finally:
            process.terminate()


def _wait_for(process: subprocess.Popen[str], event: str) -> None:
    until = time.monotonic() + _PATIENCE
    assert process.stdout is not None
    while time.monotonic() < until and process.poll() is None:
        for line in process.stdout.readlines():
            said: dict[str, Any] = json.loads(line)
            if said["event"] == event:
                return
        time.sleep(0.05)
    raise SystemExit(f"the watcher never said {event!r}")


def main() -> None:
    parser = argparse.ArgumentParser(description="From an event to the first step's start.")
    parser.add_argument("--count", type=int, default=9, help="rounds")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-trigger-") as name:
        found = measure(arguments.count, Path(name))
    rows = [[name, words_of(values)] for name, values in found.items()]
    print(table(["", "seconds, median (range)"], rows))
    print(last_line("trigger", found))


if __name__ == "__main__":
    main()
