"""Pictures of the data: how far columns moved, and small histograms now and before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from markupsafe import Markup

from components.common.data_figures import Bars, ColumnDrift, Drift
from components.report_run import data_words
from components.report_run.formats import fixed, percent, sentence, short
from components.report_run.svg import WIDE, Scale, line, path, picture, tag, text

CARD = 328  # pixels: a phone, or half a desktop's column
MOST_ROWS = 12  # of bars; the table holds the rest
MOST_CARDS = (6, 3)  # against the first reference, against another
MOST_BINS = 24  # of a small histogram; neighbours are put together
MOST_IN_CELL = 20
MOST_CATEGORIES = 7
LEAST = 0.001  # of the index that is written out beside a bar
CUT = 1.0  # of the population stability index: beyond it, bars are all as long
NULL = "null"  # the bin of rows without a value, the last one
TALL = 20  # units of a sparkline: whole numbers keep its path short
WORDS = {"steady": "steady", "warn": "warns", "block": "blocks", "off": "not judged"}
SHAPES = {
    "steady": "pass",
    "warn": "warn",
    "block": "fail",
    "off": "skipped",
}  # symbols of the page


def drift_bars(seen: Drift, name: str) -> Markup:
    """The columns that moved furthest, each with its own threshold."""
    rows = [c for c in seen.columns if c.psi is not None][:MOST_ROWS]
    if not rows:
        return Markup("")
    reach = [_finite(value) for c in rows for value in (c.psi, (c.threshold or 0.0) * 1.3)]
    longest = max([min(value, CUT) for value in reach] + [0.01])

    def draw(width: int) -> tuple[Markup, float]:
        wide = width == WIDE
        left, right = (220, 540) if wide else (0, width)
        height = 26 if wide else 40
        across = Scale(0, longest, left, right)
        parts = []
        for i, row in enumerate(rows):
            y = 4 + height * i + (7 if wide else 22)
            words = y + 10 if wide else y - 7
            parts.append(text(0, words, short(row.column, 30 if wide else 24), kind="name"))
            parts.append(_bar(row, across, y, height=12))
            parts.append(_level(row, x=560 if wide else width - 118, y=words))
        return Markup("").join(parts), 8 + height * len(rows)

    return picture(
        name,
        title="The columns that moved furthest",
        description=data_words.drifted(seen),
        draw=draw,
    )


def is_cut(seen: Drift) -> bool:
    """Whether a bar or a mark of `drift_bars` would be longer than it is drawn."""
    rows = [c for c in seen.columns if c.psi is not None][:MOST_ROWS]
    return any(max(_finite(c.psi), _finite(c.threshold)) > CUT for c in rows)


def _bar(row: ColumnDrift, across: Scale, y: float, *, height: float) -> Markup:
    """A bar from zero, and a mark at the column's own threshold."""
    size = across(_finite(row.psi, beyond=CUT)) - across.start
    kind = f"bar level-{row.level}"
    parts = [
        tag("rect", x=across.start, y=y, width=max(size, 1.0), height=height, rx=2, class_=kind)
    ]
    if row.threshold is not None and math.isfinite(row.threshold):
        x = across(row.threshold)
        parts.append(line(x, y - 3, x, y + height + 3, "limit"))
    return Markup("").join(parts)


def _level(row: ColumnDrift, *, x: float, y: float) -> Markup:
    """The level as a shape, the index as a number, the level as a word."""
    shape = SHAPES[row.level]
    symbol = tag("use", href=f"#s-{shape}", x=x, y=y - 11, width=13, height=13)
    amount = fixed(row.psi or 0.0, 3) if (row.psi or 0.0) >= LEAST else f"below {LEAST}"
    amount += f" {WORDS[row.level]}"
    words = text(x + 19, y, amount, kind="value")
    return Markup("").join([tag("g", symbol, class_=f"is-{shape}"), words])


