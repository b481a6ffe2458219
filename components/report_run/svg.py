"""The least that pictures need: escaped tags, scales with nice ticks, axes, a frame with words.

Colours are classes, so the page's style sheet gives them for light, dark and print.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from components.report_run.formats import clean, fixed, number

WIDE, NARROW = 720, 328  # the text column of a desktop; a phone of 360 px less its padding
CHARACTER = 6.6  # mean width of a character at 12 px; system fonts differ by a tenth

Points = list[tuple[float, float]]


def tag(name: str, /, *content: str, **attributes: str | float) -> Markup:
    """Return one element; `class_` is class, other underscores are hyphens; text is escaped."""
    words = (
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _value(value))
        for key, value in attributes.items()
    )
    inside = Markup("").join(c if isinstance(c, Markup) else clean(c) for c in content)
    return Markup("<{}{}>{}</{}>").format(name, Markup("").join(words), inside, name)


def _value(value: str | float) -> str:
    if isinstance(value, str):
        return clean(value)
    return f"{value:.1f}".removesuffix(".0")


def text(x: float, y: float, words: str, *, anchor: str = "start", kind: str = "") -> Markup:
    return tag("text", words, x=x, y=y, text_anchor=anchor, class_=kind)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def path(points: Points, kind: str) -> Markup:
    """A polyline through the points, in pixels."""
    return tag("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), class_=kind)


def marker(x: float, y: float, kind: str, *, radius: float = 4.5) -> Markup:
    """A circle, a square or a diamond: shape speaks where colour cannot."""
    shape = kind.split()[0]
    if shape == "circle":
        return tag("circle", cx=x, cy=y, r=radius, class_=kind)
    reach = radius * (0.9 if shape == "square" else 1.3)
    corners = [(x - reach, y), (x, y - reach), (x + reach, y), (x, y + reach)]
    if shape == "square":
        corners = [(x + i * reach, y + j * reach) for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    return tag("polygon", points=" ".join(f"{a:.1f},{b:.1f}" for a, b in corners), class_=kind)


def picture(
    name: str,
    *,
    title: str,
    description: str,
    draw: Callable[[int], tuple[Markup, float]],
    widths: tuple[int, ...] = (WIDE, NARROW),
) -> Markup:
    """Draw the same picture for each width; the style sheet shows the one that fits.

    Args:
        name: Unique on the page; letters, digits and hyphens.
        title: Its name, for those who hear the page.
        description: What it shows, in a sentence.
        draw: Width in pixels to content and height.
        widths: One width: shown everywhere.
    """
    drawn = []
    for width in widths:
        content, height = draw(width)
        ident = f"{name}-{width}"
        variant = "" if len(widths) == 1 else " wide" if width == WIDE else " narrow"
        drawn.append(
            tag(
                "svg",
                tag("title", title, id=f"{ident}-t"),
                tag("desc", description, id=f"{ident}-d"),
                content,
                class_=f"chart{variant}",
                viewBox=f"0 0 {width} {math.ceil(height)}",
                width=width,
                height=math.ceil(height),
                role="img",
                aria_labelledby=f"{ident}-t {ident}-d",
            )
        )
    return Markup("").join(drawn)


@dataclass(frozen=True)
class Scale:
    """Maps values to pixels, linearly or by their logarithm."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + min(1.0, max(0.0, share)) * (self.stop - self.start)

    def ticks(self, wanted: int = 5) -> list[tuple[float, str]]:
        """Nice values inside the range, each with its words."""
        if self.log:
            return self._log_ticks(wanted)
        values, step = nice_ticks(self.low, self.high, wanted)
        places = max(0, -math.floor(math.log10(step) + 1e-9)) if step else 0
        if step >= 1e6 or 0 < step < 1e-6:
            return [(value, number(value)) for value in values]
        return [(value, fixed(value, places)) for value in values]

    def _log_ticks(self, wanted: int) -> list[tuple[float, str]]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        steps = (1, 2, 5) if self.high / self.low < 300 else (1,)
        every = 1 if len(steps) > 1 else max(1, math.ceil((last - first) / wanted))
        values = [m * 10.0**e for e in range(first, last + 1, every) for m in steps]
        inside = [v for v in values if self.low * 0.999 <= v <= self.high * 1.001]
        return [(v, number(v, 1)) for v in inside]


