"""Trials at once, each in a process of its own, and what they say while they train."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from components.common.watchdog import VARIABLE, this_process

_PATIENCE = 30.0  # seconds that a process has to save in before it is killed


class Evaluation(NamedTuple):
    """What a training told while it trains."""

    key: str
    step: int
    rung: int
    metrics: dict[str, float]


class Done(NamedTuple):
    """How a training ended.

    Attributes:
        key: Its run key.
        result: As of `job.train`; None: it has none.
        failure: As plain data; None where there is a result, or the process died.
        died: The process is gone, and with what code.
    """

    key: str
    result: dict[str, Any] | None
    failure: dict[str, Any] | None
    died: int | None
    seconds: float


class Pool:
    """Some worker processes, started when they are needed.

    Args:
        folder: On this machine, for logs and what is told.
        size: Processes.
    """

    def __init__(self, folder: Path, *, size: int) -> None:
        self.folder, self.size = folder, size
        self._workers: list[_Worker] = []

    @property
    def free(self) -> int:
        """How many trainings can be started now."""
        return self.size - sum(worker.key is not None for worker in self._workers)

    @property
    def busy(self) -> bool:
        """Whether something trains."""
        return self.free < self.size

    def start(self, training: Mapping[str, Any], *, name: str, tags: Mapping[str, str]) -> None:
        """Start a training; there has to be a free process.

        Args:
            training: Arguments of `job.train`, but for the trial.
            name, tags: Of its run in MLflow.
        """
        worker = next((each for each in self._workers if each.key is None), None)
        if worker is None:
            worker = _Worker(self.folder, len(self._workers))
            self._workers.append(worker)
        worker.start(training, name=name, tags=tags)

    def end(self, key: str) -> None:
        """Ask a training to stop, in good order."""
        for worker in self._workers:
            if worker.key == key:
                worker.stop.touch()

    def events(self, seconds: float) -> Iterator[Evaluation | Done]:
        """Yield what came; wait so long for something to end, if nothing has."""
        answers = [worker.answers for worker in self._workers if worker.key is not None]
        ready, _, _ = select.select(answers, [], [], seconds) if answers else ([], [], [])
        for worker in list(self._workers):
            yield from worker.told()
            if worker.key is not None and worker.answers in ready:
                yield from worker.told()  # what it told between the look before and its end
                done = worker.done()
                if done.died is not None:
                    self._workers.remove(worker)
                yield done

    def close(self) -> None:
        """End the processes; those that still train are asked to save first."""
        for worker in self._workers:
            worker.stop.touch()
            with suppress(OSError):
                worker.requests.close()
        for worker in self._workers:
            try:
                worker.process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
            os.close(worker.answers)
        self._workers.clear()


class _Worker:
    def __init__(self, folder: Path, index: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.stop = folder / f"stop-{index}"
        self.key: str | None = None
        self._folder, self._read, self._rest = folder, 0, b""
        self.answers, writing = os.pipe()
        with (folder / f"worker-{index}.log").open("ab") as log:
            # A session of its own: Ctrl-C is the search's, which asks the trainings to save.
            self.process = subprocess.Popen(
                [sys.executable, "-m", "components.tune.worker", str(writing)],
                stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=(writing,),
                env={**os.environ, VARIABLE: this_process()}, start_new_session=True,
            )  # fmt: skip
        os.close(writing)
        assert self.process.stdin is not None
        self.requests = self.process.stdin

    def start(self, training: Mapping[str, Any], *, name: str, tags: Mapping[str, str]) -> None:
        self.key, self._read = str(training["run_key"]), 0
        self.stop.unlink(missing_ok=True)
        self._file.unlink(missing_ok=True)
        trial = {"name": name, "tags": dict(tags), "told": str(self._file)}
        job = {"stop": str(self.stop), "training": {**training, "trial": trial}}
        with suppress(BrokenPipeError):  # it died, which its answers say
            self.requests.write(json.dumps(job).encode() + b"\n")
            self.requests.flush()

    def told(self) -> Iterator[Evaluation]:
        """Yield what is new in the file; a line that is still being written waits."""
        if self.key is None or not self._file.exists():
            return
        with self._file.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._read += len(line)
                yield Evaluation(self.key, **json.loads(line))

    def done(self) -> Done:
        """Read how the training ended; the process may have died over it."""
        key, line = self.key, self._rest
        assert key is not None
        while not line.endswith(b"\n"):
            more = os.read(self.answers, 1 << 20)
            if not more:
                os.close(self.answers)
                self.requests.close()
                return Done(key, None, None, self.process.wait(), 0.0)
            line += more
        said = json.loads(line)
        self._file.unlink(missing_ok=True)
        self.key = None
        return Done(key, said.get("result"), said.get("failure"), None, said["seconds"])

    @property
    def _file(self) -> Path:
        return self._folder / f"{self.key}.told"
