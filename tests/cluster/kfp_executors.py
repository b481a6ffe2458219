"""Runs of the KFP double that really run: the pipeline that was submitted, on this machine.

    server.executor = LocalPipeline(tmp_path / "runs")

Each run is a process of its own (`kfp.local`, each step a subprocess of it); what it prints is the
run's log, steps show as tasks, terminating the run stops the process with SIGTERM, then SIGKILL.
Images and resources are passed over, as `kfp.local` does.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from tests.cluster.kfp_state import RunHandle

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_EVENTS = (
    (re.compile(r"Executing task ['\"]?([\w-]+)"), "RUNNING"),
    (re.compile(r"Task ['\"]?([\w-]+)['\"]? finished with status SUCCESS"), "SUCCEEDED"),
    (re.compile(r"Task ['\"]?([\w-]+)['\"]? finished with status FAILURE"), "FAILED"),
)
REPOSITORY = Path(__file__).parents[2]


class LocalPipeline:
    """An executor.

    Args:
        folder: Where packages, artifacts and logs of the runs go, a folder a run.
        environment: On top of this process's environment; what a pod would be given.
        grace: Seconds between SIGTERM and SIGKILL.
    """

    def __init__(
        self, folder: Path, *, environment: dict[str, str] | None = None, grace: float = 5
    ) -> None:
        self.folder, self.environment, self.grace = folder, environment or {}, grace

    def __call__(self, handle: RunHandle) -> str:
        home = self.folder / f"{handle.run.key}-{handle.run.attempt}"
        home.mkdir(parents=True)
        (home / "package.yaml").write_text(handle.package)
        (home / "parameters.json").write_text(json.dumps(handle.parameters))
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.run_package", str(home)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=home,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), **self.environment},
        )  # fmt: skip
        over = threading.Event()
        stopping = threading.Thread(
            target=self._stop_if_cancelled, args=(process, handle, over), daemon=True
        )
        stopping.start()
        last, task = "", "pipeline"
        assert process.stdout is not None
        with process.stdout, (home / "log").open("w") as log:
            for line in process.stdout:
                log.write(line)
                line = _COLOURS.sub("", line.rstrip("\n"))
                task = _say(handle, line, task)
                last = line.strip() or last
        code = process.wait()
        over.set()
        stopping.join()
        if code and not handle.cancelled.is_set():
            raise RuntimeError(f"the pipeline ended with {code}: {last}")
        return "SUCCEEDED"

    def _stop_if_cancelled(
        self, process: subprocess.Popen[str], handle: RunHandle, over: threading.Event
    ) -> None:
        while not over.wait(0.05):
            if handle.cancelled.is_set():
                break
        for sign, patience in ((signal.SIGTERM, self.grace), (signal.SIGKILL, 0.0)):
            if over.is_set():
                return
            with suppress(ProcessLookupError):
                os.killpg(process.pid, sign)
            over.wait(patience)


def _say(handle: RunHandle, line: str, task: str) -> str:
    """Pass a line on, and what it says of a task; give the task that speaks from here on."""
    for pattern, state in _EVENTS:
        if found := pattern.search(line):
            task = found[1]
            handle.task(task, state)
    handle.log(task, line)
    return task
