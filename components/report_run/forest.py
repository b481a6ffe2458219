"""Rows of values on axes of their own: a mark of its shape, an interval, a limit, words beside."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeGuard

from markupsafe import Markup

from components.report_run.formats import short
from components.report_run.svg import CHARACTER, WIDE, Scale, line, marker, padded, tag, text


@dataclass(frozen=True)
class Row:
    """One value with its interval and its limit, as far as there are any.

    Attributes:
        kind: The mark's class.
        words, detail: What stands beside it.
        strong: It decides: the row is shaded.
    """

    label: str
    value: float | None
    low: float | None
    high: float | None
    limit: float | None
    kind: str
    words: str
    detail: str
    strong: bool = False


@dataclass(frozen=True)
class Group:
    """Rows on one axis.

    Attributes:
        heading: What the axis shows.
        sides: Words left and right of the line at zero.
        band: Half width of a shaded band around zero.
        tick: From a value of the axis to its words; none: numbers.
    """

    heading: str
    rows: list[Row]
    sides: tuple[str, str]
    band: float = 0.0
    tick: Callable[[float], str] | None = None


def forest(groups: list[Group], width: int) -> tuple[Markup, float]:
    """Draw the groups one below the other; return them and their height."""
    parts, top = [], 0.0
    for group in groups:
        drawn, below = _group(group, width, top)
        parts.append(drawn)
        top = below + 10
    return Markup("").join(parts), top - 8


def reach(rows: list[Row]) -> tuple[float, float]:
    """Smallest and largest number of the rows."""
    found = [v for r in rows for v in (r.value, r.low, r.high, r.limit) if known(v)]
    return (min(found), max(found)) if found else (0.0, 0.0)


def known(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _group(group: Group, width: int, top: float) -> tuple[Markup, float]:
    wide = width == WIDE
    left, right = (200, 545) if wide else (6, width - 6)
    height = 31 if wide else 48
    parts = [text(0, top + 12, short(group.heading, 30 if wide else 48), kind="label")]
    top += 18 if wide else 36
    bottom = top + height * len(group.rows)
    levels = [top + height * i + (15 if wide else 33) for i in range(len(group.rows))]
    parts += [
        tag("rect", x=-6, y=y - (15 if wide else 33), width=width + 12, height=height, rx=4,
            class_="deciding")
        for y, row in zip(levels, group.rows, strict=True) if row.strong
    ]  # fmt: skip
    drawable = [r for r in group.rows if known(r.value)]
    if drawable:
        low, high = reach(drawable)
        low, high = padded(min(low, -group.band, 0.0), max(high, group.band, 0.0))
        air = 0.14 * (high - low)
        across = Scale(min(low, -air), max(high, air), left, right)
        spans = [(top, bottom)] if wide else [(y - 9, y + 9) for y in levels]
        if group.band:
            start, end = across(-group.band), across(group.band)
            parts += [tag("rect", x=start, y=a, width=end - start, height=b - a, class_="band")
                      for a, b in spans]  # fmt: skip
        parts.append(line(left, bottom, right, bottom, "axis"))
        for value, words in across.ticks(5 if wide else 3):
            x = across(value)
            parts += [line(x, a, x, b, "grid") for a, b in spans]
            shown = group.tick(value) if group.tick else words
            parts.append(text(x, bottom + 15, shown, anchor="middle", kind="tick"))
        parts += [line(across(0), a, across(0), b, "zero") for a, b in spans]
        parts.append(_sides(group.sides, across, top - 5, 200 if wide else 0, width))
        parts += [_drawn(row, across, y) for row, y in zip(group.rows, levels, strict=True)
                  if known(row.value)]  # fmt: skip
        bottom += 18
    for row, y in zip(group.rows, levels, strict=True):
        name = "name strong" if row.strong else "name"
        if wide:
            parts.append(text(0, y + 4, short(row.label, 27), kind=name))
            parts.append(text(right + 18, y - 2, short(row.words, 22), kind="value"))
            parts.append(text(right + 18, y + 12, short(row.detail, 25), kind="tick"))
        else:
            words = short(row.words, 24)
            room = int((width - 8.2 * len(words) - 8) / (8.4 if row.strong else 7.6))
            parts.append(text(0, y - 16, short(row.label, max(6, room)), kind=name))
            parts.append(text(width, y - 16, words, anchor="end", kind="value"))
    return Markup("").join(parts), bottom


def _drawn(row: Row, across: Scale, y: float) -> Markup:
    parts = []
    if known(row.limit) and row.limit != 0:
        x = across(row.limit)
        parts.append(line(x, y - 12, x, y + 12, "mark"))
    if known(row.low) and known(row.high):
        a, b = across(row.low), across(row.high)
        parts.append(line(a, y, b, y, "whisker"))
        parts.extend(line(end, y - 4, end, y + 4, "whisker") for end in (a, b))
    parts.append(marker(across(row.value or 0.0), y, row.kind))
    return Markup("").join(parts)


def _sides(sides: tuple[str, str], across: Scale, y: float, left: float, right: float) -> Markup:
    """Words on the two sides of zero; one that has no room is left out, never both."""
    less, more = sides
    x, parts = across(0), []
    if x - CHARACTER * len(less) - 8 > left:
        parts.append(text(x - 8, y, less, anchor="end", kind="side"))
    if x + 8 + (CHARACTER + 0.6) * len(more) < right:
        parts.append(text(x + 8, y, more, kind="side strong"))
    elif not parts:
        parts.append(text(right, y, more, anchor="end", kind="side strong"))
    return Markup("").join(parts)
