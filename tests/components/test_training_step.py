"""train_distributed as it runs in a pod: real torchrun ranks, stopped by a signal, and going on."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from components.common.watchdog import this_process
from tests.small_project.command import environment
from tests.small_project.splits import write_splits

pytestmark = pytest.mark.slow

_PROGRAM = """
import os, sys
from pathlib import Path
from components.train_distributed.step import run
class Metrics:
    path = sys.argv[3] + ".metrics"
    def log_metric(self, metric, value):
        pass
scratch = Path(sys.argv[1], ".evertrain", "scratch")
scratch.mkdir(exist_ok=True)
for end in ("done", "failed"):  # of a process that had this number before
    (scratch / f"train-key-{os.getpid()}.json.{end}").write_text('{"kind": "stale"}')
run(sys.argv[1], "", sys.argv[4:], "key", sys.argv[2], sys.argv[3], Metrics())
"""


class Step:
    """One start of the step in a process of its own."""

    def __init__(self, project: Path, splits: Path, run: str, *overrides: str) -> None:
        self.scratch = project / ".evertrain/scratch"
        self.record = project / ".evertrain/store/runs" / run / "train_distributed.json"
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(project), str(splits),
             str(project / "training.json"), *overrides],
            cwd="/",
            env={**environment(), "EVERTRAIN_RUN_ID": run, "EVERTRAIN_PARENT": this_process()},
            stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        self._trains = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stream:
            for line in stream:
                self.lines.append(line)
                if line.startswith("step "):
                    self._trains.set()

    def processes(self) -> list[int]:
        """Return the numbers of the processes that run, this one's and those it started."""
        mine, found = f"EVERTRAIN_RUN_ID={self.record.parent.name}".encode(), []
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mine in (place / "environ").read_bytes().split(b"\0"):
                    found.append(int(place.name))
        return found

    def wait_until_it_trains(self) -> None:
        assert self._trains.wait(90), "".join(self.lines)

    def wait_for_torchrun(self) -> None:
        while len(self.processes()) < 2:
            assert self.process.poll() is None, "".join(self.lines)
            time.sleep(0.01)

    def interrupt(self) -> None:
        """Do what Ctrl-C in a terminal does: the whole group gets the signal."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> dict[str, Any]:
        """Wait for the end, which leaves nothing behind; return the step's record."""
        code = self.process.wait(timeout=120)
        assert list(self.scratch.iterdir()) == []
        assert self.processes() == []
        self._reader.join(10)
        record: dict[str, Any] = json.loads(self.record.read_text())
        assert code == record["exit_code"], "".join(self.lines)
        return record


@pytest.mark.smoke  # two trainings; test_launch.py has the signal
@pytest.mark.timeout(400)
def test_ctrl_c_saves_on_all_ranks_and_the_same_command_goes_on_to_the_end(
    fresh_project: Path,
) -> None:
    settings = [
        "training.processes=2", "training.parallel.strategy=fsdp", "training.data=disk",
        "training.epochs=400", "training.evaluate_every=5000",
    ]  # fmt: skip
    splits = write_splits(fresh_project)
    step = Step(fresh_project, splits, "20250101T000000Z-aaaa", *settings)
    step.wait_until_it_trains()
    step.interrupt()
    stopped = step.end()
    assert (stopped["status"], stopped["exit_code"]) == ("interrupted", 130)
    marker = fresh_project / ".evertrain/store/checkpoints/key/stopped.json"
    said = json.loads(marker.read_text())
    assert (marker.parent / f"{said['step']:09d}" / "manifest.json").exists()

    end = f"training.stopping.max_steps={said['step'] + 50}"
    record = Step(fresh_project, splits, "20250101T000000Z-bbbb", *settings, end).end()
    assert record["status"] == "done", record
    figures = record["figures"]
    assert (figures["resumed_from"], figures["processes"]) == (said["step"], 2)
    assert figures["steps"] == said["step"] + 50
    assert figures["stop_reason"].startswith("max steps")
    assert not marker.exists()


@pytest.mark.timeout(120)
def test_a_stop_before_training_has_begun_is_no_failure(fresh_project: Path) -> None:
    splits = write_splits(fresh_project)
    step = Step(fresh_project, splits, "20250101T000000Z-aaaa", "training.processes=2")
    step.wait_for_torchrun()
    step.interrupt()
    assert step.end()["status"] == "interrupted"
