"""From a step's figures to its picture: what is drawn, in which order, under which words."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from components.common.data_figures import SnapshotFigures
from components.common.decision_figures import Comparison, EvaluateFigures, SelectFigures
from components.common.figures import CheckFigures, TrainFigures
from components.report_run.charts import (
    SQUARE,
    Series,
    line_chart,
    reliability,
    roc,
)
from components.report_run.decision_words import better
from components.report_run.formats import decimals, interval, number, plural, signed, title
from components.report_run.intervals import Interval, interval_plot
from components.report_run.svg import NARROW, WIDE, thinned
from components.report_run.words import difference, standing

MOST_POINTS = 160
MOST_ROWS = 12  # of bars and intervals; the tables hold the rest
MARKERS = {"better": "circle good", "unclear": "circle hollow", "worse": "square bad"}


def decision_setting(snapshot: SnapshotFigures | None, key: str) -> Any:
    """A value of the configuration's `decision` section, or None."""
    section = snapshot.provenance.config.get("decision") if snapshot else None
    return section.get(key) if isinstance(section, dict) else None


def cluster_unit(snapshot: SnapshotFigures | None) -> str:
    unit = decision_setting(snapshot, "cluster")
    return unit if unit in ("day", "row") else "cluster"


def accepted_margin(snapshot: SnapshotFigures | None) -> float:
    """How much worse than the champion is still accepted; 0 where the configuration is silent."""
    margin = decision_setting(snapshot, "margin")
    return float(margin) if isinstance(margin, (int, float)) and margin > 0 else 0.0


def confidence(seen: EvaluateFigures | None, snapshot: SnapshotFigures | None) -> float | None:
    """Of the intervals of the decision, where it is known."""
    if seen is not None and seen.question is not None:
        return seen.question.confidence
    said = decision_setting(snapshot, "confidence")
    return float(said) if isinstance(said, (int, float)) else None


def decides(seen: EvaluateFigures, snapshot: SnapshotFigures | None) -> list[tuple[str, Markup]]:
    """The picture that decides: against the champion, and, on a scale of its own, the baselines."""
    champion = [c for c in seen.comparisons if c.against == "champion"]
    others = [c for c in seen.comparisons if c.against != "champion"][:MOST_ROWS]
    margin = accepted_margin(snapshot)
    unit = cluster_unit(snapshot)
    drawn = []
    for name, rows in (("champion", champion), ("baselines", others)):
        if rows:
            versus = name if name == "champion" else "baseline"
            drawn.append((name, _forest(seen, rows, versus, margin=margin, unit=unit)))
    return [(name, picture) for name, picture in drawn if picture]


def _forest(
    seen: EvaluateFigures, rows: list[Comparison], versus: str, *, margin: float, unit: str
) -> Markup:
    named = []
    for row in rows:
        label = title(row.against)
        if row.against == "champion" and seen.champion:
            label = f"champion, version {seen.champion}"
        places = decimals(row.low, row.high)
        amount = signed(row.difference, places)
        word = standing(row)
        named.append(
            Interval(
                label,
                row.difference,
                row.low,
                row.high,
                MARKERS[word],
                f"{amount} {word}",
                interval(row.low, row.high),
            )
        )
    deciding = versus == "champion"
    way = better(seen.metric, seen.directions)
    order = f"{versus} − challenger" if way == "lower" else f"challenger − {versus}"
    return interval_plot(
        f"decides-{versus}",
        title=f"Paired differences in {title(seen.metric)}: {order.replace('−', 'minus')}",
        description=" ".join(
            difference(row, metric=seen.metric, unit=unit, better=way) for row in rows
        ),
        rows=named,
        x_words=f"{title(seen.metric)}: " + order,
        zero=(f"← {versus} better", "challenger better →"),
        band=rows[0].noise if deciding else 0.0,
        needed=-margin if deciding and margin else None,
    )


