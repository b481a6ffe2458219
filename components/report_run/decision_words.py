"""Sentences about a decision: its gates, slices, noise, question, package, optimism, candidates."""

from __future__ import annotations

from collections.abc import Mapping

from components.common.decision_figures import (
    Candidate,
    EvaluateFigures,
    NoiseFigure,
    Optimism,
    QuestionFigure,
    SelectFigures,
    SliceFigure,
    SmokeFigures,
)
from components.report_run.formats import (
    count,
    fixed,
    interval,
    number,
    percent,
    plain,
    plural,
    seconds,
    sentence,
    short,
    title,
)
from components.report_run.words import deciding_gate

HIGHER = ("auc", "average_precision", "f1", "r2")  # where a record does not say it
RULES = {
    "flattest": "among those that cannot be told from the best, the one whose neighbours are good "
    "as well",
    "earliest": "the earliest of those that cannot be told from the best",
    "latest": "the latest of those that cannot be told from the best",
    "best": "the best itself",
}


def better(metric: str, directions: Mapping[str, str]) -> str:
    """`lower` or `higher`."""
    return directions.get(metric) or ("higher" if metric in HIGHER else "lower")


def decided_by(seen: EvaluateFigures) -> str:
    """Which gate decided, in a sentence."""
    gate = deciding_gate(seen)
    held = [g for g in seen.gates if g.outcome in ("fail", "unsure")]
    if gate is None:
        passed = sum(g.outcome == "pass" for g in seen.gates)
        skipped = sum(g.outcome == "skipped" for g in seen.gates)
        tail = f"; {plural(skipped, 'gate')} had nothing to judge" if skipped else ""
        return f"{plural(passed, 'gate')} passed, none held the challenger back{tail}."
    more = f" {plural(len(held) - 1, 'more gate')} did not pass." if len(held) > 1 else ""
    verb = "held the challenger back" if gate.outcome == "fail" else "could not tell"
    return f"“{title(short(gate.name, 80))}” {verb}.{more}"


def slices(seen: list[SliceFigure]) -> str:
    """What the slices come to."""
    if not seen:
        return "No slice was judged."
    worse = sum(s.outcome == "fail" for s in seen)
    unsure = sum(s.outcome == "unsure" for s in seen)
    said = (
        f"{plural(worse, 'slice')} {'is' if worse == 1 else 'are'} shown to be worse than the "
        "champion by more than the margin"
        if worse
        else "No slice is shown to be worse than its margin"
    )
    tail = f"; of {count(unsure)} it cannot be told" if unsure else ""
    judged = sum(s.outcome != "skipped" for s in seen)
    return f"{said}, of {count(judged)} judged{tail}."


def worst_first(seen: list[SliceFigure]) -> list[SliceFigure]:
    """Those shown to be worse, then by their difference, then those without one."""
    return sorted(
        seen,
        key=lambda s: (s.outcome != "fail", s.difference is None, s.difference or 0.0),
    )


def noise(seen: NoiseFigure, metric: str) -> str:
    """What training again with another seed changes, and how that is known."""
    said = (
        f"Two trainings that differ by their seeds alone differ by {number(seen.deviation)} in "
        f"{title(metric)} (one standard deviation)"
    )
    if seen.source == "settings":
        return said + ", as decision.retraining_noise says. Every interval holds it."
    runs = f" of {plural(len(seen.runs), 'run')}" if seen.runs else ""
    free = f", with {plural(seen.freedom, 'degree')} of freedom" if seen.freedom else ""
    return f"{said}, measured with replicas{runs}{free}. Every interval holds it."


def question(seen: QuestionFigure) -> str:
    """How worn the holdout is."""
    said = f"Question {count(seen.number)} to the ledger of holdout rows: "
    if seen.uses <= 1:
        said += f"these {plural(seen.rows, 'row')} have never been asked before"
    else:
        said += f"these {plural(seen.rows, 'row')} have been asked {plain(seen.uses)} times, this "
        said += "one included"
    said += f". So its intervals are those of {percent(seen.confidence)} confidence."
    if seen.left_out:
        said += f" {plural(seen.left_out, 'row')} had been asked too often and stayed out."
    return said


def smoke(seen: SmokeFigures) -> str:
    """How the package did in a process of its own."""
    if seen.outcome == "fail":
        return sentence(f"the package failed: {short(seen.message, 400)}")
    said = [f"scored {plural(seen.rows, 'raw row')}"] if seen.rows else []
    if seen.largest_difference is not None:
        said.append(f"at most {number(seen.largest_difference, 2)} from what was recorded")
    if seen.load_seconds is not None:
        said.append(f"loads in {seconds(seen.load_seconds)}")
    if seen.latency_ms is not None:
        tail = (
            f" ({number(seen.latency_p99_ms)} ms at the 99th percentile)"
            if seen.latency_p99_ms is not None
            else ""
        )
        said.append(f"one row takes {number(seen.latency_ms)} ms{tail}")
    if seen.rows_per_second is not None:
        said.append(f"{number(seen.rows_per_second)} rows a second in batches")
    if seen.peak_memory_mb is not None:
        said.append(f"{number(seen.peak_memory_mb)} MB of memory at most")
    if seen.size_mb is not None:
        said.append(f"{number(seen.size_mb)} MB on disk")
    how = f" by {short(seen.how, 120)}" if seen.how else ""
    return f"The package was loaded afresh{how}: {', '.join(said) or 'it works'}."


def candidate(seen: Candidate) -> str:
    if not seen.members:
        return f"step {count(seen.step)}"
    many = ", ".join(count(step) for step in seen.members[:4])
    return f"mean of {many}" + ("…" if len(seen.members) > 4 else "")


def is_chosen(one: Candidate, seen: SelectFigures) -> bool:
    return one.step == seen.chosen and one.members == seen.chosen_members


def chosen(seen: SelectFigures) -> str:
    """Which candidate, of how many, by which rule."""
    name = next((candidate(c) for c in seen.candidates if is_chosen(c, seen)), "")
    name = sentence(name or f"step {count(seen.chosen)}").removesuffix(".")
    rule = RULES.get(seen.rule, short(seen.rule, 300))
    good = sum(c.as_good for c in seen.candidates)
    told = any(c.difference_low or c.difference_high for c in seen.candidates)
    tail = f" {plural(good, 'candidate')} cannot be told from the best." if told else ""
    kept = " Its weights are the average that training kept." if seen.averaged else ""
    return (
        f"{name} of {plural(len(seen.candidates), 'candidate')} was chosen. "
        f"Rule: {rule}.{tail}{kept}"
    )  # fmt: skip


def optimism(seen: Optimism, metric: str) -> str:
    """Whether the holdout agrees with what choosing the best of several was expected to cost."""
    said = (
        f"Choosing among several makes the chosen one look {number(seen.expected, 2)} better in "
        f"{title(metric)} on the validation split than it is (± {number(seen.deviation, 2)})."
    )
    if seen.measured is None:
        return said
    side = "worse" if seen.measured >= 0 else "better"
    said += f" On the holdout it is {number(abs(seen.measured), 2)} {side}"
    if seen.low is None or seen.high is None:
        return said + "."
    agrees = seen.low <= seen.measured <= seen.high
    wide = f"{interval(seen.low, seen.high)} was expected"
    if agrees:
        return f"{said}: the holdout agrees ({wide})."
    return f"{said}: the holdout does not agree ({wide}). Look at how the two splits differ."


def with_interval(value: float, bounds: tuple[float, float] | None) -> str:
    """A metric's value; its interval in brackets."""
    return f"{fixed(value, 4)} ({interval(*bounds)})" if bounds else fixed(value, 4)
