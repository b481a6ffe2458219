"""How rows are divided into train, validation and holdout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

import duckdb

from components.common.tables import quoted
from pipelines.init.columns import Column
from pipelines.init.label import Label
from pipelines.init.naming import names_an_entity

SHARE = 0.15  # of rows, for each of holdout and validation, where it is not by time
_LEAST_SPAN = 10  # days below which there is no time to speak of
_LEAST_CLASS = 50  # rows of the rarer class that a holdout should have
_LEAST_GROUPS = 100


@dataclass(frozen=True)
class Split:
    """How rows are divided, and why.

    Attributes:
        holdout: Days by time, else a share of rows; so is validation.
        group: Columns whose rows stay together.
        repeated: A column whose rows could be kept together, but are not.
        span: Days from the oldest labelled row to the newest; 0 without a time column.
        train_share: Of labelled rows, about.
    """

    by: Literal["time", "hash", "group"]
    holdout: float
    validation: float
    group: list[str]
    repeated: str
    span: int
    train_share: float
    why: list[str]


def choose_split(
    connection: duckdb.DuckDBPyConnection,
    columns: Sequence[Column],
    label: Label,
    *,
    time: str,
    scale: float,
) -> Split:
    """By time where there is a time; else by group where that is clear; else by hash.

    Args:
        time: The time column, or "".
        scale: Rows of the source for each row of the sample.
    """
    repeated = _repeated(columns, label.name)
    why = ["There is no time column."]
    if time:
        days = connection.execute(
            f"SELECT CAST({quoted(time)} AS DATE), count(*), sum({label.sql}) FROM sample "
            f"WHERE {label.sql} IS NOT NULL GROUP BY 1 ORDER BY 1"
        ).fetchall()
        split, why = _by_time(days, scale=scale, repeated=repeated)
        if split is not None:
            return split
    if repeated:
        why.append(
            f"Rows of one {repeated} are alike: with some of them on each side, a model "
            "would be judged on what it learned by heart."
        )
    else:
        why.append("A row's side follows from its key alone, so it stays there when rows come.")
    return Split(
        by="group" if repeated else "hash",
        holdout=SHARE,
        validation=SHARE,
        group=[repeated] if repeated else [],
        repeated="",
        span=0,
        train_share=1 - 2 * SHARE,
        why=why,
    )


def _by_time(
    days: list[tuple[date, int, float]], *, scale: float, repeated: str
) -> tuple[Split | None, list[str]]:
    """The newest days, whole weeks where there are enough: every weekday counts the same."""
    last = days[-1][0]
    span = (last - days[0][0]).days + 1
    if span < _LEAST_SPAN:
        return None, [f"The rows span {span} days: too few to hold some out."]
    week = 7 if span >= 28 else 1
    length = max(week, min(28, round(0.15 * span / week) * week))

    def parts(length: int) -> list[tuple[float, float]]:
        """Rows of each class in train, validation and holdout."""
        edges = [last - timedelta(days=2 * length), last - timedelta(days=length), last]
        found = [(0.0, 0.0)] * 3
        for day, count, positive in days:
            i = sum(day > edge for edge in edges[:2])
            found[i] = (found[i][0] + count - positive, found[i][1] + positive)
        return found

    while (
        min(min(part) for part in parts(length)[1:]) * scale < _LEAST_CLASS
        and 4 * (length + week) <= span
    ):
        length += week
    classes = parts(length)
    if not all(min(part) for part in classes):
        return None, ["The newest days lack one of the two classes, so none are held out."]
    train = sum(classes[0]) / sum(sum(part) for part in classes)
    weeks = length // 7
    said = f"{length} days" if length % 7 else "A whole week" if weeks == 1 else f"{weeks} weeks"
    return Split(
        by="time",
        holdout=length,
        validation=length,
        group=[],
        repeated=repeated,
        span=span,
        train_share=train,
        why=[
            "As it will be used: learned from the past, judged on what came after.",
            f"{said} each, of {span} days: about {train:.0%} of the rows are left for training.",
        ],
    ), []


def _repeated(columns: Sequence[Column], label: str) -> str:
    """The id of someone or something that has several rows, if there is one clearly."""
    found = [
        c
        for c in columns
        if c.name != label
        and c.kind in ("text", "integer")
        and not c.nulls
        and names_an_entity(c.name)
        and c.distinct >= _LEAST_GROUPS
        and c.rows / c.distinct >= 1.5
    ]
    return max(found, key=lambda c: c.distinct).name if found else ""
