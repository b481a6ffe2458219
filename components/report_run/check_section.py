"""What the templates of the checks need: findings by verdict, and of what they saw what fits.

Checks may be a project's own and show anything, so pictures, tables and examples are taken, the
worst verdict first, until their share of the page is used up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup, escape

from components.common.figures import Check, CheckFigures, Heat
from components.report_run import check_pictures, check_words
from components.report_run.formats import plain, short, title

IN_THE_REPORT, ALONE = 0.3, 0.7  # share of the page
_BYTES = {200: 300_000, 120: 200_000, 60: 100_000, 30: 40_000, 10: 0}  # by rows of long tables
_LEAST = 2_000  # bytes of a small picture
_CELL, _NAME = 80, 60  # characters


@dataclass(frozen=True)
class Table:
    """Rows of text; `total` is how many there were, `number` which columns hold numbers."""

    columns: list[str]
    number: list[bool]
    rows: list[list[str]]
    total: int


@dataclass(frozen=True)
class Example:
    """A sample: raw and network values by name, and its pictures with their names."""

    raw: list[tuple[str, str]]
    network: list[tuple[str, str]]
    images: list[tuple[str, Markup]]


@dataclass
class Shown:
    """A finding and what of it is shown.

    Attributes:
        name: In ids.
        left_out: Something was, for the page would be too large.
    """

    check: Check
    name: str
    curves: Markup = field(default_factory=Markup)
    heat: Markup = field(default_factory=Markup)
    heat_table: Table | None = None
    table: Table | None = None
    examples: list[Example] = field(default_factory=list)
    left_out: bool = False

    @property
    def evidence(self) -> bool:
        """Whether there is more to see than words."""
        seen = self.curves or self.heat or self.table or self.examples or self.left_out
        return bool(seen)


@dataclass(frozen=True)
class Group:
    """The findings of one verdict; `total` is how many there were."""

    verdict: str
    heading: str
    shown: list[Shown]
    total: int


def check_groups(seen: CheckFigures | None, *, share: float) -> Callable[[int], list[Group]]:
    """Return what makes the groups for so many rows of a long table.

    Args:
        seen: What the step recorded.
        share: Of the page's bytes that what the checks saw may take.
    """

    def groups(most: int) -> list[Group]:
        room = _Room(int(share * _BYTES[most]))
        made = []
        for verdict, heading in check_words.HEADINGS.items():
            found = [c for c in seen.checks if c.verdict == verdict] if seen else []
            if found:
                few = found[: min(most, 60)]
                shown = [_shown(c, f"{verdict}-{i}", room) for i, c in enumerate(few)]
                made.append(Group(verdict, heading, shown, len(found)))
        return made

    return groups


class _Room:
    """Bytes that are left."""

    def __init__(self, size: int) -> None:
        self.left = size

    def has(self, size: int) -> bool:
        """Take so many; False if there are not as many."""
        if size > self.left:
            return False
        self.left -= size
        return True


def _shown(check: Check, verdict: str, room: _Room) -> Shown:
    made = Shown(check, f"check-{verdict.replace('_', '-')}")
    if room.left < _LEAST:  # drawing what is thrown away takes seconds
        made.left_out = bool(check.curves or check.heat or check.table or check.samples)
        return made
    curves = check_pictures.curves(check, f"{made.name}-curves")
    if room.has(len(curves)):
        made.curves = curves
    heat = check_pictures.heat(check, f"{made.name}-heat")
    if check.heat is not None and heat:
        numbers = heat_table(check.heat)
        if room.has(len(heat) + sum(map(_size, numbers.rows)) + _size(numbers.columns)):
            made.heat, made.heat_table = heat, numbers
    if check.table:
        made.table = _fitting(table(check.table), room)
    made.examples = list(_examples(check, made.name, room))
    made.left_out = (
        bool(curves) != bool(made.curves)
        or bool(heat) != bool(made.heat)
        or bool(check.table) != bool(made.table)
        or len(made.examples) < len(check.samples)
    )
    return made


def _size(cells: Iterable[str]) -> int:
    return sum(len(escape(cell)) + 24 for cell in cells)


def _fitting(whole: Table, room: _Room) -> Table | None:
    """The first rows, as many as there is room for."""
    if not room.has(_size(whole.columns)):
        return None
    rows = []
    for row in whole.rows:
        if not room.has(_size(row)):
            break
        rows.append(row)
    return Table(whole.columns, whole.number, rows, whole.total) if rows else None


def table(rows: list[dict[str, str | float]]) -> Table:
    """Rows of named values as cells; a column that a row lacks is empty there."""
    names = list(dict.fromkeys(name for row in rows for name in row))[:12]
    number = [all(isinstance(r[n], float) for r in rows if n in r) for n in names]
    cells = [[_cell(row[n]) if n in row else "" for n in names] for row in rows]
    return Table([title(short(n, _NAME)) for n in names], number, cells, len(rows))


def heat_table(heat: Heat) -> Table:
    """The numbers behind a chart of values."""
    rows = [
        [short(name, _NAME), *("–" if v is None else plain(v) for v in values)]
        for name, values in zip(heat.rows, heat.values, strict=False)
    ]
    names = ["", *(short(name, _NAME) for name in heat.columns)]
    return Table(names, [False] + [True] * len(heat.columns), rows, len(heat.rows))


def _cell(value: str | float) -> str:
    return short(value, _CELL) if isinstance(value, str) else plain(value)


def _examples(check: Check, name: str, room: _Room) -> Iterable[Example]:
    for i, sample in enumerate(check.samples):
        images = [
            (short(word, _NAME), check_pictures.image(png, f"{name}-{i}-{j}", words=_of(word, i)))
            for j, (word, png) in enumerate(sample.images.items())
        ]
        made = Example(_pairs(sample.raw), _pairs(sample.network), [x for x in images if x[1]])
        words = [text for pair in (*made.raw, *made.network) for text in pair]
        if not room.has(_size(words) + sum(len(drawn) + 60 for _, drawn in made.images) + 300):
            return
        yield made


def _of(word: str, index: int) -> str:
    return f"{short(word, _NAME)} of example {index + 1}"


def _pairs(values: dict[str, Any]) -> list[tuple[str, str]]:
    return [(short(name, _NAME), short(value, 120)) for name, value in values.items()]
