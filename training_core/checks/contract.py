"""A check and what it finds: the contract of all sanity checks, ours and a project's own.

    class OutputsAreSmall(Check):
        name = "outputs_are_small"
        looks_at = "outputs of the untrained network are below 100"

        def look(self, subject: Subject) -> Finding:
            outputs = outputs_of(subject.build(), subject.batch(64), device=subject.device)
            largest = float(outputs.detach().abs().max())
            if largest < 100:
                return self.passed(f"the largest output is {largest:.3g}", measured=largest)
            return self.failed(
                f"the largest output is {largest:.3g}", measured=largest, limit=100,
                advice="scale the last layer's weights",
            )

A project's own are returned by its task's `checks()`. A check leaves no trace: models are built
afresh, examples are not written to, and the runner puts random states back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from training_core.checks.subject import Subject

Verdict = Literal["pass", "warn", "fail", "not_applicable", "skipped"]
Curve = list[tuple[int, float]]  # value by step


@dataclass(frozen=True, kw_only=True)
class Heat:
    """A chart of values by row and column, such as which input reaches which output.

    Attributes:
        values: A number for each column of each row; None: nothing to show.
    """

    rows: list[str]
    columns: list[str]
    values: list[list[float | None]]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One example for a person to look at: the raw row beside what the network gets.

    Attributes:
        raw: Text by raw column.
        network: Text by array, the target among them, decoded where that is possible.
        images: Rows of pixels as "#rrggbb", by name.
    """

    raw: dict[str, str]
    network: dict[str, str]
    images: dict[str, list[list[str]]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a check found.

    Attributes:
        name: The check's.
        verdict: `fail` stops the run. `not_applicable`: the task has no such thing, `message` says
            why; `skipped`: it was not made (switched off, no time left), `message` says why.
        measured: The figure looked at; None if there is none.
        limit: What it is held against.
        message: What was found: one or two sentences, without the advice.
        advice: What to do about it; empty where nothing is wrong.
        curves: Values by step, by name; drawn into one picture.
        table: Rows of a table, column names by value: layers, batch sizes, parameters.
        heat: A chart of values.
        samples: Examples to look at.
        seconds: What it took; set by the runner.
    """

    name: str
    verdict: Verdict
    measured: float | None = None
    limit: float | None = None
    message: str
    advice: str = ""
    curves: dict[str, Curve] = field(default_factory=dict)
    table: list[dict[str, str | float]] = field(default_factory=list)
    heat: Heat | None = None
    samples: list[Sample] = field(default_factory=list)
    seconds: float = 0.0


class NotApplicable(Exception):  # noqa: N818 (an outcome, not an error)
    """The task has no such thing; its text is the reason."""


class Check(ABC):
    """One sanity check: one small file.

    Class attributes:
        name: As in the report, in `checks.levels` and in the catalogue of planted bugs.
        looks_at: What holds where all is well, in one line.
        costs: `little` (seconds at most, never left out) or `training` (trains, and is skipped
            where no time is left).
    """

    name: ClassVar[str]
    looks_at: ClassVar[str]
    costs: ClassVar[Literal["little", "training"]] = "little"

    @abstractmethod
    def look(self, subject: Subject) -> Finding:
        """Look at the training code.

        Raises:
            NotApplicable: There is nothing to look at.
        """

    def passed(self, message: str, **said: object) -> Finding:
        """All is well. `said`: further fields of the finding."""
        return Finding(name=self.name, verdict="pass", message=message, **said)  # type: ignore[arg-type]

    def warned(self, message: str, *, advice: str, **said: object) -> Finding:
        """It may be wrong, or is not as good as it could be."""
        return Finding(name=self.name, verdict="warn", message=message, advice=advice, **said)  # type: ignore[arg-type]

    def failed(self, message: str, *, advice: str, **said: object) -> Finding:
        """It is broken: nothing may be trained with it."""
        return Finding(name=self.name, verdict="fail", message=message, advice=advice, **said)  # type: ignore[arg-type]
