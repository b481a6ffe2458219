"""Charts of the report: lines, bars, reliability, ROC. Values in, SVG out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from components.report_run.svg import (
    CHARACTER,
    NARROW,
    WIDE,
    Points,
    Scale,
    finite,
    legend,
    line,
    marker,
    padded,
    path,
    picture,
    tag,
    text,
    x_axis,
    y_axis,
)

SQUARE = 328


@dataclass(frozen=True)
class Series:
    """One line; `kind` is its class, `dots` the class of its markers or empty.

    Without a label it is not in the legend.
    """

    label: str
    points: Points
    kind: str
    dots: str = ""


def line_chart(
    name: str,
    *,
    title: str,
    description: str,
    series: list[Series],
    x_words: str,
    y_words: str,
    marks: list[tuple[float, str]] | None = None,
    log_x: bool = False,
    widths: tuple[int, ...] = (WIDE, NARROW),
) -> Markup:
    """Lines over a common axis; `marks` are vertical lines with words."""
    lines = [Series(s.label, finite(s.points), s.kind, s.dots) for s in series]
    lines = [s for s in lines if s.points]
    if not lines:
        return Markup("")
    xs = [x for s in lines for x, _ in s.points]
    ys = [y for s in lines for _, y in s.points]
    log = min(ys) > 0 and max(ys) / min(ys) > 50
    low, high = padded(min(ys), max(ys)) if not log else (min(ys) * 0.9, max(ys) * 1.1)

    def draw(width: int) -> tuple[Markup, float]:
        keys, below = legend([(s.label, _sample(s)) for s in lines if s.label], width=width, top=0)
        top = below + (40 if marks else 26)
        bottom = top + (230 if width == WIDE else 190)
        most = max(xs) if max(xs) > min(xs) else min(xs) + 1
        across = Scale(min(xs), most, 52, width - 12, log_x)
        up = Scale(low, high, bottom, top, log)
        parts = [keys, y_axis(up, left=52, right=width - 12, words=y_words + " (log scale)" * log)]
        parts.append(x_axis(across, bottom=bottom, words=x_words, ticks=width // 90, grid=[]))
        for at, words in marks or []:
            x = across(at)
            late = x + CHARACTER * len(words) > width - 12
            parts.append(line(x, top - 14, x, bottom, "mark"))
            parts.append(
                text(
                    x + (-6 if late else 6),
                    top - 8,
                    words,
                    anchor="end" if late else "start",
                    kind="note",
                )
            )
        for one in lines:
            pixels = [(across(x), up(y)) for x, y in one.points]
            parts.append(path(pixels, one.kind))
            if one.dots:
                parts.extend(marker(x, y, one.dots, radius=3.5) for x, y in pixels)
        return Markup("").join(parts), bottom + 42

    return picture(name, title=title, description=description, draw=draw, widths=widths)


def reliability(
    name: str, *, title: str, description: str, models: list[Series], rows: list[tuple[float, int]]
) -> Markup:
    """Observed rate over predicted probability, and below it how many rows were predicted so."""
    models = [Series(m.label, finite(m.points), m.kind, m.dots) for m in models]
    models = [m for m in models if m.points]
    if not models:
        return Markup("")
    top_value = min(1.0, math.ceil(max(max(p) for m in models for p in m.points) * 10) / 10)

    def draw(width: int) -> tuple[Markup, float]:
        keys, below = legend([(m.label, _sample(m)) for m in models], width=width, top=0)
        top, left, right = below + 26, 44, width - 10
        bottom = top + right - left
        across, up = Scale(0, top_value, left, right), Scale(0, top_value, bottom, top)
        most = max([n for _, n in rows] + [1])
        parts = [keys, y_axis(up, left=left, right=right, words="observed rate")]
        parts.append(line(left, bottom, right, top, "mark"))
        for predicted, n in rows:
            if math.isfinite(predicted):
                length = 34 * n / most
                parts.append(
                    tag(
                        "rect",
                        x=across(predicted) - 3,
                        y=bottom + 44 - length,
                        width=6,
                        height=max(length, 1),
                        class_="histogram",
                    )
                )
        parts.append(
            x_axis(
                across,
                bottom=bottom + 44,
                grid=[],
                words="predicted probability (bars: rows)",
                ticks=5,
            )
        )
        for model in models:
            pixels = [(across(x), up(y)) for x, y in model.points]
            parts.append(path(pixels, model.kind))
            parts.extend(marker(x, y, model.dots, radius=3.5) for x, y in pixels)
        return Markup("").join(parts), bottom + 86

    return picture(name, title=title, description=description, draw=draw, widths=(SQUARE,))


def roc(name: str, *, title: str, description: str, points: Points) -> Markup:
    """True positive rate over false positive rate."""
    points = finite(points)
    if not points:
        return Markup("")

    def draw(width: int) -> tuple[Markup, float]:
        top, left, right = 46, 44, width - 10
        bottom = top + right - left
        across, up = Scale(0, 1, left, right), Scale(0, 1, bottom, top)
        keys, _ = legend([("challenger", line(0, 0, 24, 0, "line challenger"))], width=width, top=0)
        parts = [keys, y_axis(up, left=left, right=right, words="true positive rate")]
        parts.append(x_axis(across, bottom=bottom, words="false positive rate", ticks=5, grid=[]))
        parts.append(line(left, bottom, right, top, "mark"))
        parts.append(path([(across(x), up(y)) for x, y in points], "line challenger"))
        return Markup("").join(parts), bottom + 42

    return picture(name, title=title, description=description, draw=draw, widths=(SQUARE,))


def _sample(series: Series) -> Markup:
    """A piece of the line for the legend."""
    parts = [line(0, 0, 24, 0, series.kind)]
    if series.dots:
        parts.append(marker(12, 0, series.dots, radius=3.5))
    return Markup("").join(parts)
