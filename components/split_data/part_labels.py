"""Which labels each part has, and which it must have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb

from components.common.data_settings import SplitSettings
from components.common.labels import Label
from components.common.rows import PARTS
from components.common.tables import text
from components.common.targets import TARGET, lost_words, shown_of
from training_core.errors import StoppedByGate

if TYPE_CHECKING:
    from training_core.checks.lost_labels import LostLabel

_NAMED = 5


@dataclass(frozen=True)
class PartLabels:
    """The labels of one part.

    Attributes:
        classes: Rows of each class; of a multilabel task rows of each answer, `NAME yes` and
            `NAME no`; of the other kinds none.
        figures: What is told of them: of binary and multilabel tasks the share of yes, of classes
            their shares, of numbers the mean, of sequences the mean number of tokens.
        same: Whether all labels are equal.
    """

    classes: dict[str, int]
    figures: dict[str, float]
    same: bool


def labels_of(
    connection: duckdb.DuckDBPyConnection, source: str, part: str, *, side: str, label: Label
) -> PartLabels:
    """Count the labels of a part.

    Args:
        source: A view with the columns `side`, `TARGET` and those of `shown_of`.
    """
    where = f"{source} WHERE {side} = {text(part)}"
    if label.has_classes:
        found = connection.execute(
            f"SELECT {TARGET}, count(*) FROM {where} GROUP BY 1 ORDER BY 1"
        ).fetchall()
        classes = {label.name_of(index): int(rows) for index, rows in found}
        every = sum(classes.values())
        if label.kind == "binary":
            figures = {"yes": sum(index * rows for index, rows in found) / max(1, every)}
        else:
            figures = {name: rows / every for name, rows in classes.items()}
        return PartLabels(classes, figures, len(classes) < 2)
    if label.kind == "multilabel":
        return _of_many(connection, where, label)
    mean, same = connection.execute(
        f"SELECT avg({TARGET}), min({TARGET}) = max({TARGET}) FROM {where}"
    ).fetchall()[0]
    name = "tokens" if label.kind == "sequence" else "mean"
    return PartLabels({}, {name: float(mean)}, bool(same))


def _of_many(connection: duckdb.DuckDBPyConnection, where: str, label: Label) -> PartLabels:
    asked = ", ".join(f"count(*) FILTER ({shown_of(i)} > 0.5)" for i in range(len(label.columns)))
    rows, *yes = connection.execute(f"SELECT count(*), {asked} FROM {where}").fetchall()[0]
    classes: dict[str, int] = {}
    figures: dict[str, float] = {}
    for name, count in zip(label.columns, yes, strict=True):
        classes |= {f"{name} yes": int(count), f"{name} no": int(rows - count)}
        figures[name] = count / max(1, rows)
    return PartLabels(classes, figures, False)


def refuse_missing(
    parts: Mapping[str, PartLabels],
    label: Label,
    split: SplitSettings,
    *,
    lost: Sequence[LostLabel] = (),
) -> list[str]:
    """Stop where a part lacks a class that it needs.

    Train needs every class that there is, and every class that the task names: what is never shown
    is never learned. Validation and holdout need those that have `split.rare_class` rows or more
    in all parts together: of rarer ones a part may have none by chance. A binary task needs both
    classes in each part, whatever their number. Numbers and sequences have no classes; of numbers
    train needs two that differ.

    Args:
        parts: By name.
        label: Of the task.
        split: Its `rare_class`.
        lost: Values that may be classes, written otherwise.

    Returns:
        In words, which rare classes a part lacks.
    """
    if label.kind == "binary":
        for part in PARTS:
            if parts[part].same:
                raise StoppedByGate(
                    f"the {part} part has labels of one class only "
                    f"({sum(parts[part].classes.values())} rows)",
                    hint="check the label, or make the parts larger (split.holdout, "
                    "split.validation)",
                )
        return []
    if label.kind == "regression" and parts["train"].same:
        raise StoppedByGate(
            f"all labels of the train part are {parts['train'].figures['mean']:g}",
            hint=f"look at the column {label.columns[0]!r}: there is nothing to learn from it",
        )
    everywhere = _rows_of_each(parts, label)
    rare = []
    for part in PARTS:
        lacking = [name for name in everywhere if not parts[part].classes.get(name)]
        if part != "train":
            few = [name for name in lacking if everywhere[name] < split.rare_class]
            lacking = [name for name in lacking if name not in few]
            rare += [f"{part} has no row of {_named(few, everywhere)}"] * bool(few)
        if lacking:
            raise _fault(part, lacking, everywhere, label, split, lost)
    return rare


def _rows_of_each(parts: Mapping[str, PartLabels], label: Label) -> dict[str, int]:
    """Rows of each class in all parts together; 0 of one that the task names in vain."""
    everywhere = dict.fromkeys(label.classes if label.kind == "multiclass" else (), 0)
    for part in parts.values():
        for name, rows in part.classes.items():
            everywhere[name] = everywhere.get(name, 0) + rows
    return everywhere


def _fault(
    part: str,
    lacking: list[str],
    everywhere: dict[str, int],
    label: Label,
    split: SplitSettings,
    lost: Sequence[LostLabel],
) -> StoppedByGate:
    what = "answer" if label.kind == "multilabel" else "class"
    said = f"the {part} part has no row of the {what} {_named(lacking, everywhere)}"
    if not all(everywhere[name] for name in lacking):
        where = f"{label.owner}.{'labels' if label.kind == 'multilabel' else 'classes'}"
        hint = f"ask where its rows went, or take it out of {where}"
        if written := lost_words(lost, label):
            hint = f"is it written otherwise? {written}; else {hint}"
    elif part == "train":
        hint = "what is never shown is never learned: bring more of its rows, or make the other "
        hint += "parts smaller (split.holdout, split.validation)"
    else:
        hint = f"make the part larger (split.{part}), or divide otherwise (split.by); a {what} "
        hint += f"with fewer than {split.rare_class} rows (split.rare_class) may be missing"
    return StoppedByGate(said, hint=hint)


def _named(names: list[str], everywhere: dict[str, int]) -> str:
    told = [f"{name!r} ({everywhere[name]} rows in all)" for name in names[:_NAMED]]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(told) + more
