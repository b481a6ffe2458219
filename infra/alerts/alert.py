"""What an alert says, and the contract of what carries it.

`tests/infra/test_alerts.py` holds every channel against it.
"""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from infra.errors import OutsideError

Outcome = Literal[
    "promoted", "proposed", "held", "inconclusive", "stopped", "failed", "interrupted",
    "nothing_new", "skipped", "test",
]  # fmt: skip

# Not allowed in a header, a line of a log, JSON in UTF-8 or HTML; data may hold them all the same.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]+")


class NotSent(OutsideError):  # noqa: N818
    """The other side refused it, or got part of it: sending it again would not help."""


@dataclass(frozen=True)
class Difference:
    """A paired difference on the holdout: above 0 the challenger is better.

    Attributes:
        low, high: Its interval.
        words: All of it as a sentence.
    """

    against: str
    difference: float
    low: float
    high: float
    words: str


@dataclass(frozen=True)
class Alert:
    """How one run ended.

    Attributes:
        run: Its id; also what tells an alert that came twice.
        outcome: `test`: there is no run.
        headline: The verdict as one sentence.
        reasons: Why, the most important first.
        hint: What a person should do now.
        champion_before, champion_after: Versions; empty: none.
        metric, value: What decides, and the challenger's on the holdout; None: not measured.
        differences: Against champion and baselines, of the same metric.
        report: Where the report is: a path, or a URI; empty: nowhere.
    """

    project: str
    run: str
    outcome: Outcome
    headline: str
    reasons: tuple[str, ...] = ()
    hint: str = ""
    champion_before: str = ""
    champion_after: str = ""
    metric: str = ""
    value: float | None = None
    differences: tuple[Difference, ...] = ()
    seconds: float = 0.0
    report: str = ""

    @property
    def title(self) -> str:
        """One line: the project and what happened."""
        return one_line(f"{self.project}: {self.outcome.replace('_', ' ')}")

    def facts(self) -> list[tuple[str, str]]:
        """Name and value of what is not a sentence, for people."""
        before, after = self.champion_before or "none", self.champion_after or "none"
        known = [("Champion", after if before == after else f"{before} → {after}")]
        if self.value is not None and math.isfinite(self.value):
            known.append((self.metric, f"{self.value:.4f}"))
        known += [("Run", self.run), ("Seconds", f"{self.seconds:.0f}"), ("Report", self.report)]
        return [(one_line(name), one_line(value)) for name, value in known if value]

    def sentences(self) -> list[str]:
        """What happened, why, how large the differences are, what to do: each on a line."""
        said = [self.headline, *self.reasons, *(d.words for d in self.differences), self.hint]
        return [line for line in map(one_line, dict.fromkeys(said)) if line]

    def as_data(self) -> dict[str, Any]:
        """All of it as JSON has it; a number that is not finite is null."""
        data: dict[str, Any] = _plain(asdict(self))
        return {"format": "evertrain/alert/1", "id": self.run, **data}


class Channel(Protocol):
    """One way to a person or a program."""

    name: str

    def send(self, alert: Alert) -> None:
        """Hand an alert over.

        No error holds a secret, nor anything that the other side said.

        Raises:
            NotSent: It will not do to try again.
            OutsideError: It may do to try again.
        """


def one_line(text: str) -> str:
    """Return the text without line breaks and control characters."""
    return " ".join(_UNPRINTABLE.sub(" ", text).split())


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, str):
        return one_line(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
