"""Sentences from figures. Pure functions: what the page says is decided and tested here."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from components.common.decision_figures import Comparison, EvaluateFigures, Gate, PromoteFigures
from components.common.figures import HumanFigure
from components.common.records import StepRecord
from components.common.run_record import RunRecord
from components.report_run.formats import (
    decimals,
    fixed,
    interval,
    plural,
    sentence,
    short,
    title,
)


class Outcome(StrEnum):
    """How a run ended, for people."""

    PROMOTED = "promoted"
    PROPOSED = "proposed"
    HELD = "held"
    INCONCLUSIVE = "inconclusive"
    STOPPED = "stopped"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    NOTHING_NEW = "nothing new"
    SKIPPED = "skipped"


def outcome(run: RunRecord, promoted: PromoteFigures | None) -> Outcome:
    """A promotion is claimed only where promote_model says so."""
    if run.status != "finished":
        return Outcome(run.status.replace("_", " "))
    if promoted is not None and promoted.outcome == "promoted":
        return Outcome.PROMOTED
    if promoted is not None and promoted.outcome == "proposed":
        return Outcome.PROPOSED
    return Outcome.INCONCLUSIVE if run.verdict == "inconclusive" else Outcome.HELD


def version(name: str) -> str:
    return f"version\N{NO-BREAK SPACE}{name}" if name else "no version"


def stays(run: RunRecord) -> str:
    """What serves after a run that promoted nothing."""
    if run.champion_after:
        return f"{version(run.champion_after)} stays champion"
    return "there is still no champion"


def ended_in(run: RunRecord) -> str:
    """The step in which the run came to its end; empty if it is unknown."""
    bad = [s.step for s in run.steps if s.status not in ("done", "not_run")]
    done = [s.step for s in run.steps if s.status == "done" and s.step != "report_run"]
    return bad[0] if bad else done[-1] if done else ""


def finished(run: RunRecord) -> datetime | None:
    """When the run ended."""
    return run.started + timedelta(seconds=run.seconds) if run.started else None


def headline(run: RunRecord, ended: Outcome, proposed: str = "") -> str:
    """The verdict as one sentence.

    Args:
        proposed: The version that waits for a person's word.
    """
    step = ended_in(run)
    match ended:
        case Outcome.PROMOTED if run.champion_before:
            new, old = version(run.champion_after), version(run.champion_before)
            return sentence(f"{new} replaces {old} as champion")
        case Outcome.PROMOTED:
            return sentence(f"{version(run.champion_after)} is the first champion")
        case Outcome.PROPOSED:
            return sentence(f"{version(proposed)} is proposed; a person has to approve it")
        case Outcome.HELD:
            return sentence(stays(run))
        case Outcome.INCONCLUSIVE:
            return f"The evidence does not decide, so {stays(run)}."
        case Outcome.NOTHING_NEW:
            return f"Nothing changed since an earlier run, so {stays(run)}."
        case Outcome.SKIPPED:
            return f"Another run was under way, so this one did nothing; {stays(run)}."
        case Outcome.STOPPED if step:
            return f"{step} stopped the run, so {stays(run)}."
        case Outcome.FAILED if step:
            return f"{step} failed, so {stays(run)}."
        case Outcome.INTERRUPTED if step:
            return f"The run was interrupted in {step}, so {stays(run)}."
        case _:
            return f"The run ended before its first step, so {stays(run)}."


def deciding_gate(evaluated: EvaluateFigures | None) -> Gate | None:
    """The first gate that held the model back."""
    gates = evaluated.gates if evaluated else []
    return next((g for wanted in ("fail", "unsure") for g in gates if g.outcome == wanted), None)


def main_reason(run: RunRecord) -> str:
    return sentence(short(run.reasons[0], 600)) if run.reasons else "No reason was recorded."


def next_step(run: RunRecord, ended: Outcome, evaluated: EvaluateFigures | None) -> str:
    """What a person should do now."""
    gate = deciding_gate(evaluated)
    match ended:
        case Outcome.PROMOTED if run.champion_before:
            kept = version(run.champion_before)
            return (
                f"Nothing has to be done. {kept.capitalize()} is kept as “previous”: roll back "
                "to it if the new champion disappoints."
            )
        case Outcome.PROMOTED:
            return "Nothing has to be done. The next run will have to hold its own against it."
        case Outcome.PROPOSED:
            return (
                f"Look at what follows, then evertrain approve PROJECT, or evertrain reject "
                f"PROJECT. Until then {stays(run)}."
            )
        case Outcome.NOTHING_NEW:
            return (
                "Nothing has to be done: new data, code or configuration start the next training."
            )
        case Outcome.SKIPPED:
            return (
                "Nothing has to be done: the run that is under way sees the data that was there "
                "when it started, and a later run the rest. To wait instead: lease.busy: queue. "
                "Who has the lease, and how to free it: evertrain lease PROJECT."
            )
        case Outcome.INCONCLUSIVE:
            return (
                "Nothing is broken. More rows in the holdout (split.holdout) narrow the "
                "intervals; a run on more data may decide." + _see(gate)
            )
        case Outcome.HELD:
            return f"Nothing is broken: {stays(run)}." + _see(gate)
        case Outcome.INTERRUPTED:
            return sentence(run.hint or "run the same command again: it goes on from where it was")
    retry = {
        1: "A retry alone will not help: mend the cause first.",
        2: "Mend the configuration, then run again.",
        3: "The world outside failed: a retry may help.",
    }.get(run.exit_code, "")
    return " ".join(part for part in (sentence(run.hint), retry) if part)


def _see(gate: Gate | None) -> str:
    if gate is None:
        return ""
    saw = short(gate.observed, 120) or "nothing"
    return (
        f" Begin with the gate “{title(gate.name)}”: it saw {saw} and needs "
        f"{short(gate.threshold, 120) or 'more'}."
    )


def standing(compared: Comparison) -> str:
    """`better`, `worse` or `unclear`, seen from the challenger."""
    return "better" if compared.low > 0 else "worse" if compared.high < 0 else "unclear"


def difference(compared: Comparison, *, metric: str, unit: str, better: str = "lower") -> str:
    """One comparison as a sentence.

    Args:
        better: `lower` or `higher`: which way the metric points.
    """
    places = decimals(compared.low, compared.high)
    amount = fixed(abs(compared.difference), places)
    side = "lower" if (compared.difference >= 0) == (better == "lower") else "higher"
    meaning = {
        "better": "it is better beyond the interval",
        "worse": "it is worse beyond the interval",
        "unclear": "the interval holds zero, so this does not tell them apart",
    }[standing(compared)]
    return (
        f"Against {title(compared.against)} the challenger’s {title(metric)} is {amount} {side} "
        f"(interval of the difference {interval(compared.low, compared.high)}, over "
        f"{plural(compared.clusters, unit)}): {meaning}."
    )


def human(recorded: HumanFigure, evaluated: EvaluateFigures | None) -> str:
    """What a recorded human score says, and what it cannot say."""
    own = evaluated.metrics.get("challenger", {}).get(recorded.metric) if evaluated else None
    beside = "" if own is None else f"; on the holdout the challenger’s is {fixed(own, 4)}"
    return (
        f"Human {title(recorded.metric)}, as evertrain.yaml records it: "
        f"{fixed(recorded.value, 4)}{beside} (by: {short(recorded.by, 200)}; "
        f"when: {short(recorded.when, 60)}). It was not taken on these rows and has no predictions "
        "row by row, so no interval can compare the two."
    )


def absence(step: str, run: RunRecord, record: StepRecord | None, problem: str) -> str:
    """Why a step has nothing to show."""
    if problem:
        return f"{step} left figures that cannot be read: {short(problem, 300)}"
    if record is None:
        if run.status == "nothing_new":
            return f"Not reached: {step} was not needed, nothing was new."
        if run.status == "skipped":
            return f"Not reached: {step} was left to the run that was under way."
        end = ended_in(run)
        if run.status == "finished" or not end:
            return f"Not reached: {step} left no record."
        return f"Not reached: the run ended in {end}, before {step}."
    if record.status == "running":
        return f"{step} was killed before it could say anything, or it is still under way."
    if record.status == "done":
        return f"{step} finished and left no figures."
    if record.status == "skipped":
        return f"{step} took no snapshot: {sentence(short(record.reason, 300))}"
    return (
        f"{step} {record.status} before it could say anything: "
        f"{sentence(short(record.reason, 300)) or 'no reason was recorded.'}"
    )
