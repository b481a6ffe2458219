"""Whether drift or decay ask for a run, found out by a process of its own.

What it takes (DuckDB, torch, a model, rows) goes with that process; the watcher stays small, and
whatever happens there it goes on.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence

from pydantic import ValidationError

from components.common.advice import Advice
from components.common.project import Project
from components.common.trigger_settings import Trigger
from infra.errors import OutsideError

LONGEST = 3600.0  # seconds
_LINES = 5


class Advising:
    """`evertrain advise PROJECT --validate`, as another process.

    Args:
        project: Opened with the watcher's overrides.
        data: Data URI; empty: as in evertrain.yaml.
        clock: Seconds, which nobody sets.
    """

    def __init__(self, project: Project, *, data: str, clock: Callable[[], float]) -> None:
        words = ["advise", str(project.folder), "--validate", "--json"]
        words += ["--data", data] if data else []
        words += [word for override in project.overrides for word in ("--set", override)]
        self._command = [sys.executable, "-m", "pipelines.cli", *words]
        self._clock = clock
        self._child: _Child | None = None
        self._until = 0.0

    @property
    def under_way(self) -> bool:
        return self._child is not None

    def begin(self) -> None:
        """Start the process."""
        self._child = _Child(self._command)
        self._until = self._clock() + LONGEST

    def result(self) -> Advice | None:
        """Return what it said; None: it has not ended.

        Raises:
            OutsideError: It failed, or took too long.
        """
        child = self._child
        assert child is not None
        code = child.process.poll()
        if code is None and self._clock() < self._until:
            return None
        said, talk = child.said(), child.talk()
        self.close()
        if code is None:
            raise OutsideError(f"no advice came in {LONGEST:g} s")
        try:
            return Advice.model_validate_json(said)
        except ValidationError as error:
            words = talk.decode(errors="replace").rpartition("error: ")[2].partition("\n\nhint:")[0]
            lines = words.strip().splitlines()[-_LINES:]
            raise OutsideError(
                f"no advice: {' '.join(lines) or f'exit code {code}'}",
                hint=f"try: {' '.join(self._command[1:])}",
            ) from error

    def close(self) -> None:
        """End the process, if it runs."""
        if self._child is not None:
            self._child.close()
            self._child = None


class _Child:
    """The process; what it says goes to files, which hold any amount while nobody reads."""

    def __init__(self, command: list[str]) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (they live as long as this)
        self._talk = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._said, stderr=self._talk,
            start_new_session=True,
        )  # fmt: skip

    def said(self) -> bytes:
        self._said.seek(0)
        return self._said.read()

    def talk(self) -> bytes:
        self._talk.seek(0)
        return self._talk.read()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._said.close()
        self._talk.close()


def asked_for(advice: Advice, when: Sequence[Trigger]) -> tuple[Trigger, str] | None:
    """Say which of the triggers asks for a run, and why; None: none does.

    That drift is not known, because the newest data could not be validated, counts as drift: the
    run will say what is wrong with them. That no label has come says nothing of decay.
    """
    if "drift" in when and advice.moved is not False:
        why = _first(advice.reasons if advice.moved else advice.unknown or advice.reasons)
        return "drift", why
    if "decay" in when and advice.decayed:
        return "decay", _first([r for r in advice.reasons if "came later" in r] or advice.reasons)
    return None


def _first(sentences: Sequence[str]) -> str:
    return sentences[0] if sentences else "drift or decay"
