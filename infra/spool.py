"""What MLflow has still to hear of a run, in a file, until it has heard it.

    <folder>/<run key>.<instant>.jsonl        one for each process that trained with this key
    <folder>/<run key>.<instant>.jsonl.sent   how many bytes of it MLflow has confirmed

    ["run", {"key": …, "experiment": …, "name": …, "tags": {…}}]    the first line
    ["params", {name: value}]   ["tags", {name: value}]
    ["metrics", milliseconds, step, {name: value}]
    ["end", "FINISHED"]                                             the last, if it got there

A line is written at once and never changed, so a killed process (not a machine that loses power)
leaves all it said, but perhaps for a torn last line, which is passed over. Lines stay until the
whole file is sent; then the file is removed.

**Each metric arrives once.** What was sent is noted after MLflow confirmed it; a process killed
in between sends that one batch again, with the instants at which it was logged, and MLflow keeps
one row for each (name, step, value, instant). A run that goes on from a checkpoint, or rolls back,
repeats steps that were logged before: those are new rows at the same steps, of the same values
where training is reproducible, and MLflow shows the later one.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_SUFFIX = ".jsonl"
Message = list[Any]


class Spool:
    """The file that this process writes; locked while it lives.

    Writing never raises: what cannot be written is counted, and training goes on.

    Args:
        folder: On a disk that outlives the process, or a killed run's last seconds are lost.
        key: Of the run; part of the file's name.
        experiment: MLflow's experiment.
        name: Of the run, for people.
        tags: Of the run.

    Attributes:
        path: The file.
        lost: Messages that could not be written.
    """

    def __init__(
        self, folder: Path, *, key: str, experiment: str, name: str, tags: Mapping[str, str]
    ) -> None:
        self.path = folder / f"{key}.{time.time_ns()}{_SUFFIX}"
        self.lost = 0
        self._file: int | None = None
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL)
            fcntl.flock(self._file, fcntl.LOCK_EX)
        run = {"key": key, "experiment": experiment, "name": name, "tags": dict(tags)}
        self._write(["run", run])

    def params(self, values: Mapping[str, Any]) -> None:
        """Say parameters."""
        self._write(["params", dict(values)])

    def tags(self, values: Mapping[str, str]) -> None:
        """Say tags; later ones replace earlier ones of the same name."""
        self._write(["tags", dict(values)])

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Say metrics of a step."""
        self._write(["metrics", time.time_ns() // 1_000_000, step, dict(values)])

    def end(self, status: str) -> None:
        """Say how the run ended; nothing may follow."""
        self._write(["end", status])

    def close(self) -> None:
        """Let the file go: what is left of it may be sent by any process."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _write(self, message: Message) -> None:
        line = json.dumps(message).encode() + b"\n"
        try:
            if self._file is None or os.write(self._file, line) != len(line):
                raise OSError("not written")
        except OSError:
            self.lost += 1


class Unsent:
    """What of a file MLflow has not confirmed yet.

    Args:
        path: Of a spool.
        own: This process writes it; otherwise it is locked, so that one process sends it.

    Raises:
        BlockingIOError: Another process writes or sends it.
        FileNotFoundError: It has been sent meanwhile.
    """

    def __init__(self, path: Path, *, own: bool = False) -> None:
        self.path = path
        self._note = path.with_name(path.name + ".sent")
        self._file = path.open("rb")
        try:
            if not own:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.stat()  # whoever held the lock may have sent and removed it
        except OSError:
            self._file.close()
            raise
        self._sent = int(self._note.read_text()) if self._note.exists() else 0

    def run(self) -> dict[str, Any] | None:
        """Return the run that the file is about; None: its process was killed before it said."""
        self._file.seek(0)
        line = self._file.readline()
        return dict(json.loads(line)[1]) if line.endswith(b"\n") else None

    def batch(self, most: int) -> tuple[list[Message], int]:
        """Return the next messages, with at most so many metrics (or one message), and their end.

        The end is what `confirm` wants; no messages: all is sent.
        """
        self._file.seek(self._sent)
        messages: list[Message] = []
        end, metrics = self._sent, 0
        for line in self._file:
            if not line.endswith(b"\n"):  # torn, or still being written
                break
            message = _read(line)
            metrics += len(message[3]) if message[0] == "metrics" else 0
            if messages and metrics > most:
                break
            messages.append(message)
            end += len(line)
        return messages, end

    def confirm(self, end: int) -> None:
        """Note that MLflow has everything up to here."""
        new = self._note.with_name(self._note.name + ".new")
        new.write_text(str(end))
        new.replace(self._note)
        self._sent = end

    def remove(self) -> None:
        """Remove the file, all of which is sent."""
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    def close(self) -> None:
        """Stop reading."""
        self._file.close()


def spooled(folder: Path) -> list[Path]:
    """Return all spools of a folder, the eldest of each run first."""
    return sorted(folder.glob(f"*{_SUFFIX}"))


def _read(line: bytes) -> Message:
    """A line that is no message (a damaged disk) is passed over as an empty one."""
    with suppress(ValueError):
        message = json.loads(line)
        if isinstance(message, list) and message:
            return message
    return ["metrics", 0, 0, {}]
