"""`evertrain watch` as a process, and what it says."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from tests.small_project.command import command, environment


class WatchProcess:
    """A watcher; ended with the block.

    Args:
        project: Its folder.
        words: More of the command line.
        more: Variables.
    """

    def __init__(
        self, project: Path, *words: str, more: dict[str, str] | None = None, quiet: float = 0
    ) -> None:
        line = command("watch", project, "--json", "--set", f"watch.quiet={quiet}", *words)
        self.process = subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/",
            env=environment() | (more or {}),
        )  # fmt: skip
        self.said: list[dict[str, Any]] = []
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> WatchProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def wait_for(self, event: str, *, seconds: float = 60) -> dict[str, Any]:
        """The next line about such an event."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                line = self._lines.get(timeout=0.1)
            except queue.Empty:
                if self.process.poll() is not None and self._lines.empty():
                    break
                continue
            self.said.append(json.loads(line))
            if self.said[-1]["event"] == event:
                return self.said[-1]
        said = f"it never said {event!r}: {self.said}"
        if self.process.poll() is None:
            raise AssertionError(said)
        assert self.process.stderr is not None
        raise AssertionError(
            f"{said}; ended with {self.process.poll()}: {self.process.stderr.read()}"
        )

    def stop(self, sign: signal.Signals = signal.SIGTERM, *, seconds: float = 20) -> int:
        """Ask it to stop; return the exit code."""
        self.process.send_signal(sign)
        return self.process.wait(seconds)

    def kinds(self) -> list[str]:
        """What it said so far, in one word each."""
        return [said["event"] for said in self.said]

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
