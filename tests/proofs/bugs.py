"""Plant every bug of the catalogue: the right check must find it; healthy tasks must pass.

    python -m tests.proofs.bugs                        # every bug, healthy tasks with 5 seeds each
    python -m tests.proofs.bugs 1                      # healthy tasks with one seed
    python -m tests.proofs.bugs --names sigmoid_twice tiny
    python -m tests.proofs.bugs --file my_bugs.py      # bugs and tasks of your own (docs/checks.md)
    python -m tests.proofs.bugs --short                # a few of each
    python -m tests.proofs.bugs --named                # of a bug, only the checks that it names

All checks are made, and by the very code that the step runs. Each bug and each healthy task is a
line on stderr as soon as it is done. The last line of stdout is one JSON object: `bugs` planted,
how many of them were `caught` by a check that `found_by` names; `healthy` tasks, times their seeds,
and on how many of those a check failed (`false_alarms`); `seconds`, the longest that all checks of
one of them took.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

import torch

from tests.planted_bugs.bugs import BUGS
from tests.planted_bugs.contract import Bug, Healthy
from tests.planted_bugs.healthy import HEALTHY
from tests.planted_bugs.planting import Theme
from tests.proofs.reporting import tell
from training_core.checks.contract import Finding
from training_core.checks.runner import run_checks

SEEDS = 5
ENOUGH = 0.95  # of the bugs have to be caught
SHORT = (
    "rows_sorted", "label_among_the_features", "softmax_twice", "shapes_broadcast",
    "centred_by_the_batch", "embeddings_detached", "gradients_never_zeroed",
    "rate_100_times_too_high",
    "regression", "tiny", "categories", "bag_of_words",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What the checks said of one bug, or of one healthy task.

    Attributes:
        what: Its name, and the seed.
        bug: Whether it is one.
        right: Whether the checks were: a bug was caught, a healthy task passed.
        words: Which checks found it; or what was said instead.
        seconds: That all checks took.
    """

    what: str
    bug: bool
    right: bool
    words: str
    seconds: float


@dataclass(frozen=True)
class Catalogue:
    """What there is to try."""

    bugs: tuple[Bug, ...]
    healthy: tuple[Healthy, ...]

    @classmethod
    def of(cls, file: str = "") -> Catalogue:
        """Return the bugs and tasks of a Python file; without one, all of ours."""
        if not file:
            return cls(BUGS, HEALTHY)
        found = list(runpy.run_path(file).values())
        bugs = [bug for theme in found if isinstance(theme, Theme) for bug in theme.bugs]
        bugs += [bug for bug in found if isinstance(bug, Bug)]
        return cls(tuple(bugs), tuple(h for h in found if isinstance(h, Healthy)))

    def work(self, *, seeds: int, names: Sequence[str] = ()) -> Iterator[tuple[str, int | None]]:
        """Yield what is to be done: a bug's name, or a healthy task's with a seed.

        Raises:
            SystemExit: A name is not there.
        """
        known = [each.name for each in (*self.bugs, *self.healthy)]
        for name in names:
            if name not in known:
                raise SystemExit(f"error: there is no {name}\n\nhint: {', '.join(known)}")
        for bug in self.bugs:
            if not names or bug.name in names:
                yield bug.name, None
        for seed in range(seeds):
            for healthy in self.healthy:
                if not names or healthy.name in names:
                    yield healthy.name, seed


def prove(
    *,
    seeds: int = SEEDS,
    names: Sequence[str] = (),
    file: str = "",
    jobs: int = 1,
    only_named: bool = False,
) -> dict[str, float]:
    """Try bugs and healthy tasks; return the figures.

    Args:
        seeds: Of each healthy task; bugs have one.
        names: Of what is tried; none: all.
        file: With bugs and tasks of its own; none: the catalogue.
        jobs: Processes, one thread each; with 1 all is done in this one.
        only_named: Of a bug, make only the checks that it names: sooner, and as right.
    """
    outcomes = []
    work = list(Catalogue.of(file).work(seeds=seeds, names=names))
    for outcome in _outcomes(work, partial(look, file, only_named), jobs):
        outcomes.append(outcome)
        _tell(outcome)
    bugs = [outcome for outcome in outcomes if outcome.bug]
    healthy = [outcome for outcome in outcomes if not outcome.bug]
    return {
        "bugs": len(bugs),
        "caught": sum(outcome.right for outcome in bugs),
        "healthy": len(healthy),
        "false_alarms": sum(not outcome.right for outcome in healthy),
        "seconds": max((outcome.seconds for outcome in outcomes), default=0.0),
    }


