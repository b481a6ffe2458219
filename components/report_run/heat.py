"""A chart of values by row and column: which input reaches which output, layer by layer, and such.

Five shades of a value's size, and a colour of its own below zero; zero is empty, so that what is
there and what is not can be told apart at a glance. The numbers are in a table beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from components.common.figures import Heat
from components.report_run.formats import number, plain, plural, short
from components.report_run.svg import CHARACTER, WIDE, legend, line, picture, tag, text

SHADES = 5
_STEEP = 100  # largest over smallest from which shades go by the logarithm
_ROW, _WIDEST = 16, 40  # pixels of a cell
_APART = 16  # pixels between two words that stand upright side by side
_NONE = "none"


@dataclass(frozen=True)
class Shading:
    """From a value to its class; `low` and `high` are the smallest and largest size but 0."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[Sequence[float | None]]) -> Shading:
        sizes = [abs(v) for row in values for v in row if v and math.isfinite(v)]
        return cls(min(sizes, default=0.0), max(sizes, default=0.0))

    @property
    def log(self) -> bool:
        return self.low > 0 and self.high > _STEEP * self.low

    def __call__(self, value: float | None) -> str:
        if value is None or not math.isfinite(value):
            return _NONE
        if value == 0:
            return ""
        share = abs(value) / self.high
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            share = (math.log(abs(value)) - low) / (high - low)
        shade = 1 + min(SHADES - 1, max(0, int(share * SHADES)))
        return f"heat shade-{shade}" + " below" * (value < 0)


def heat_chart(name: str, heat: Heat, *, title: str) -> Markup:
    """Draw the values; empty where there are none."""
    columns = len(heat.columns)
    values = [row[:columns] + [None] * (columns - len(row)) for row in heat.values]
    values = values[: len(heat.rows)]
    if not values or not columns:
        return Markup("")
    shading = Shading.of(values)

    def draw(width: int) -> tuple[Markup, float]:
        keys, below = legend(_keys(values, shading), width=width, top=0)
        most = 24 if width == WIDE else 12
        names = [short(row, most) for row in heat.rows[: len(values)]]
        left = CHARACTER * max(map(len, names)) + 10
        across = min(_WIDEST, (width - left) / columns)
        over, top = _column_names(heat.columns, left, across, below + 6)
        bottom = top + _ROW * len(values)
        right = left + across * columns
        parts = [keys, over, *_cells(values, shading, left=left, top=top, across=across)]
        parts += [line(left, y, right, y, "gap") for y in _steps(top, _ROW, len(values))]
        parts += [line(x, top, x, bottom, "gap") for x in _steps(left, across, columns)]
        frame = {"x": left, "y": top, "width": right - left, "height": bottom - top}
        parts.append(tag("rect", class_="frame", **frame))
        for i, word in enumerate(names):
            parts.append(text(left - 6, top + _ROW * i + 12, word, anchor="end", kind="tick"))
        return Markup("").join(parts), bottom + 6

    return picture(name, title=title, description=_description(heat, values), draw=draw)


def _steps(start: float, step: float, count: int) -> list[float]:
    return [start + step * i for i in range(1, count)]


def _cells(
    values: list[list[float | None]], shading: Shading, *, left: float, top: float, across: float
) -> list[Markup]:
    """One path for each shade: neighbours of one shade are one rectangle."""
    drawn: dict[str, list[str]] = {}
    for i, row in enumerate(values):
        y, x = top + _ROW * i, left
        for kind, cells in groupby(shading(value) for value in row):
            length = across * len(list(cells))
            if kind == _NONE:
                middle = f"M{x + 3:.1f} {y + _ROW / 2:.1f}h{length - 6:.1f}"
                drawn.setdefault(kind, []).append(middle)
            elif kind:
                drawn.setdefault(kind, []).append(f"M{x:.1f} {y:.1f}h{length:.1f}v{_ROW}H{x:.1f}z")
            x += length
    return [tag("path", d="".join(pieces), class_=kind) for kind, pieces in sorted(drawn.items())]


def _column_names(names: list[str], left: float, across: float, top: float) -> tuple[Markup, float]:
    """Level where they fit, else upright, as many as fit; returns the y below them."""
    longest = CHARACTER * max(map(len, names))
    if longest + 4 <= across:
        middle = left + across / 2
        level = [
            text(middle + across * i, top + 12, name, anchor="middle", kind="tick")
            for i, name in enumerate(names)
        ]
        return Markup("").join(level), top + 18
    shown = [short(name, 16) for name in names]
    height = CHARACTER * max(map(len, shown)) + 4
    every, foot = max(1, math.ceil(_APART / across)), top + height
    upright = [
        tag("text", name, class_="tick", transform=f"translate({x:.1f} {foot:.1f}) rotate(-90)")
        for x, name in zip(
            _steps(left - across / 2 + 4, across, len(shown) + 1), shown, strict=True
        )
    ][::every]
    return Markup("").join(upright), foot + 5


def _keys(values: list[list[float | None]], shading: Shading) -> list[tuple[str, Markup]]:
    """Which shade means what."""
    kinds = {shading(value) for row in values for value in row}
    keys = [("0", _box("frame"))] if "" in kinds else []
    if any("heat" in kind for kind in kinds):
        words = " (log scale)" if shading.log else ""
        if shading.low < shading.high:
            keys.append((plain(shading.low), _box(shading(shading.low))))
        keys.append((plain(shading.high) + words, _box(f"heat shade-{SHADES}")))
    if any("below" in kind for kind in kinds):
        keys.append(("the same, below zero", _box(f"heat shade-{SHADES} below")))
    if _NONE in kinds:
        keys.append(("nothing to show", line(3, 0, 21, 0, _NONE)))
    return keys


def _box(kind: str) -> Markup:
    return tag("rect", x=2, y=-6, width=20, height=12, class_=kind)


def _description(heat: Heat, values: list[list[float | None]]) -> str:
    known = [
        (abs(v), i, j, v)
        for i, row in enumerate(values)
        for j, v in enumerate(row)
        if v is not None and math.isfinite(v)
    ]
    said = f"{plural(len(values), 'row')} by {plural(len(heat.columns), 'column')}"
    if not known:
        return said + "; there is no number to show."
    _, i, j, value = max(known)
    zeros = sum(1 for size, *_ in known if size == 0)
    where = f"{short(heat.rows[i], 60)}, {short(heat.columns[j], 60)}"
    return (
        f"{said}; the largest is {number(value)} ({where}); "
        f"{zeros or 'none'} of {plural(len(known), 'value')} {'is' if zeros == 1 else 'are'} zero."
    )
