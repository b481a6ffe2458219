"""From what the checks found to what is recorded: finite, and small whatever the checks hold.

A check may be the user's own and say anything; a record is read by people, by the report and at
every later run, so it stays below `LARGEST`. What passed gives way before what did not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from components.check_training.pixels import png_of
from components.common.figures import Check, CheckFigures, Heat, Sample

if TYPE_CHECKING:
    from training_core.checks.contract import Curve, Finding

LARGEST = 200_000  # bytes of the record
PLANNED = "batch_size_and_speed"  # measures the seconds of the planned training


@dataclass(frozen=True)
class Bounds:
    """How much of a finding is kept.

    Attributes:
        points: Of all curves together.
        rows: Of a table.
        cells: Rows, and columns, of a chart of values.
        samples: Examples to look at.
        side: Pixels of a picture's longer side.
        text: Characters of a message.
    """

    points: int
    rows: int
    cells: int
    samples: int
    side: int
    text: int


_WHOLE = Bounds(points=480, rows=60, cells=32, samples=8, side=48, text=1000)
_HALF = Bounds(points=160, rows=30, cells=20, samples=4, side=32, text=600)
_LITTLE = Bounds(points=60, rows=10, cells=12, samples=2, side=24, text=400)
_WORDS = Bounds(points=0, rows=0, cells=0, samples=0, side=0, text=300)
# Of what is well, and of what is not.
_STEPS = (
    (_WHOLE, _WHOLE), (_HALF, _WHOLE), (_LITTLE, _WHOLE), (_LITTLE, _HALF), (_WORDS, _HALF),
    (_WORDS, _LITTLE), (_WORDS, _WORDS),
)  # fmt: skip
_CURVES, _COLUMNS, _VALUES, _IMAGES = 24, 10, 24, 4  # of a finding, a table, a sample
_NAME, _CELL = 80, 200  # characters


def figures_of(findings: Sequence[Finding]) -> CheckFigures:
    """Return what is recorded of the findings, as much of it as fits."""
    for well, ill in _STEPS:
        figures = CheckFigures(
            checks=[_check(f, ill if f.verdict in ("fail", "warn") else well) for f in findings],
            seconds=round(sum(finding.seconds for finding in findings), 3),
            planned_seconds=_planned_seconds(findings),
        )
        if len(figures.model_dump_json(indent=1)) < LARGEST:
            break
    return figures


def _planned_seconds(findings: Sequence[Finding]) -> float | None:
    found = next((f for f in findings if f.name == PLANNED), None)
    return _finite(found.measured) if found is not None else None


def _check(finding: Finding, bounds: Bounds) -> Check:
    return Check(
        name=_short(finding.name, _NAME),
        verdict=finding.verdict,
        measured=_finite(finding.measured),
        limit=_finite(finding.limit),
        message=_short(finding.message, bounds.text),
        advice=_short(finding.advice, bounds.text),
        curves=_curves(finding.curves, bounds.points),
        table=[_row(row) for row in finding.table[: bounds.rows]],
        heat=_heat(finding, bounds.cells),
        samples=[_sample(s, bounds) for s in finding.samples[: bounds.samples]],
        seconds=round(finding.seconds, 3),
    )


def _curves(curves: dict[str, Curve], points: int) -> dict[str, list[tuple[int, float]]]:
    """Some curves, each thinned to its share of the points; its ends stay."""
    if not points:
        return {}
    chosen = list(curves.items())[:_CURVES]
    return {_short(name, _NAME): _thinned(curve, points // len(chosen)) for name, curve in chosen}


def _thinned(curve: Curve, most: int) -> list[tuple[int, float]]:
    finite = [(step, value) for step, value in curve if math.isfinite(value)]
    last = len(finite) - 1
    if len(finite) > most:
        places = dict.fromkeys(round(i * last / max(1, most - 1)) for i in range(most))
        finite = [finite[place] for place in places]
    return [(int(step), _rounded(value)) for step, value in finite]


def _row(row: dict[str, Any]) -> dict[str, str | float]:
    return {_short(name, _NAME): _cell(value) for name, value in list(row.items())[:_COLUMNS]}


def _cell(value: Any) -> str | float:
    """A number stays one; JSON has no others than finite ones, and a yes is no 1."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    finite = None if isinstance(value, str) else _finite(value)
    return _short(value, _CELL) if finite is None else finite


def _heat(finding: Finding, cells: int) -> Heat | None:
    heat = finding.heat
    if heat is None or not cells:
        return None
    return Heat(
        rows=[_short(name, _NAME) for name in heat.rows[:cells]],
        columns=[_short(name, _NAME) for name in heat.columns[:cells]],
        values=[[_finite(value) for value in row[:cells]] for row in heat.values[:cells]],
    )


def _sample(sample: Any, bounds: Bounds) -> Sample:
    images = list(sample.images.items())[:_IMAGES]
    packed = {_short(name, _NAME): png_of(pixels, side=bounds.side) for name, pixels in images}
    return Sample(
        raw=_texts(sample.raw),
        network=_texts(sample.network),
        images={name: png for name, png in packed.items() if png},
    )


def _texts(values: dict[str, Any]) -> dict[str, str]:
    return {_short(k, _NAME): _short(v, _CELL) for k, v in list(values.items())[:_VALUES]}


def _short(value: Any, length: int) -> str:
    text = str(value).encode(errors="replace").decode()  # JSON holds no lone surrogates
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def _finite(value: Any) -> float | None:
    """A number of any kind, rounded; None where there is none."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return _rounded(number) if math.isfinite(number) else None


def _rounded(value: float) -> float:
    """Six significant digits, in half the bytes."""
    return float(f"{float(value):.6g}")
