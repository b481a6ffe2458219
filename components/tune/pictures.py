"""The pictures of a search: its history, all settings at once, pieces of ranges, curves."""

from __future__ import annotations

from itertools import accumulate

from markupsafe import Markup

from components.common.tune_figures import (
    DimensionFigures,
    IsolationFigures,
    TrialFigures,
    TuneFigures,
)
from components.common.tune_settings import Value
from components.report_run.charts import Series, line_chart
from components.report_run.formats import number, short
from components.report_run.svg import (
    CHARACTER,
    NARROW,
    WIDE,
    Scale,
    legend,
    line,
    marker,
    padded,
    path,
    picture,
    tag,
    text,
    y_axis,
)
from components.tune.space import Dimension, told

_LEFT = 60
_BEST = 3  # trials that stand out
_KINDS = {"quasi_random": "circle hollow", "bayesian": "diamond good", "present": "square champion"}
_NAMES = {
    "quasi_random": "spread evenly", "bayesian": "proposed by Bayes", "present": "as it is",
}  # fmt: skip


def ranked(found: TuneFigures) -> list[TrialFigures]:
    """Return the trials that are whole, the best first."""
    sign = -1 if found.direction == "maximise" else 1
    whole = [each for each in found.trials if each.ended == "finished" and each.value is not None]
    return sorted(whole, key=lambda each: (sign * (each.value or 0.0), each.number))


