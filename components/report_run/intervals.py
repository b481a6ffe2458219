"""The interval plot: one row a comparison, a point with its interval, words beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from components.report_run.formats import short
from components.report_run.svg import (
    CHARACTER,
    WIDE,
    Points,
    Scale,
    line,
    marker,
    padded,
    picture,
    tag,
    text,
    x_axis,
)


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
    low, high = padded(min(r.low for r in rows), max(r.high for r in rows))
    if zero:
        low, high = min(low, -band, needed or 0.0), max(high, band)
        reach = high - low
        low, high = min(low, -0.14 * reach), max(high, 0.14 * reach)

    def draw(width: int) -> tuple[Markup, float]:
        wide = width == WIDE
        left, right = (170, 540) if wide else (8, width - 8)
        height = 40 if wide else 52
        across = Scale(low, high, left, right)
        crowded = zero is not None and across(0) + 8 + CHARACTER * len(zero[1]) > width
        top = 4.0 + (22 if zero else 0) + (16 if crowded else 0)
        bottom = top + height * len(rows) + 6
        levels = [top + height * i + (23 if wide else 38) for i in range(len(rows))]
        # On a phone the words stand above the intervals, so lines leave room for them.
        spans: Points = [(top, bottom)] if wide else [(y - 9, y + 9) for y in levels[:-1]]
        spans += [] if wide else [(levels[-1] - 9, bottom)]
        parts = []
        start, width_of_band = across(-band), across(band) - across(-band)
        for upper, lower in spans if band else []:
            parts.append(
                tag(
                    "rect",
                    x=start,
                    y=upper,
                    width=width_of_band,
                    height=lower - upper,
                    class_="band",
                )
            )
        parts.append(x_axis(across, bottom=bottom, words=x_words, ticks=5, grid=spans))
        if zero:
            parts.append(_zero(across, zero, crowded=crowded, spans=[(top - 6, top), *spans]))
        if needed is not None:
            parts.extend(line(across(needed), a, across(needed), b, "mark") for a, b in spans)
        for y, row in zip(levels, rows, strict=True):
            if wide:
                parts.append(text(0, y + 4, short(row.label, 25), kind="name"))
                parts.append(text(right + 20, y - 3, short(row.words, 22), kind="value"))
                parts.append(text(right + 20, y + 13, short(row.detail, 24), kind="tick"))
            else:
                parts.append(text(0, y - 14, short(row.label, 22), kind="name"))
                parts.append(text(width, y - 14, short(row.words, 30), anchor="end", kind="value"))
            a, b = across(row.low), across(row.high)
            parts.append(line(a, y, b, y, "whisker"))
            parts.extend(line(end, y - 4, end, y + 4, "whisker") for end in (a, b))
            parts.append(marker(across(row.value), y, row.kind))
        return Markup("").join(parts), bottom + 42

    return picture(name, title=title, description=description, draw=draw)


def _zero(
    scale: Scale,
    words: tuple[str, str],
    *,
    crowded: bool,
    spans: Points,
) -> Markup:
    """The line at zero and the words on its two sides; crowded: right of it is no room."""
    x, y = scale(0), spans[0][0] - 4
    less, more = words
    parts = [line(x, upper, x, lower, "zero") for upper, lower in spans]
    if x - CHARACTER * len(less) - 8 > 0:
        parts.append(text(x - 8, y, less, anchor="end", kind="side"))
    if crowded:
        parts.append(text(scale.stop, y - 16, more, anchor="end", kind="side strong"))
    else:
        parts.append(text(x + 8, y, more, kind="side strong"))
    return Markup("").join(parts)
