"""A profile as the report shows it."""

from __future__ import annotations

from components.common.data_figures import Bars, ColumnFigures
from components.validate_data.distances import shares_of
from components.validate_data.profile import ColumnProfile, Profile


def column_figures(profile: Profile) -> list[ColumnFigures]:
    """Return what each column looks like, in the order of the data."""
    return [_figures(column, profile.rows) for column in profile.columns.values()]


def _figures(column: ColumnProfile, rows: int) -> ColumnFigures:
    counted = column.cells.merged(column.totals)
    return ColumnFigures(
        column=column.column,
        kind=column.kind,
        type=column.type,
        nulls=column.nulls / max(1, rows),
        distinct=column.distinct or 0,
        low=column.low,
        high=column.high,
        typical=column.typical,
        mean=column.mean if column.kind == "number" else None,
        label_correlation=column.label_correlation,
        bars=Bars(labels=column.bin_labels(), now=shares_of(counted).tolist(), before=[]),
    )
