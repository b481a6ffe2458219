"""Pictures of what a check saw: its curves, its chart of values, its examples."""

from __future__ import annotations

import base64
import binascii
import struct

from markupsafe import Markup

from components.common.figures import Check
from components.report_run.charts import SQUARE, Series, line_chart
from components.report_run.formats import number, plural, short, title
from components.report_run.heat import heat_chart
from components.report_run.svg import NARROW, WIDE, Points, finite, tag, thinned

MOST_POINTS = 80
NAMED = 8  # curves that can be told apart; more are a bundle
_PNG = b"\x89PNG\r\n\x1a\n"
_SHOWN, _LARGEST = 112, 256  # pixels of a picture's longer side: on the page, in the record


def curves(check: Check, name: str) -> Markup:
    """All curves of a check in one picture; empty where there are none."""
    known = [(label, finite([(float(x), y) for x, y in c])) for label, c in check.curves.items()]
    known = [(label, points) for label, points in known if points]
    bundle = len(known) > NAMED
    if bundle:
        few = [thinned(points, MOST_POINTS // 4) for _, points in known]
        words = f"{len(known)} curves, each a thin line"
        series = [Series(words if not i else "", c, "line thin") for i, c in enumerate(few)]
    else:
        series = [_series(i, label, points) for i, (label, points) in enumerate(known)]
    said = "; ".join(_from_to(label, points) for label, points in known[:NAMED])
    if bundle:
        said += f"; and {len(known) - NAMED} more"
    return line_chart(
        name,
        title=f"{title(short(check.name, 80))}: {plural(len(known), 'curve')}",
        description=said + ".",
        series=series,
        x_words="step",
        y_words="",
        widths=(WIDE, NARROW) if check.verdict in ("fail", "warn") else (SQUARE,),
    )


def _series(index: int, label: str, points: Points) -> Series:
    few = thinned(points, MOST_POINTS)
    dots = "circle challenger" if len(few) == 1 else ""
    return Series(title(short(label, 40)), few, f"line series-{index}", dots)


def _from_to(label: str, points: Points) -> str:
    return f"{title(short(label, 40))}: from {number(points[0][1])} to {number(points[-1][1])}"


def heat(check: Check, name: str) -> Markup:
    """The chart of values of a check; empty where there is none."""
    if check.heat is None:
        return Markup("")
    words = f"{title(short(check.name, 80))}: values by row and column"
    return heat_chart(name, check.heat, title=words)


def image(png: str, name: str, *, words: str) -> Markup:
    """A small picture, each pixel a square; empty where it is no PNG, or a large one."""
    try:
        content = base64.b64decode(png, validate=True)
        width, height = struct.unpack(">II", content[16:24])
    except (binascii.Error, struct.error, ValueError):
        return Markup("")
    if not content.startswith(_PNG) or not (0 < width <= _LARGEST and 0 < height <= _LARGEST):
        return Markup("")
    larger = max(1, _SHOWN // max(width, height))
    return tag(
        "svg",
        tag("title", words, id=f"{name}-t"),
        tag("desc", f"{width} by {height} pixels, {larger} times as large.", id=f"{name}-d"),
        tag("image", href=f"data:image/png;base64,{png}", width=width, height=height),
        class_="pixels",
        viewBox=f"0 0 {width} {height}",
        width=width * larger,
        height=height * larger,
        role="img",
        aria_labelledby=f"{name}-t {name}-d",
    )
