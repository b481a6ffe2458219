"""What follows from the number of rows and columns: batch, passes, baselines."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from pipelines.init.columns import Column
from pipelines.init.features import Features

_MOST_SIMPLE = 2_000_000 * 20  # rows × columns that linear model and trees hold in 5 GB at most
_MOST_IN_MEMORY = 2**30  # bytes of features


@dataclass(frozen=True)
class Sizes:
    """How much is trained.

    Attributes:
        rows: Of the train split, about.
        simple_models: Whether there is memory for a linear model and for trees.
        table: Columns of the table of rates; empty: none worth having.
    """

    rows: int
    batch_size: int
    epochs: int
    data: Literal["memory", "disk"]
    table: list[str]
    simple_models: bool


def choose_sizes(columns: list[Column], features: Features, *, rows: int) -> Sizes:
    """Choose by the rows of the train split, so that small data gets steps enough."""
    width = len(features.categories) + len(features.numbers)
    batch_size, epochs = next(
        (batch, epochs)
        for most, batch, epochs in (
            (20_000, 256, 10), (100_000, 512, 5), (2_000_000, 1024, 3), (float("inf"), 4096, 1),
        )
        if rows <= most
    )  # fmt: skip
    return Sizes(
        rows=rows,
        batch_size=batch_size,
        epochs=epochs,
        data="disk" if rows * width * 8 > _MOST_IN_MEMORY else "memory",
        table=_table(columns, features, rows=rows),
        simple_models=rows * width <= _MOST_SIMPLE,
    )


def _table(columns: list[Column], features: Features, *, rows: int) -> list[str]:
    """The pair of categories that knows most by itself, with 50 rows a cell; or one category."""
    distinct = {c.name: c.distinct for c in columns}
    best = sorted(features.categories, key=lambda name: -features.auc.get(name, 0.5))
    for names in [*combinations(best[:6], 2), *((name,) for name in best)]:
        cells = 1
        for name in names:
            cells *= distinct[name]
        if cells * 50 <= rows:
            return list(names)
    return []