def nice_ticks(low: float, high: float, wanted: int) -> tuple[list[float], float]:
    """Multiples of 1, 2 or 5 times a power of ten inside [low, high], and their distance."""
    if not (math.isfinite(low) and math.isfinite(high) and high > low):
        return [low], 0.0
    raw = (high - low) / max(1, wanted)
    power = 10.0 ** math.floor(math.log10(raw))
    step = min((m * power for m in (1, 2, 5, 10)), key=lambda s: abs((high - low) / s - wanted))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)], step


def x_axis(scale: Scale, *, bottom: float, words: str, ticks: int, grid: Points) -> Markup:
    """Values along the bottom, what they measure below; `grid`: from where to where lines go."""
    middle = (scale.start + scale.stop) / 2
    parts = [line(scale.start, bottom, scale.stop, bottom, "axis")]
    for value, label in scale.ticks(ticks):
        x = scale(value)
        parts.extend(line(x, upper, x, lower, "grid") for upper, lower in grid)
        parts.append(text(x, bottom + 16, label, anchor="middle", kind="tick"))
    parts.append(text(middle, bottom + 34, words, anchor="middle", kind="label"))
    return Markup("").join(parts)


def y_axis(scale: Scale, *, left: float, right: float, words: str, ticks: int = 5) -> Markup:
    """Horizontal grid lines, their values at the left, what they measure above."""
    parts = []
    for value, label in scale.ticks(ticks):
        y = scale(value)
        parts.append(line(left, y, right, y, "grid"))
        parts.append(text(left - 8, y + 4, label, anchor="end", kind="tick"))
    parts.append(text(0, scale.stop - 14, words, kind="label"))
    return Markup("").join(parts)


def legend(entries: list[tuple[str, Markup]], *, width: float, top: float) -> tuple[Markup, float]:
    """Rows of sample and words, wrapped to the width; returns the y below them.

    Args:
        entries: Words, and a sample drawn around (12, 0).
        width: Pixels there are.
        top: Where the first row begins.
    """
    parts, x, y = [], 0.0, top + 12
    for words, sample in entries:
        needed = 30 + CHARACTER * 13 / 12 * len(words) + 18  # keys are written at 13 px
        if x and x + needed > width:
            x, y = 0.0, y + 20
        parts.append(tag("g", sample, transform=f"translate({x:.0f} {y - 4:.0f})"))
        parts.append(text(x + 30, y, words, kind="key"))
        x += needed
    return Markup("").join(parts), y + 8 if entries else top


def tiny_bar(share: float) -> Markup:
    """A bar in a table's cell; the number is beside it, so it is silent for screen readers."""
    length = 96 * min(1.0, max(0.0, share)) if math.isfinite(share) else 0.0
    return tag(
        "svg",
        tag("rect", x=0, y=0, width=96, height=8, rx=2, class_="track"),
        tag("rect", x=0, y=0, width=max(length, 1.0), height=8, rx=2, class_="fill"),
        class_="tiny",
        viewBox="0 0 96 8",
        width=96,
        height=8,
        aria_hidden="true",
    )


def finite(points: Points) -> Points:
    return [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]


def padded(low: float, high: float) -> tuple[float, float]:
    """The range with a little air, wider where it is a single value."""
    if high <= low:
        air = abs(low) * 0.1 or 1.0
        return low - air, high + air
    air = (high - low) * 0.06
    floor = 0.0 if 0 <= low <= (high - low) * 0.2 else low - air
    return floor, high + air


def thinned(points: Points, most: int) -> Points:
    """Means of neighbours, so that at most so many points are left."""
    points = finite(points)
    if len(points) <= most:
        return points
    edges = [round(i * len(points) / most) for i in range(most + 1)]
    groups = [points[a:b] for a, b in pairwise(edges)]
    return [(sum(x for x, _ in g) / len(g), sum(y for _, y in g) / len(g)) for g in groups]
