"""Runs on this machine, each a process of its own that outlives the watcher."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from components.common.layout import home, project_store
from components.common.project import Project
from infra.errors import OutsideError
from pipelines.watch.local_mark import GONE, read_mark
from pipelines.watch.local_run import Asked
from pipelines.watch.starter import Ended
from training_core.errors import ConfigurationError

_COMMAND = [sys.executable, "-m", "pipelines.watch.local_run"]
_LINES = 12  # of a log, in an error


class LocalStarter:
    """Starts `evertrain run`, so to speak, and leaves it alone.

    A name is taken once: of two processes that are started under it, one ends at once
    (`local_mark`).

    Args:
        project: Opened with the watcher's overrides.
        data: Data URI; empty: as in evertrain.yaml.
        stand_by: Keep a process that has imported what the next run needs: its first step starts a
            second sooner, for some 150 MB.
    """

    glance, late = 2.0, 60.0

    def __init__(self, project: Project, *, data: str = "", stand_by: bool = False) -> None:
        self.about = "this machine"
        self._project, self._data = project, data
        self._store = project_store(project)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._stand_by = stand_by
        self._next: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Find what no run could end well with, in a process of its own: it imports torch.

        Raises:
            ConfigurationError: There is something.
            OutsideError: It could not be found out: that process was killed.
        """
        ended = subprocess.run(
            [*_COMMAND, "--check"], input=self._asked("check"), capture_output=True, check=False
        )
        if ended.returncode < 0:
            raise OutsideError(
                "whether the project can be run is not known: who looked was ended by "
                f"{signal.Signals(-ended.returncode).name}",
                hint="is there enough memory? importing torch takes some 300 MB",
            )
        if ended.returncode:
            said = ended.stderr.decode(errors="replace").strip().removeprefix("error: ")
            what, _, hint = said.partition("\n\nhint: ")
            raise ConfigurationError(what or "the project cannot be run", hint=hint)
        if self._stand_by:
            self._next = _spawned()

    def find(self, name: str) -> str | None:
        seen = read_mark(self._store, name)
        return seen.mark.run if seen else None

    def start(self, name: str, *, overrides: tuple[str, ...] = (), force: bool = False) -> str:
        log = home(self._project) / "logs" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        process, self._next = self._next, None
        if process is None or process.poll() is not None:
            process = _spawned()
        self._processes[name] = process
        asked = self._asked(name, overrides, force=force, log=str(log))
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin as stdin:  # if it ended: see below
            stdin.write(asked)
        run = _first_line(process, self.late)
        if not run:
            raise self._not_begun(name, process, log)
        return run

    def ended(self, name: str, run: str) -> Ended | None:
        process = self._processes.get(name)
        over = process is not None and process.poll() is not None
        seen = read_mark(self._store, name)
        if seen is None:
            return Ended(None, words=f"nothing is known of {name} any more")
        if seen.mark.exit_code is not None:
            self._processes.pop(name, None)
            if self._stand_by and self._next is None:  # now that the machine is idle
                self._next = _spawned()
            return Ended(seen.mark.exit_code, words=seen.mark.words)
        if over or seen.age > GONE:
            return Ended(None, words="it was killed")
        return None

    def wait(self, name: str) -> None:
        """Wait for the end of a run that this process started."""
        if (process := self._processes.get(name)) is not None:
            process.wait()

    def close(self) -> None:
        """Let go of the process that stands by."""
        if self._next is not None:
            for pipe in (self._next.stdin, self._next.stdout):
                assert pipe is not None
                pipe.close()  # it reads nothing, and ends
            self._next = None

    def _asked(
        self, name: str, overrides: tuple[str, ...] = (), *, force: bool = False, log: str = ""
    ) -> bytes:
        asked = Asked(
            name=name, project=str(self._project.folder), data=self._data,
            overrides=[*self._project.overrides, *overrides], force=force, log=log,
        )  # fmt: skip
        return asked.model_dump_json().encode()

    def _not_begun(self, name: str, process: subprocess.Popen[bytes], log: Path) -> OutsideError:
        code = process.poll()
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        end = "\n".join(lines[-_LINES:]).strip()
        if code is None:
            what = f"the run {name} did not begin within {self.late:g} s"
        else:
            what = f"the run {name} did not begin (exit code {code}): "
            what += end.rpartition("error: ")[2] or "it said nothing"
        return OutsideError(what, hint=f"its log is {log}")


def _spawned() -> subprocess.Popen[bytes]:
    """A process that imports what a run needs, and then waits for being told which."""
    return subprocess.Popen(
        _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the watcher alone
    )  # fmt: skip


def _first_line(process: subprocess.Popen[bytes], seconds: float) -> str:
    """Return what a process says first; empty: it ended, or said nothing in time."""
    assert process.stdout is not None
    until, said = time.monotonic() + seconds, b""
    with process.stdout as stdout:
        while not said.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not select.select([stdout], [], [], left)[0]:
                return ""
            piece = os.read(stdout.fileno(), 1024)
            if not piece:
                process.wait(5)
                return ""
            said += piece
    return said.decode().strip()