def history(found: TuneFigures) -> Markup:
    """Each whole trial in its order, and the best so far."""
    whole = sorted(ranked(found), key=lambda each: each.number)
    if not whole:
        return Markup("")
    values = [each.value or 0.0 for each in whole]
    choose = max if found.direction == "maximise" else min
    best = list(accumulate(values, choose))
    low, high = _bulk(values, found)

    def draw(width: int) -> tuple[Markup, float]:
        kinds = [kind for kind in _KINDS if any(each.sampler == kind for each in whole)]
        samples = [(_NAMES[k], marker(12, 0, _KINDS[k])) for k in kinds]
        samples.append(("best so far", line(0, 0, 24, 0, "line challenger")))
        keys, below = legend(samples, width=width, top=0)
        top = below + 26
        bottom = top + (230 if width == WIDE else 190)
        across = Scale(0, max(found.trials[-1].number, 1), _LEFT + 8, width - 12)
        up = Scale(low, high, bottom, top)
        parts = [
            keys,
            y_axis(up, left=_LEFT, right=width - 12, words=f"{found.metric}, validation"),
        ]
        parts.append(line(_LEFT, bottom, width - 12, bottom, "axis"))
        for value, label in across.ticks(width // 90):
            parts.append(text(across(value), bottom + 16, label, anchor="middle", kind="tick"))
        parts.append(text((_LEFT + width) / 2, bottom + 34, "trial", anchor="middle", kind="label"))
        steps = [(across(t.number), up(v)) for t, v in zip(whole, best, strict=True)]
        parts.append(path(steps, "line challenger"))
        parts += [
            marker(across(each.number), up(each.value or 0.0), _KINDS[each.sampler], radius=4)
            for each in whole
        ]
        return Markup("").join(parts), bottom + 42

    return picture(
        "tune-history", title="The trials in their order",
        description="The metric of each whole trial, and the best so far.", draw=draw,
    )  # fmt: skip


def parallel(found: TuneFigures) -> Markup:
    """Every whole trial as a line through its settings; the best ones stand out."""
    whole = ranked(found)
    if not whole or not found.dimensions:
        return Markup("")
    rest, best = whole[_BEST:], whole[:_BEST]

    def draw(width: int) -> tuple[Markup, float]:
        samples = [(f"the best {len(best)}", line(0, 0, 24, 0, "line challenger"))]
        samples.append(("the others", line(0, 0, 24, 0, "line series-1 faint")))
        keys, below = legend(samples, width=width, top=0)
        count = len(found.dimensions)
        top, left, right = below + 38, 46.0, width - 46.0
        bottom = top + (230 if width == WIDE else 190)
        places = [left + (right - left) * i / max(1, count - 1) for i in range(count)]
        parts = [keys]
        for each, x in zip(found.dimensions, places, strict=True):
            room = int((right - left) / max(1, count - 1) / CHARACTER) if count > 1 else 40
            name = short(each.path.rpartition(".")[2], max(room - 1, 4))
            parts.append(line(x, top + 4, x, bottom, "axis"))
            parts.append(text(x, top - 17, name, anchor="middle", kind="label"))
            parts.append(text(x, bottom + 16, _end(each, 0), anchor="middle", kind="tick"))
            parts.append(text(x, top - 1, _end(each, -1), anchor="middle", kind="tick"))
        for group, kind in ((rest, "line series-1 faint"), (best, "line challenger")):
            for trial in group:
                points = [
                    (x, bottom - (bottom - top) * place(each, trial.values[each.path]))
                    for each, x in zip(found.dimensions, places, strict=True)
                ]
                parts.append(path(points, kind))
                if kind == "line challenger" or count == 1:
                    parts += [marker(x, y, "circle challenger", radius=3.5) for x, y in points]
        return Markup("").join(parts), bottom + 26

    return picture(
        "tune-parallel", title="The settings of every whole trial",
        description="Each trial is a line through its place in every range; the best stand out.",
        draw=draw,
    )  # fmt: skip


def isolation(found: TuneFigures, each: IsolationFigures) -> Markup:
    """Every whole trial over one setting, and the best of each piece of its range."""
    dimension = next(d for d in found.dimensions if d.path == each.path)
    whole = ranked(found)
    values = [trial.value or 0.0 for trial in whole]
    if not values:
        return Markup("")
    low, high = _bulk(values, found)
    best = [(p.middle, p.best) for p in each.pieces if p.best is not None]

    def draw(width: int) -> tuple[Markup, float]:
        top, left, right = 26, 52.0, width - 12.0
        bottom = top + 150
        up = Scale(low, high, bottom, top)
        parts = [y_axis(up, left=left, right=right, words=found.metric, ticks=4)]
        parts.append(line(left, bottom, right, bottom, "axis"))
        span = right - left - 16
        for index, piece in enumerate(each.pieces):
            if not dimension.choices and index % 2:
                continue  # every second edge: the numbers of all do not fit
            x = left + 8 + piece.middle * span
            room = int(span / len(each.pieces) / CHARACTER)
            words = short(piece.words, room)
            if not dimension.choices:
                words = number(float(piece.words.partition(" to ")[0]), 2)
            at = x if dimension.choices else x - span / len(each.pieces) / 2
            parts.append(text(at, bottom + 16, words, anchor="middle", kind="tick"))
        if not dimension.choices:
            parts.append(text(right, bottom + 16, _end(dimension, -1), anchor="end", kind="tick"))
        parts += [
            marker(
                left + 8 + _across(each, dimension, trial.values[each.path]) * span,
                up(trial.value or 0.0), "circle hollow", radius=2.5,
            )
            for trial in whole
        ]  # fmt: skip
        points = [(left + 8 + middle * span, up(value)) for middle, value in best]
        parts.append(path(points, "line challenger"))
        parts += [marker(x, y, "circle challenger", radius=4) for x, y in points]
        return Markup("").join(parts), bottom + 24

    name = each.path.replace(".", "-").replace("_", "-")
    return picture(
        f"tune-isolation-{name}", title=each.path, widths=(NARROW,), draw=draw,
        description="Each whole trial over this setting, and the best in each piece of the range.",
    )  # fmt: skip


def importance(found: TuneFigures) -> Markup:
    """Bars: how much of the differences between trials each setting makes."""
    shares = [
        (each.path, each.importance) for each in found.dimensions if each.importance is not None
    ]
    shares.sort(key=lambda each: -(each[1] or 0.0))
    if not shares:
        return Markup("")

    def draw(width: int) -> tuple[Markup, float]:
        parts, left = [], min(230.0, width * 0.5)
        for row, (name, share) in enumerate(shares):
            y = 6 + 26 * row
            words = short(name, int(left / CHARACTER))
            parts.append(text(0, y + 12, words, kind="name"))
            length = (width - left - 60) * (share or 0.0)
            parts.append(tag("rect", x=left, y=y, width=max(length, 1), height=14, class_="bar"))
            parts.append(text(left + length + 8, y + 12, f"{share:.0%}", kind="value"))
        return Markup("").join(parts), 8 + 26 * len(shares)

    return picture(
        "tune-importance", title="Importance", draw=draw,
        description="The share of each setting in how trials differ.",
    )  # fmt: skip


def curves(found: TuneFigures) -> Markup:
    """Validation of the best trials by step."""
    series = [
        Series(f"trial {each.number}", [(float(s), v) for s, v in each.evaluations],
               f"line series-{index}", "circle hollow" if index == 0 else "")
        for index, each in enumerate(ranked(found)[:_BEST])
    ]  # fmt: skip
    return line_chart(
        "tune-curves", title="Curves of the best trials",
        description="The metric on the validation split by step, of the best trials.",
        series=series, x_words="step", y_words=f"{found.metric}, validation",
    )  # fmt: skip


def place(each: DimensionFigures, value: Value) -> float:
    """Return where a value lies in a range, from 0 to 1."""
    return min(1.0, max(0.0, Dimension(
        each.path, each.role, each.present, low=each.low or 0.0, high=each.high or 0.0,
        log=each.log, choices=tuple(each.choices),
    ).place(value)))  # fmt: skip


def _across(each: IsolationFigures, dimension: DimensionFigures, value: Value) -> float:
    if dimension.choices:
        return each.pieces[dimension.choices.index(value)].middle
    return place(dimension, value)


def _end(each: DimensionFigures, which: int) -> str:
    if each.choices:
        return short(told(each.choices[which]), 12)
    return number((each.low if which == 0 else each.high) or 0.0, 2)


def _bulk(values: list[float], found: TuneFigures) -> tuple[float, float]:
    """The range to draw: a few trials that went badly are not to flatten the others."""
    ordered = sorted(values, reverse=found.direction == "maximise")
    worst = ordered[min(len(ordered) - 1, int(0.8 * len(ordered)))]
    return padded(min(ordered[0], worst), max(ordered[0], worst))
