"""The pictures of a backtest: each policy's line over the periods."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

from markupsafe import Markup

from components.report_run.svg import (
    CHARACTER,
    WIDE,
    Scale,
    legend,
    line,
    marker,
    padded,
    path,
    picture,
    text,
    y_axis,
)
from pipelines.backtest.policies import ORACLE
from pipelines.backtest.result import BacktestResult


class Look(NamedTuple):
    """How a policy's line is told from the others, also without colours."""

    colour: str
    dash: str
    shape: str
    full: bool


LOOKS = {
    "never": Look("--other", "none", "square", True),
    "newest": Look("--champion", "6 4", "diamond", False),
    "point": Look("--good", "2 4", "circle", False),
    "ours": Look("--challenger", "none", "circle", True),
    "drift": Look("--bad", "8 3 2 3", "square", False),
    ORACLE: Look("--soft", "1 3", "diamond", True),
}
_LEFT = 60


def metric_by_period(found: BacktestResult) -> Markup:
    """The metric of each period, by policy."""
    name = found.metric.replace("_", " ")
    values = {
        each.policy: [period.metric[each.policy] for period in _scored(found)]
        for each in found.policies
    }
    return _lines(
        "metric",
        found,
        values,
        title=f"{name} by period",
        description=f"The mean {name} of each period by policy; lower is better.",
        words=f"mean {name} of the period (lower is better)",
    )


def cumulative_cost(found: BacktestResult) -> Markup:
    """How far each policy has fallen behind the oracle, over all rows so far."""
    name = found.metric.replace("_", " ")
    rows = list(accumulate(period.rows for period in _scored(found)))
    values = {}
    for each in found.policies:
        if each.policy != ORACLE:
            lost = accumulate(
                period.rows * (period.metric[each.policy] - period.metric[ORACLE])
                for period in _scored(found)
            )
            values[each.policy] = [total / rows[-1] for total in lost]
    return _lines(
        "cost",
        found,
        values,
        title="What was given away",
        description=f"The {name} given away to the oracle so far, by policy, as a share of all "
        "rows of the backtest.",
        words=f"{name} given away to the oracle so far",
        from_zero=True,
    )


def cumulative_hours(found: BacktestResult) -> Markup:
    """Hours of the pipeline's steps so far."""
    values = {
        each.policy: list(
            accumulate(each.hours_by_date.get(period.start, 0.0) for period in _scored(found))
        )
        for each in found.policies
        if each.hours is not None
    }
    return _lines(
        "hours",
        found,
        values,
        title="Hours",
        description="Hours that the steps of each policy took so far.",
        words="hours of the steps so far",
        from_zero=True,
    )


def _scored(found: BacktestResult) -> list[NamedPeriod]:
    return [
        NamedPeriod(period.start, period.rows, period.metric)
        for period in found.periods
        if period.metric
    ]


class NamedPeriod(NamedTuple):
    """What the pictures need of a period."""

    start: str
    rows: int
    metric: dict[str, float]


def _lines(
    ident: str,
    found: BacktestResult,
    values: dict[str, list[float]],
    *,
    title: str,
    description: str,
    words: str,
    from_zero: bool = False,
) -> Markup:
    names = [period.start for period in _scored(found)]
    every = [value for line_ in values.values() for value in line_]
    if not every:
        return Markup("")
    low, high = padded(0.0 if from_zero else min(every), max(every))
    dots = len(names) <= 40

    def draw(width: int) -> tuple[Markup, float]:
        samples = [(name, _sample(name)) for name in values]
        keys, below = legend(samples, width=width, top=0)
        top = below + 26
        bottom = top + (230 if width == WIDE else 190)
        across = Scale(0, max(1, len(names) - 1), _LEFT + 8, width - 36)
        up = Scale(low, high, bottom, top)
        parts = [keys, y_axis(up, left=_LEFT, right=width - 12, words=words)]
        parts.append(line(_LEFT, bottom, width - 12, bottom, "axis"))
        room = CHARACTER * 10 + 14
        skip = max(1, -(-int(room * len(names)) // (width - _LEFT)))
        for place, name in enumerate(names):
            if place % skip == 0:
                parts.append(text(across(place), bottom + 16, name, anchor="middle", kind="tick"))
        for name, found_values in values.items():
            pixels = [(across(place), up(value)) for place, value in enumerate(found_values)]
            parts.append(path(pixels, f"line p-{name}"))
            if dots:
                look = LOOKS[name]
                parts.extend(marker(x, y, f"{look.shape} d-{name}", radius=3.5) for x, y in pixels)
        return Markup("").join(parts), bottom + 26

    return picture(f"backtest-{ident}", title=title, description=description, draw=draw)


def _sample(name: str) -> Markup:
    look = LOOKS[name]
    parts = [line(0, 0, 24, 0, f"line p-{name}")]
    parts.append(marker(12, 0, f"{look.shape} d-{name}", radius=3.5))
    return Markup("").join(parts)