def _outcomes(
    work: list[tuple[str, int | None]], look_at: Callable[..., Outcome], jobs: int
) -> Iterator[Outcome]:
    if jobs == 1:
        yield from (look_at(name, seed) for name, seed in work)
        return
    # not forked: this process has threads by then, and checks fork ranks from the workers
    with ProcessPoolExecutor(jobs, get_context("spawn"), torch.set_num_threads, (1,)) as workers:
        waiting = [workers.submit(look_at, name, seed) for name, seed in work]
        yield from (done.result() for done in as_completed(waiting))


def look(file: str, only_named: bool, name: str, seed: int | None) -> Outcome:
    """Make the checks of a healthy task (with a seed), or of a bug."""
    catalogue = Catalogue.of(file)
    if seed is None:
        bug = next(bug for bug in catalogue.bugs if bug.name == name)
        findings, words, seconds = _checked(lambda: bug.findings(only_named=only_named))
        caught = bug.caught(findings)
        instead = words or _said(findings, "fail", "warn") or "nothing was said"
        said = f"caught by {', '.join(caught)}" if caught else f"MISSED: {instead}"
        return Outcome(name, True, bool(caught), said, seconds)
    healthy = next(task for task in catalogue.healthy if task.name == name)
    findings, words, seconds = _checked(lambda: run_checks(healthy.subject(seed=seed)))
    alarm = words or _said(findings, "fail")
    said = f"FALSE ALARM: {alarm}" if alarm else "healthy"
    return Outcome(f"{name}, seed {seed}", False, not alarm, said, seconds)


def _checked(make: Callable[[], list[Finding]]) -> tuple[list[Finding], str, float]:
    """Return findings, or what was raised, and seconds."""
    began = time.monotonic()
    findings: list[Finding] = []
    words = ""
    try:
        findings = make()
    except Exception as error:  # noqa: BLE001 (one bug that cannot be tried must not end the proof)
        words = f"{type(error).__name__}: {error}"
    return findings, words, round(time.monotonic() - began, 1)


def _said(findings: list[Finding], *verdicts: str) -> str:
    return "; ".join(
        f"{finding.name} ({finding.verdict}): {finding.message}"
        for finding in findings
        if finding.verdict in verdicts
    )


def _tell(outcome: Outcome) -> None:
    print(
        f"{outcome.what:<40}{outcome.seconds:>6.1f} s  {outcome.words}", file=sys.stderr, flush=True
    )


def main() -> int:
    """Print the figures; 0 if enough bugs were caught and no healthy task failed."""
    parser = argparse.ArgumentParser(description="Plant bugs and prove that checks find them.")
    parser.add_argument("number", nargs="?", type=int, metavar="N", help="seeds of healthy tasks")
    parser.add_argument("--seeds", "--count", type=int, dest="seeds", help="the same as N")
    parser.add_argument("--names", nargs="+", default=[], help="bugs and healthy tasks to try")
    parser.add_argument("--file", default="", help="Python file with bugs and tasks of your own")
    parser.add_argument("--short", action="store_true", help="a few of each, one seed")
    parser.add_argument("--named", action="store_true", help="of a bug, the checks that it names")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the workers
    torch.set_num_threads(1)
    given = (arguments.number, arguments.seeds)  # 0 is a number: bugs alone
    figures = prove(
        seeds=next((n for n in given if n is not None), 1 if arguments.short else SEEDS),
        names=[*arguments.names, *(SHORT if arguments.short else ())],
        file=arguments.file,
        jobs=arguments.jobs,
        only_named=arguments.named,
    )
    tell("bugs", figures)
    enough = figures["caught"] >= ENOUGH * figures["bugs"]
    return 0 if enough and not figures["false_alarms"] else 1


if __name__ == "__main__":
    sys.exit(main())
