"""The charts of the report: lines, intervals, bars, reliability, ROC. Values in, SVG out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from components.report_run.formats import short
from components.report_run.svg import (
    CHARACTER,
    WIDE,
    Scale,
    legend,
    line,
    marker,
    nice_ticks,
    path,
    picture,
    tag,
    text,
    x_axis,
    y_axis,
)

Points = list[tuple[float, float]]
SQUARE = 328


@dataclass(frozen=True)
class Series:
    """One line; `kind` is its class, `dots` the class of its markers or empty."""

    label: str
    points: Points
    kind: str
    dots: str = ""


@dataclass(frozen=True)
class Interval:
    """One row of an interval plot; `kind` is the marker's class, `words` and `detail` stand by."""

    label: str
    value: float
    low: float
    high: float
    kind: str
    words: str
    detail: str


@dataclass(frozen=True)
class Bar:
    label: str
    value: float
    words: str
    kind: str = ""


def line_chart(
    name: str,
    *,
    title: str,
    description: str,
    series: list[Series],
    x_words: str,
    y_words: str,
    marks: list[tuple[float, str]] | None = None,
) -> Markup:
    """Lines over a common axis; `marks` are vertical lines with words."""
    lines = [Series(s.label, _finite(s.points), s.kind, s.dots) for s in series]
    lines = [s for s in lines if s.points]
    if not lines:
        return Markup("")
    xs = [x for s in lines for x, _ in s.points]
    ys = [y for s in lines for _, y in s.points]
    log = min(ys) > 0 and max(ys) / min(ys) > 50
    low, high = _padded(min(ys), max(ys)) if not log else (min(ys) * 0.9, max(ys) * 1.1)

    def draw(width: int) -> tuple[Markup, float]:
        keys, below = legend([(s.label, _sample(s)) for s in lines], width=width, top=0)
        top = below + (40 if marks else 26)
        bottom = top + (230 if width == WIDE else 190)
        across = Scale(min(xs), max(xs) if max(xs) > min(xs) else min(xs) + 1, 52, width - 12)
        up = Scale(low, high, bottom, top, log)
        parts = [keys, y_axis(up, left=52, right=width - 12, words=y_words + " (log scale)" * log)]
        parts.append(x_axis(across, top=bottom, bottom=bottom, words=x_words, ticks=width // 90))
        for at, words in marks or []:
            x = across(at)
            late = x + CHARACTER * len(words) > width - 12
            parts.append(line(x, top - 14, x, bottom, "mark"))
            parts.append(
                text(x + (-6 if late else 6), top - 8, words, anchor="end" if late else "start",
                     kind="note")
            )
        for one in lines:
            pixels = [(across(x), up(y)) for x, y in one.points]
            parts.append(path(pixels, one.kind))
            if one.dots:
                parts.extend(marker(x, y, one.dots, radius=3.5) for x, y in pixels)
        return Markup("").join(parts), bottom + 42

    return picture(name, title=title, description=description, draw=draw)


def interval_plot(
    name: str,
    *,
    title: str,
    description: str,
    rows: list[Interval],
    x_words: str,
    zero: tuple[str, str] | None = None,
    band: float = 0.0,
    needed: float | None = None,
) -> Markup:
    """One row a comparison: a point with its interval, words beside it.

    Args:
        zero: Words left and right of a line at zero; none: no such line.
        band: Half width of a shaded band around zero.
        needed: Where the lower end of an interval must lie, drawn as a dashed line.
    """
    rows = [r for r in rows if all(map(math.isfinite, (r.value, r.low, r.high)))]
    if not rows:
        return Markup("")
    low, high = _padded(min(r.low for r in rows), max(r.high for r in rows))
    if zero:
        low, high = min(low, -band, needed or 0.0), max(high, band)
        reach = high - low
        low, high = min(low, -0.14 * reach), max(high, 0.14 * reach)

    def draw(width: int) -> tuple[Markup, float]:
        wide = width == WIDE
        left, right = (170, 540) if wide else (8, width - 8)
        height = 40 if wide else 52
        across = Scale(low, high, left, right)
        top = 26 if zero else 4
        bottom = top + height * len(rows) + 6
        parts = []
        if band:
            start, stop = across(-band), across(band)
            parts.append(
                tag("rect", x=start, y=top, width=stop - start, height=bottom - top, class_="band")
            )
        parts.append(x_axis(across, top=top, bottom=bottom, words=x_words, ticks=5))
        if zero:
            parts.append(_zero(across, zero, top=top, bottom=bottom, width=width))
        if needed is not None:
            parts.append(line(across(needed), top, across(needed), bottom, "mark"))
        for i, row in enumerate(rows):
            y = top + height * i + (23 if wide else 38)
            if wide:
                parts.append(text(0, y + 4, short(row.label, 25), kind="name"))
                parts.append(text(right + 20, y - 3, short(row.words, 22), kind="value"))
                parts.append(text(right + 20, y + 13, short(row.detail, 24), kind="tick"))
            else:
                parts.append(text(0, y - 14, short(row.label, 22), kind="name halo"))
                parts.append(text(width, y - 14, short(row.words, 30), anchor="end",
                                  kind="value halo"))
            a, b = across(row.low), across(row.high)
            parts.append(line(a, y, b, y, "whisker"))
            parts.extend(line(end, y - 4, end, y + 4, "whisker") for end in (a, b))
            parts.append(marker(across(row.value), y, row.kind))
        return Markup("").join(parts), bottom + 42

    return picture(name, title=title, description=description, draw=draw)


def bars(
    name: str,
    *,
    title: str,
    description: str,
    rows: list[Bar],
    thresholds: list[tuple[float, str]],
    most: float,
) -> Markup:
    """Horizontal bars from zero, cut at `most`, with thresholds as dashed lines."""
    top_value = max([value for value, _ in thresholds] + [0.0]) * 1.2
    longest = max([min(r.value, most) for r in rows if math.isfinite(r.value)] + [top_value])

    def draw(width: int) -> tuple[Markup, float]:
        wide = width == WIDE
        left, right = (220, 560) if wide else (0, width)
        height = 24 if wide else 36
        across = Scale(0, longest, left, right)
        bottom = 22 + height * len(rows)
        parts = []
        for i, row in enumerate(rows):
            y = 22 + height * i
            if wide:
                parts.append(text(0, y + 16, short(row.label, 32), kind="name"))
                parts.append(text(right + 16, y + 16, row.words, kind="value"))
                y += 7
            else:
                parts.append(text(0, y + 16, short(row.label, 28), kind="name"))
                parts.append(text(width, y + 16, row.words, anchor="end", kind="value"))
                y += 22
            value = row.value if math.isfinite(row.value) else longest
            length = max(across(value) - left, 1)
            parts.append(
                tag("rect", x=left, y=y, width=length, height=10, rx=2, class_=f"bar {row.kind}")
            )
        for value, words in thresholds:
            x = across(value)
            parts.append(line(x, 20, x, bottom + 2, "mark"))
            parts.append(text(x, 12, words, anchor="middle", kind="note"))
        return Markup("").join(parts), bottom + 6

    return picture(name, title=title, description=description, draw=draw)


def reliability(
    name: str, *, title: str, description: str, models: list[Series], rows: list[tuple[float, int]]
) -> Markup:
    """Observed rate over predicted probability, and below it how many rows were predicted so."""
    models = [Series(m.label, _finite(m.points), m.kind, m.dots) for m in models]
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
                parts.append(tag("rect", x=across(predicted) - 3, y=bottom + 44 - length, width=6,
                                 height=max(length, 1), class_="histogram"))
        parts.append(x_axis(across, top=bottom + 44, bottom=bottom + 44,
                            words="predicted probability (bars: rows)", ticks=5))
        for model in models:
            pixels = [(across(x), up(y)) for x, y in model.points]
            parts.append(path(pixels, model.kind))
            parts.extend(marker(x, y, model.dots, radius=3.5) for x, y in pixels)
        return Markup("").join(parts), bottom + 86

    return picture(name, title=title, description=description, draw=draw, widths=(SQUARE,))


def roc(name: str, *, title: str, description: str, points: Points) -> Markup:
    """True positive rate over false positive rate."""
    points = _finite(points)
    if not points:
        return Markup("")

    def draw(width: int) -> tuple[Markup, float]:
        top, left, right = 46, 44, width - 10
        bottom = top + right - left
        across, up = Scale(0, 1, left, right), Scale(0, 1, bottom, top)
        keys, _ = legend([("challenger", line(0, 0, 24, 0, "line challenger"))], width=width, top=0)
        parts = [keys, y_axis(up, left=left, right=right, words="true positive rate")]
        parts.append(x_axis(across, top=bottom, bottom=bottom, words="false positive rate", ticks=5))
        parts.append(line(left, bottom, right, top, "mark"))
        parts.append(path([(across(x), up(y)) for x, y in points], "line challenger"))
        return Markup("").join(parts), bottom + 42

    return picture(name, title=title, description=description, draw=draw, widths=(SQUARE,))


def thinned(points: Points, most: int) -> Points:
    """Means of neighbours, so that at most so many points are left."""
    points = _finite(points)
    if len(points) <= most:
        return points
    edges = [round(i * len(points) / most) for i in range(most + 1)]
    groups = [points[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    return [(sum(x for x, _ in g) / len(g), sum(y for _, y in g) / len(g)) for g in groups]


def _zero(
    scale: Scale, words: tuple[str, str], *, top: float, bottom: float, width: float
) -> Markup:
    """The line at zero and the words on its two sides, kept inside the picture."""
    x = scale(0)
    less, more = words
    parts = [line(x, top - 4, x, bottom, "zero")]
    if x - CHARACTER * len(less) - 8 > 0:
        parts.append(text(x - 8, top - 10, less, anchor="end", kind="side"))
    start = min(x + 8, width - CHARACTER * len(more))
    parts.append(text(start, top - 10, more, kind="side strong"))
    return Markup("").join(parts)


def _sample(series: Series) -> Markup:
    """A piece of the line for the legend."""
    parts = [line(0, 0, 24, 0, series.kind)]
    if series.dots:
        parts.append(marker(12, 0, series.dots, radius=3.5))
    return Markup("").join(parts)


def _finite(points: Points) -> Points:
    return [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]


def _padded(low: float, high: float) -> tuple[float, float]:
    """The range with a little air, wider where it is a single value."""
    if high <= low:
        air = abs(low) * 0.1 or 1.0
        return low - air, high + air
    air = (high - low) * 0.06
    floor = 0.0 if 0 <= low <= (high - low) * 0.2 else low - air
    return floor, high + air


__all__ = ["Bar", "Interval", "Series", "bars", "interval_plot", "line_chart", "nice_ticks",
           "reliability", "roc", "thinned"]