def column_card(seen: ColumnDrift, name: str) -> Markup:
    """A column's histogram, now and before; empty where no bins were kept."""
    bars = few_bins(seen)
    if not bars.labels:
        return Markup("")
    ordered = seen.kind in ("number", "time")
    drawn, height = _histogram(bars) if ordered else _categories(bars)
    said = _highest(bars) if ordered else _shares(bars)
    return picture(
        name,
        title=f"{seen.column}, now and before",
        description=said,
        draw=lambda width: (drawn, height),
        widths=(CARD,),
    )


def _histogram(bars: Bars) -> tuple[Markup, float]:
    left, right, top, bottom = 52.0, CARD - 4.0, 12.0, 104.0
    most = max(bars.now + bars.before + [1e-9])
    up, across = Scale(0, most, bottom, top), Scale(0, len(bars.labels), left, right)
    parts = [line(left, top, right, top, "grid")]
    parts.append(text(left - 8, top + 4, percent(most), anchor="end", kind="tick"))
    wide = (right - left) / len(bars.labels)
    boxes = [
        f"M{across(i) + 0.5:.1f} {bottom:.0f}V{up(share):.1f}h{wide - 1:.1f}V{bottom:.0f}z"
        for i, share in enumerate(bars.now)
    ]
    parts.append(tag("path", d="".join(boxes), class_="now"))
    if bars.before:
        steps = [(across(i + d), up(share)) for i, share in enumerate(bars.before) for d in (0, 1)]
        parts.append(path([(left, bottom), *steps, (right, bottom)], "before"))
    parts.append(line(left, bottom, right, bottom, "axis"))
    ends = bars.labels[:-1] if bars.labels[-1] == NULL and len(bars.labels) > 1 else bars.labels
    low, high = ends[0].split(" to ")[0], ends[-1].split(" to ")[-1]
    high += f", {NULL}" if ends is not bars.labels else ""
    parts.append(text(left, bottom + 16, short(low, 19), kind="tick"))
    if len(bars.labels) > 1 or low != high:
        parts.append(text(right, bottom + 16, short(high, 19), anchor="end", kind="tick"))
    return Markup("").join(parts), bottom + 22


def _categories(bars: Bars) -> tuple[Markup, float]:
    left, right = 104.0, 200.0
    across = Scale(0, max(bars.now + bars.before + [1e-9]), left, right)
    parts = []
    for i, (label, now) in enumerate(zip(bars.labels, bars.now, strict=True)):
        y = 4.0 + 22 * i
        parts.append(text(0, y + 11, short(label, 13), kind="tick"))
        width = max(across(now) - left, 1.0)
        parts.append(tag("rect", x=left, y=y + 1, width=width, height=12, class_="now"))
        said = percent(now)
        if bars.before:
            x = across(bars.before[i])
            parts.append(line(x, y - 2, x, y + 16, "before"))
            said += f", was {percent(bars.before[i])}"
        parts.append(text(CARD, y + 11, said, anchor="end", kind="tick"))
    return Markup("").join(parts), 4.0 + 22 * len(bars.labels)


def _highest(bars: Bars) -> str:
    """Where most rows are, now and before."""
    parts = []
    for word, shares in (("now", bars.now), ("before", bars.before)):
        if shares:
            i = shares.index(max(shares))
            parts.append(f"{word} most rows are in {bars.labels[i]} ({percent(shares[i])})")
    return sentence("; ".join(parts))


def _shares(bars: Bars) -> str:
    """Every category with its share."""
    before: Sequence[float | None] = bars.before or [None] * len(bars.now)
    return sentence(
        "; ".join(
            f"{label} {percent(now)}" + (f", was {percent(was)}" if was is not None else "")
            for label, now, was in zip(bars.labels, bars.now, before, strict=True)
        )
    )


