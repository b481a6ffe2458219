"""Pictures beside the deciding one: slices, candidates, who is taken for whom."""

from __future__ import annotations

from markupsafe import Markup

from components.common.decision_figures import Candidate, EvaluateFigures, SelectFigures
from components.common.figures import Heat
from components.report_run.decision_words import better, candidate, is_chosen, worst_first
from components.report_run.forest import Group, Row, forest
from components.report_run.formats import decimals, fixed, interval, plural, short, signed, title
from components.report_run.gate_pictures import MARKS
from components.report_run.heat import heat_chart
from components.report_run.intervals import Interval, interval_plot
from components.report_run.svg import picture

MOST_ROWS = 12  # of a picture; the tables hold the rest
MOST_CLASSES = 20


def slices(seen: EvaluateFigures) -> Markup:
    """The difference in each slice with its interval and margin, the worst first."""
    known = [s for s in worst_first(seen.slices) if s.difference is not None]
    rows = []
    for one in known[:MOST_ROWS]:
        value, low, high = one.difference or 0.0, one.low, one.high
        told = low is not None and high is not None
        places = decimals(low or 0.0, high or 0.0) if told else 4
        rows.append(
            Row(
                one.words,
                value,
                low,
                high,
                -one.margin,
                MARKS[one.outcome],
                f"{one.outcome} {signed(value, places)}",
                plural(one.rows, "row"),
                one.outcome == "fail",
            )
        )
    if not rows:
        return Markup("")
    group = Group(
        f"{title(seen.metric)} by slice", rows, ("← challenger worse", "challenger better →")
    )
    return picture(
        "slices",
        title="Differences by slice, the worst first",
        description="; ".join(f"{short(r.label, 80)}: {r.words}, {r.detail}" for r in rows) + ".",
        draw=lambda width: forest([group], width),
    )


def candidates(seen: SelectFigures) -> Markup:
    """Every candidate beside the best, or, in old records, its score."""
    rows = seen.candidates[-MOST_ROWS:]
    if not any(is_chosen(c, seen) for c in rows):
        rows = [c for c in seen.candidates if is_chosen(c, seen)] + rows[1:]
    if any(c.difference_low or c.difference_high for c in rows):
        return _beside_the_best(seen, rows)
    named = []
    for one in rows:
        score = one.metrics.get(seen.metric, (one.low + one.high) / 2)
        taken = is_chosen(one, seen)
        named.append(
            Interval(
                candidate(one),
                score,
                one.low,
                one.high,
                "circle challenger" if taken else "circle hollow",
                fixed(score, 4) + " chosen" * taken,
                interval(one.low, one.high),
            )
        )
    return interval_plot(
        "candidates",
        title=f"Candidates by {title(seen.metric)} on the validation split",
        description="; ".join(f"{row.label}: {row.words}, {row.detail}" for row in named),
        rows=named,
        x_words=f"{title(seen.metric)} on the validation split "
        f"({better(seen.metric, {})} is better)",
    )


def _beside_the_best(seen: SelectFigures, rows: list[Candidate]) -> Markup:
    named = []
    for one in rows:
        taken = is_chosen(one, seen)
        kind = "circle challenger" if taken else "circle hollow" if one.as_good else "square bad"
        word = "chosen" if taken else "as good" if one.as_good else "worse"
        amount = signed(one.difference, decimals(one.difference_low, one.difference_high))
        named.append(
            Interval(
                candidate(one),
                one.difference,
                one.difference_low,
                one.difference_high,
                kind,
                f"{amount} {word}",
                interval(one.difference_low, one.difference_high)
                if one.difference_high > one.difference_low
                else "the best",
            )
        )
    return interval_plot(
        "candidates",
        title="Candidates: their loss minus the best one’s, on the validation split",
        description="; ".join(f"{row.label}: {row.words}, {row.detail}" for row in named),
        rows=named,
        x_words="loss on the validation split, minus the best one’s",
        zero=("", "worse than the best →"),
    )


def class_names(seen: EvaluateFigures) -> list[str]:
    """Names of the confusion's rows and columns; numbers where they do not fit."""
    size = len(seen.confusion)
    if any(len(row) != size for row in seen.confusion):
        return []
    return seen.classes if len(seen.classes) == size else [str(i) for i in range(size)]


def largest_classes(seen: EvaluateFigures) -> list[int]:
    """Positions of the classes that are shown: all, or those with the most rows."""
    names = class_names(seen)
    ranked = sorted(range(len(names)), key=lambda i: -sum(seen.confusion[i]))
    return sorted(ranked[:MOST_CLASSES])


def confusion(seen: EvaluateFigures) -> Markup:
    """Share of each true class that is predicted as each; of two classes a table says it."""
    names, places = class_names(seen), largest_classes(seen)
    if len(names) < 3:
        return Markup("")
    values: list[list[float | None]] = []
    for i in places:
        whole = sum(seen.confusion[i])
        values.append([seen.confusion[i][j] / whole if whole else None for j in places])
    shown = [names[i] for i in places]
    return heat_chart(
        "confusion",
        Heat(rows=shown, columns=shown, values=values),
        title="Rows: truth; columns: predicted; shade: share of the true class",
    )
