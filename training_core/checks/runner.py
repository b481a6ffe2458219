"""Make all checks of a subject: each in turn, none leaving a trace."""

from __future__ import annotations

import dataclasses
import random
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from training_core.checks.catalogue import CHECKS
from training_core.checks.contract import Check, Finding, NotApplicable
from training_core.checks.subject import Subject
from training_core.determinism import seed_everything
from training_core.errors import ConfigurationError
from training_core.task import Task

COULD_NOT = "it could not be made"


def run_checks(
    subject: Subject,
    *,
    only: Sequence[str] = (),
    on_finding: Callable[[Finding], None] = lambda finding: None,
) -> list[Finding]:
    """Make every check, and those of the task itself.

    Args:
        subject: What to look at.
        only: Names of the checks to make; empty: all of them.
        on_finding: Called with each finding as soon as it is there.

    Raises:
        ConfigurationError: `checks.levels` or `only` name a check that there is not, two checks
            have one name, or `training.bias_from_prior` cannot be done.
    """
    checks = checks_of(subject.task)
    refuse_unknown(checks, [*subject.settings.levels, *only])
    if subject.training.bias_from_prior:
        subject.build()  # what it cannot be done for is said once, not by every check
    findings = []
    for check in checks:
        if only and check.name not in only:
            continue
        finding = make(check, subject)
        findings.append(finding)
        on_finding(finding)
    return findings


def checks_of(task: Task | None = None) -> list[Check]:
    """Return all checks, and those of the task itself, in the order in which they are made."""
    return [*(kind() for kind in CHECKS), *(task.checks() if task is not None else ())]


def make(check: Check, subject: Subject) -> Finding:
    """Make one check; whatever happens in it, there is a finding."""
    level = subject.settings.levels.get(check.name, "fail")
    if level == "off":
        return _skipped(check, "switched off in checks.levels")
    if check.costs == "training" and subject.seconds_left < 0:
        seconds = subject.settings.seconds
        return _skipped(check, f"the {seconds:g} seconds of checks.seconds are used up: raise it")
    began = time.monotonic()
    with _no_trace():
        try:
            finding = check.look(subject)
        except NotApplicable as reason:
            finding = Finding(name=check.name, verdict="not_applicable", message=str(reason))
        except Exception as error:  # noqa: BLE001 (the user's code may raise anything)
            finding = _broken(check, error)
    if finding.verdict == "fail" and level == "warn":
        finding = dataclasses.replace(finding, verdict="warn")
    seconds = time.monotonic() - began
    if check.costs == "training":
        subject.training_seconds += seconds
    return dataclasses.replace(finding, seconds=round(seconds, 3))


def refuse_unknown(checks: Sequence[Check], named: Sequence[str]) -> None:
    """Raise ConfigurationError for a name that no check has, and for two checks with one name."""
    names = [check.name for check in checks]
    unknown = sorted(set(named) - set(names))
    if unknown:
        raise ConfigurationError(
            f"there is no check named {unknown[0]!r} (checks.levels, or the command line)",
            hint=f"the checks are {', '.join(names) or 'none'}",
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigurationError(
            f"two checks are named {twice[0]!r}",
            hint="give the checks of your task names of their own",
        )


def _skipped(check: Check, why: str) -> Finding:
    return Finding(name=check.name, verdict="skipped", message=why)


def _broken(check: Check, error: Exception) -> Finding:
    """A check that cannot be made has found something: nothing is trained on a guess."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}, line {last.lineno}"
    first = (str(error).splitlines() or [""])[0]
    return check.failed(
        f"{COULD_NOT}: {type(error).__name__} in {where}: {first}",
        advice=f"mend what raised it, or set checks.levels.{check.name} to off",
    )


@contextmanager
def _no_trace() -> Iterator[None]:
    """Seed all generators, and put their states and torch's grad mode back afterwards."""
    python, numpy, torch_state = random.getstate(), np.random.get_state(), torch.get_rng_state()
    threads = torch.get_num_threads()
    seed_everything(0)
    try:
        with torch.enable_grad():
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(torch_state)
        torch.set_num_threads(threads)
