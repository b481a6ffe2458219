"""A healthy task, a bug planted into one, and what the checks say of both."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from training_core.checks.contract import Finding
from training_core.checks.runner import COULD_NOT, run_checks
from training_core.checks.subject import Subject
from training_core.settings import CheckSettings, TrainingSettings
from training_core.task import Task


@dataclass(frozen=True, kw_only=True)
class Healthy:
    """A task on which no check may fail.

    Attributes:
        task: Makes it.
        rows: Makes its raw rows from a seed.
        training: How it would be trained.
    """

    name: str
    task: Callable[[], Task]
    rows: Callable[[int], pd.DataFrame]
    training: TrainingSettings

    def subject(self, *, seed: int = 0, checks: CheckSettings | None = None) -> Subject:
        """Return what the checks look at."""
        training = self.training.model_copy(update={"seed": seed})
        return Subject(
            self.task(), self.rows(seed), training=training, settings=checks or CheckSettings()
        )


@dataclass(frozen=True, kw_only=True)
class Bug:
    """A small change to a healthy task, or to the training itself; it trains without an error.

    Attributes:
        name: In snake case.
        what: What is wrong, in one line.
        seen: Where such a bug was seen; empty: it was thought of.
        host: The healthy task that it is planted into.
        found_by: Names of the checks that name it rightly: one of them has to fail (or warn, where
            `warns` says so).
        task: Makes the broken task; None: the host's.
        rows: Makes the broken rows from a seed; None: the host's.
        validation: Makes the raw rows of a validation split from a seed; None: it is cut off
            `rows`, as the host's is.
        training: Changes to the settings of the training.
        planted: A context in which the code of the training itself is broken.
        warns: A warning is enough: what is wrong may be meant.
    """

    name: str
    what: str
    host: Healthy
    found_by: frozenset[str]
    seen: str = ""
    task: Callable[[], Task] | None = None
    rows: Callable[[int], pd.DataFrame] | None = None
    validation: Callable[[int], pd.DataFrame] | None = None
    training: dict[str, Any] = field(default_factory=dict)
    planted: Callable[[], AbstractContextManager[Any]] = nullcontext
    warns: bool = False

    def subject(self, *, seed: int = 0, checks: CheckSettings | None = None) -> Subject:
        """Return what the checks look at; the bug is in place within `planted` only."""
        host = self.host
        settings = TrainingSettings.model_validate(
            {**host.training.model_dump(), **self.training, "seed": seed}
        )
        return Subject(
            (self.task or host.task)(),
            (self.rows or host.rows)(seed),
            validation=None if self.validation is None else self.validation(seed),
            training=settings,
            settings=checks or CheckSettings(),
        )

    def findings(
        self, *, seed: int = 0, checks: CheckSettings | None = None, only_named: bool = False
    ) -> list[Finding]:
        """Make all checks with the bug in place; or only those that `found_by` names."""
        with self.planted():
            only = sorted(self.found_by) if only_named else ()
            return run_checks(self.subject(seed=seed, checks=checks), only=only)

    def caught(self, findings: list[Finding]) -> list[str]:
        """Return the names of the checks that found it by its right name, and not by breaking."""
        enough = ("fail", "warn") if self.warns else ("fail",)
        said = [f for f in findings if f.verdict in enough and COULD_NOT not in f.message]
        return [f.name for f in said if f.name in self.found_by]