def check_curves(seen: CheckFigures) -> list[Markup]:
    """Loss of the short trainings of the checks; those of equal length are of one check."""
    groups: dict[int, list[Series]] = {}
    for name, points in list(seen.curves.items())[:8]:
        if points:
            group = groups.setdefault(points[-1][0], [])
            looks = f"line series-{len(group) % 4}"
            curve = thinned([(float(x), y) for x, y in points], MOST_POINTS // 2)
            group.append(Series(title(name), curve, looks))
    return [_check_curve(i, group, len(groups)) for i, group in enumerate(groups.values())]


def _check_curve(index: int, group: list[Series], groups: int) -> Markup:
    said = [
        f"{s.label}: from {number(s.points[0][1])} to {number(s.points[-1][1])}"
        for s in group
        if s.points
    ]
    return line_chart(
        f"check-{index}",
        title="Loss during a sanity check",
        description="; ".join(said) + ".",
        series=group,
        x_words="step",
        y_words="loss",
        widths=(SQUARE,) if groups > 1 else (WIDE, NARROW),
    )


def training(seen: TrainFigures, selected: SelectFigures | None) -> Markup:
    """Training loss, validation evaluations, and the checkpoint that was chosen."""
    wanted = ["loss", "log_loss"] + ([selected.metric] if selected else [])
    held = {name for point in seen.evaluations for name in point.metrics}
    metric = next((name for name in wanted if name in held), "")
    loss = thinned([(float(p.step), p.loss) for p in seen.curve if p.loss is not None], MOST_POINTS)
    judged = [(float(p.step), p.metrics[metric]) for p in seen.evaluations if metric in p.metrics]
    series = [
        Series("train loss", loss, "line series-1"),
        Series(f"validation {title(metric)}", judged, "line challenger", "circle challenger"),
    ]
    marks = [(float(selected.chosen), f"chosen: step {selected.chosen:,}")] if selected else []
    said = f"Train loss over {plural(seen.steps, 'step')}"
    if len(loss) > 1:
        said += f", from {number(loss[0][1])} to {number(loss[-1][1])}"
    if judged:
        best = min(judged, key=lambda p: p[1])
        said += f"; validation {title(metric)} is lowest, {number(best[1])}, at step {best[0]:,.0f}"
    return line_chart(
        "training",
        title="Training curve",
        description=said + ".",
        series=series,
        x_words="step",
        y_words="loss",
        marks=marks if loss or judged else [],
    )


def _error(seen: EvaluateFigures, model: str) -> str:
    """The calibration error, with its interval where there is one."""
    if model not in seen.calibration_error:
        return ""
    bounds = seen.intervals.get(model, {}).get("calibration_error")
    tail = f" ({interval(*bounds)})" if bounds else ""
    return f", ECE {number(seen.calibration_error[model], 2)}{tail}"


def calibration(seen: EvaluateFigures) -> Markup:
    """Challenger beside champion."""
    looks = {"challenger": "circle challenger", "champion": "square champion"}
    models = [
        Series(
            name + _error(seen, name),
            [(b.predicted, b.observed) for b in seen.reliability[name] if b.rows],
            f"line {name}",
            dots,
        )
        for name, dots in looks.items()
        if name in seen.reliability
    ]
    bins = seen.reliability.get("challenger", [])
    return reliability(
        "calibration",
        title="Reliability diagram",
        description="; ".join(m.label for m in models)
        + ". Observed rate over predicted probability; the diagonal is perfect calibration.",
        models=models,
        rows=[(b.predicted, b.rows) for b in bins],
    )


def curve(seen: EvaluateFigures) -> Markup:
    auc = seen.metrics.get("challenger", {}).get("auc")
    return roc(
        "roc",
        title="ROC of the challenger",
        description="True positive rate over false positive rate on the holdout"
        + (f"; area {number(auc)}." if auc is not None else "."),
        points=seen.roc[:: max(1, len(seen.roc) // MOST_POINTS)] + seen.roc[-1:],
    )
