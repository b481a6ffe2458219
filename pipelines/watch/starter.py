"""Who runs a run: this machine, or Kubeflow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Ended:
    """How a run ended, as far as its starter knows; the run's record says more.

    Attributes:
        exit_code: As on the design page; None: not known.
        cancelled: Somebody stopped it.
        words: What the starter says of it; may be empty.
    """

    exit_code: int | None
    cancelled: bool = False
    words: str = ""


class RunStarter(Protocol):
    """Starts runs by name.

    A starter need not refuse a name that was there: `starting.py` sees to it that each is started
    once. Every method raises `OutsideError`; after that of `start` nobody knows whether it worked.

    Attributes:
        about: Where runs run, in words.
        glance: Seconds between two looks at a run that is under way.
        late: Seconds after which a `start` that was called has had its effect, or never will.
    """

    about: str
    glance: float
    late: float

    def prepare(self) -> None:
        """See that runs can be started, before anything is watched.

        Raises:
            ConfigurationError: They cannot, and waiting will not help.
        """

    def find(self, name: str) -> str | None:
        """Return the id of the run of this name; None: there is none."""

    def start(self, name: str, *, overrides: tuple[str, ...], force: bool) -> str:
        """Start a run; return its id."""

    def ended(self, name: str, run: str) -> Ended | None:
        """Say how a run ended; None: it is under way."""

    def close(self) -> None:
        """Let go of what is kept for the next run; runs that are under way go on."""
