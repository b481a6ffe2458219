"""What is wrong with what watchers did: judged by rules of its own, from what truly happened."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

from tests.proofs.watch_runs import SimulatedRun
from tests.proofs.watch_sequences import CALM, STORM, Happened, State


@dataclass
class Verdict:
    """What was found.

    Attributes:
        missed: Versions of the data that should have had a run and have none.
        doubled: Runs too many.
        overlapping: Runs that were started while another one of the watchers was under way.
        torn: Runs for what a listing saw while objects came: of no version that ever was.
    """

    missed: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    overlapping: list[str] = field(default_factory=list)
    torn: int = 0
    versions: int = 0
    due: int = 0


def judge(happened: Happened) -> Verdict:
    """Say what is wrong."""
    verdict = Verdict()
    runs = [run for run in happened.kubeflow.runs if run.name.startswith("simulated-")]
    _doubled(happened, runs, verdict)
    _overlapping(runs, verdict)
    _given_up(happened, runs, verdict)
    if {"data", "drift"} & set(happened.settings.when):
        _missed_data(happened, runs, verdict)
    if happened.schedules:
        _missed_times(happened, runs, verdict)
    return verdict


def name_of(state: State, project: str = "simulated") -> str:
    """What a run for this data is called."""
    digest = hashlib.sha256()
    for key in sorted(state):
        size, version = state[key]
        digest.update(f"{key}\0{size}\0{version}\0".encode())
    return f"{project}-{digest.hexdigest()[:12]}"


def _attempt(run: SimulatedRun) -> tuple[str, int]:
    found = re.fullmatch(r"(simulated-(?:often-)?[0-9a-tz]+?)(?:-(\d+))?", run.name)
    assert found is not None, run.name
    return found[1], int(found[2] or 1)


def _doubled(happened: Happened, runs: list[SimulatedRun], verdict: Verdict) -> None:
    """Each name once; a later attempt only after the one before had failed."""
    for name, count in Counter(run.name for run in runs).items():
        if count > 1:
            verdict.doubled.append(f"{name} was started {count} times")
    by_name = {run.name: run for run in runs}
    for run in runs:
        base, attempt = _attempt(run)
        if attempt == 1:
            continue
        before = by_name.get(base if attempt == 2 else f"{base}-{attempt - 1}")
        if before is None:
            verdict.doubled.append(f"{run.name} has no attempt before it")
        elif not before.skipped and before.exit_code not in (3, None):
            verdict.doubled.append(f"{run.name}, but {before.name} ended with {before.exit_code}")
        elif before.ends > run.begun:
            verdict.doubled.append(f"{run.name} while {before.name} was under way")


def _overlapping(runs: list[SimulatedRun], verdict: Verdict) -> None:
    for before, run in pairwise(runs):
        if run.begun < before.ends:
            verdict.overlapping.append(f"{run.name} began while {before.name} was under way")


def _given_up(happened: Happened, runs: list[SimulatedRun], verdict: Verdict) -> None:
    """A run that the world outside failed, or that found another one, is tried again."""
    names = {run.name for run in runs}
    failures: Counter[str] = Counter()
    for run in sorted(runs, key=lambda run: run.begun):
        base, attempt = _attempt(run)
        failures[base] += not run.skipped
        if not run.skipped and run.exit_code not in (3, None):
            continue
        late = run.ends > STORM + CALM - 600
        if failures[base] > happened.settings.retries or late:
            continue
        if f"{base}-{attempt + 1}" not in names:
            verdict.missed.append(f"{run.name} failed, and was not tried again")


def _missed_data(happened: Happened, runs: list[SimulatedRun], verdict: Verdict) -> None:
    """Every version that stayed for long enough while somebody could see it has its run.

    A run for what no version ever was (a listing saw an object that was deleted meanwhile) is that
    of the version that is there when it begins: it lists for itself. What is left to see then is a
    deletion, which starts none.
    """
    settings = happened.settings
    states = happened.states
    known = {name_of(state): state for _, state in states}
    begun: dict[str, float] = {}
    torn: list[float] = []
    for run in runs:
        base, _ = _attempt(run)
        if not run.skipped:
            begun.setdefault(base, run.begun)
        if base not in known and not base.startswith("simulated-often"):
            verdict.torn += 1
            torn += [] if run.skipped else [run.begun]
    verdict.versions = len(known)
    for place, (since, state) in enumerate(states):
        until = states[place + 1][0] if place + 1 < len(states) else STORM + CALM
        name = name_of(state)
        minimum = settings.minimum if "data" in settings.when else 0
        if not state or not _is_enough(state, known, begun, until, minimum):
            continue
        if _healthy(happened, runs, since, until) < happened.patience:
            continue
        verdict.due += 1
        own = (each for each in torn if since <= each < until)
        at = min(begun.get(name, float("inf")), next(own, float("inf")))
        if at > since and _healthy(happened, runs, since, min(at, until)) >= happened.patience:
            verdict.missed.append(f"{name}, there from {since:.0f} to {until:.0f}: run at {at:.0f}")


def _is_enough(
    state: State, known: dict[str, State], begun: dict[str, float], until: float, minimum: int
) -> bool:
    """Whether it has enough new objects, whichever of the runs they are counted from."""
    bases = [known[name] for name, at in begun.items() if at <= until and name in known]
    torn = [name for name, at in begun.items() if at <= until and name not in known]
    if torn and minimum > 1:
        return False  # what such a run saw, nobody knows
    new = [len(state.items() - base.items()) for base in [*bases, {}]]
    return min(new) >= minimum or (bool(state) and name_of(state) in begun)


def _healthy(happened: Happened, runs: list[SimulatedRun], since: float, until: float) -> float:
    """The longest span within two times in which a watcher lived and nothing was in its way."""
    others = happened.kubeflow.runs
    # that a run has ended is seen within 15 s; one that failed is tried again first, after a pause
    blocked = [(run.begun, run.ends + 16) for run in others]
    blocked += [(run.ends, run.ends + 100) for run in runs if run.exit_code in (3, None)]
    blocked += [(begin, end + 60) for begin, end in happened.away]  # pauses grow up to a minute
    blocked.sort()
    best = 0.0
    for life in happened.alive:
        begin, end = max(since, life[0]), min(until, life[1])
        for away, back in blocked:
            if back <= begin or away >= end:
                continue
            best = max(best, away - begin)
            begin = max(begin, back)
        best = max(best, end - begin)
    return best


def _missed_times(happened: Happened, runs: list[SimulatedRun], verdict: Verdict) -> None:
    """In the calm every due time of the schedule fires."""
    fired = {_attempt(run)[0] for run in runs if run.name.startswith("simulated-often")}
    from datetime import UTC, datetime, timedelta

    first = datetime.fromtimestamp(1_700_000_000 + STORM + 210, UTC)
    at = first.replace(minute=first.minute // 10 * 10, second=0, microsecond=0)
    at += timedelta(minutes=20)
    last = datetime.fromtimestamp(1_700_000_000 + STORM + CALM, UTC) - timedelta(minutes=15)
    while at < last:
        verdict.due += 1
        name = f"simulated-often-{at:%Y%m%dt%H%M%Sz}"
        if name not in fired:
            verdict.missed.append(f"{name} never fired")
        at += timedelta(minutes=10)