def spark(bars: Bars, kind: str) -> Markup:
    """A histogram in a table's cell; the numbers beside it speak, so it is silent itself."""
    apart = kind not in ("number", "time")
    bars = most_frequent(bars) if apart else together(bars, MOST_IN_CELL)
    if not bars.labels:
        return Markup("–")
    most = max(bars.now + bars.before + [1e-9])
    levels = [TALL - round(TALL * share / most) for share in bars.now]
    steps = [f"V{y}h.8V{TALL}h.2" if apart else f"V{y}h1" for y in levels]
    parts = [tag("path", d=f"M0 {TALL}{''.join(steps)}V{TALL}z", class_="now")]
    if bars.before:
        were = [TALL - round(TALL * share / most) for share in bars.before]
        outline = "".join(f"V{y}h1" if y != last else "h1" for last, y in pairwise([TALL, *were]))
        ticks = "".join(f"M{i} {y}h.8" for i, y in enumerate(were))
        d = ticks if apart else f"M0 {TALL}{outline}V{TALL}"
        parts.append(tag("path", d=d, class_="before"))
    return tag(
        "svg",
        *parts,
        class_="spark",
        viewBox=f"0 0 {len(bars.labels)} {TALL}",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def few_bins(seen: ColumnDrift) -> Bars:
    """The bins that a column's picture shows."""
    if seen.kind in ("number", "time"):
        return together(seen.bars, MOST_BINS)
    return most_frequent(seen.bars)


def together(bars: Bars, most: int) -> Bars:
    """Put neighbouring bins together until there are at most so many; drop what does not match.

    Nulls stay apart, and are left out where there are none.
    """
    bars = _sound(bars)
    if bars.labels and bars.labels[-1] == NULL:
        ends = [shares[-1] for shares in (bars.now, bars.before) if shares]
        held = Bars(labels=bars.labels[:-1], now=bars.now[:-1], before=bars.before[:-1])
        if not held.labels:
            return bars
        rest = together(held, most)
        if max(ends) < LEAST:
            return rest
        return Bars(
            labels=[*rest.labels, NULL],
            now=[*rest.now, bars.now[-1]],
            before=[*rest.before, *bars.before[-1:]],
        )
    if len(bars.labels) <= most:
        return bars
    each = math.ceil(len(bars.labels) / most)  # the same for all, lest some stand out
    edges = [*range(0, len(bars.labels), each), len(bars.labels)]
    spans = list(pairwise(edges))
    return Bars(
        labels=[
            f"{bars.labels[a].split(' to ')[0]} to {bars.labels[b - 1].split(' to ')[-1]}"
            for a, b in spans
        ],
        now=[sum(bars.now[a:b]) for a, b in spans],
        before=[sum(bars.before[a:b]) for a, b in spans] if bars.before else [],
    )


def most_frequent(bars: Bars) -> Bars:
    """The categories that are most frequent now or before, in order; the others in one."""
    bars = _sound(bars)
    if len(bars.labels) <= MOST_CATEGORIES:
        return bars
    before = bars.before or [0.0] * len(bars.now)
    order = sorted(range(len(bars.now)), key=lambda i: -max(bars.now[i], before[i]))
    kept = sorted(order[: MOST_CATEGORIES - 1], key=order.index)
    rest = order[MOST_CATEGORIES - 1 :]
    return Bars(
        labels=[bars.labels[i] for i in kept] + [f"{len(rest)} others"],
        now=[bars.now[i] for i in kept] + [sum(bars.now[i] for i in rest)],
        before=[before[i] for i in kept] + [sum(before[i] for i in rest)] if bars.before else [],
    )


def _sound(bars: Bars) -> Bars:
    """Bins whose labels and shares match in number, every share a number."""
    length = min(len(bars.labels), len(bars.now))
    before = bars.before if len(bars.before) == length else []
    return Bars(
        labels=bars.labels[:length],
        now=[_finite(share) for share in bars.now[:length]],
        before=[_finite(share) for share in before],
    )


def _finite(value: float | None, *, beyond: float = 0.0) -> float:
    """The value, where it is a number; a share below zero is none."""
    return max(value, 0.0) if value is not None and math.isfinite(value) else beyond
