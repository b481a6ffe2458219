"""Which rows are drawn together: those of a day."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt

from components.common.data_settings import DataSettings
from components.common.tables import OBJECT, columns_of, quoted, text
from components.validate_data.drawn import place_of
from components.validate_data.profile import Counts

DAYS, WEEKS = 280, 120  # kept apart: three years in 400 clusters; what is older is one more
GROUPS = 64  # where there is no time: as many, by the hash of the row's key
_A_DAY = 86_400_000_000  # microseconds


@dataclass(frozen=True)
class Clusters:
    """How to number the clusters of a view.

    Attributes:
        expression: SQL: the day since 1970, or the number of the group.
        newest: The last day that has a cluster; None: `expression` is the number already.
        count: Numbers in use, the last one for rows without a day or after the newest.
    """

    expression: str
    newest: int | None
    count: int

    def numbers(self, days: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The cluster of each row, from `expression` (-2^31 for null)."""
        if self.newest is None:
            return days
        ago = np.int32(self.newest) - days
        dated = (days > -(2**31)) & (ago >= 0)
        ago = np.where(dated, ago, 0)
        weeks = np.maximum(np.int32(WEEKS) - (ago - np.int32(DAYS)) // np.int32(7), 0)
        found = np.where(ago < DAYS, np.int32(WEEKS + DAYS) - ago, weeks)
        return np.where(dated, found, np.int32(self.count - 1)).astype(np.int32)

    def days(self) -> tuple[Counts, Counts]:
        """First day and length in days of each cluster but the last."""
        if self.newest is None:
            return np.arange(self.count - 1), np.ones(self.count - 1, np.int64)
        daily = self.newest - np.arange(DAYS)[::-1]
        weekly = daily[0] - 7 * np.arange(WEEKS, 0, -1)
        older = np.array([weekly[0] - 1])
        lengths = np.repeat([0, 7, 1], [1, WEEKS, DAYS])
        return np.concatenate([older, weekly, daily]), lengths.astype(np.int64)


def clusters_of(
    connection: duckdb.DuckDBPyConnection, view: str, data: DataSettings
) -> tuple[Clusters, int]:
    """Decide how the rows of a view are clustered; also return how many rows there are.

    By day (UTC) where `data.time_column` holds instants or days; else by object, where the view
    says which one a row is in; else by a hash of the row's key. The newest day is the one that has
    999 rows in 1,000 before or on it, so that one impossible date hides no history.
    """
    columns = columns_of(connection, view)
    kind = columns.get(data.time_column or "", "")
    if not kind.startswith(("TIMESTAMP", "DATE")):
        return _undated(connection, view, columns, data)
    name = quoted(data.time_column or "")
    # epoch_us is arithmetic; a cast of TIMESTAMP WITH TIME ZONE to DATE asks ICU: 20 times slower
    instant = name if kind in ("DATE", "TIMESTAMP WITH TIME ZONE") else f"{name}::TIMESTAMP"
    bounded = f"CASE WHEN isfinite({instant}) THEN epoch_us({instant}) END"
    day = f"(floor({bounded} / {_A_DAY}.0))::INTEGER"
    found = connection.execute(
        f"SELECT {day} AS day, count(*) FROM {quoted(view)} GROUP BY day ORDER BY day NULLS LAST"
    ).fetchall()
    total = sum(rows for _, rows in found)
    dated = [(day, rows) for day, rows in found if day is not None]
    if not dated:
        return _undated(connection, view, columns, data)
    upto = np.cumsum([rows for _, rows in dated])
    newest = dated[int(np.searchsorted(upto, 0.999 * upto[-1]))][0]
    return Clusters(f"coalesce({day}, -2147483648)", newest, WEEKS + DAYS + 2), total


def _undated(
    connection: duckdb.DuckDBPyConnection, view: str, columns: dict[str, str], data: DataSettings
) -> tuple[Clusters, int]:
    total = connection.execute(f"SELECT count(*) FROM {quoted(view)}").fetchall()[0][0]
    if OBJECT in columns:
        names = connection.execute(
            f"SELECT DISTINCT {OBJECT} FROM {quoted(view)} ORDER BY 1"
        ).fetchall()
        if len(names) >= 10:  # fewer say little of how rows vary from one object to the next
            listed = ", ".join(text(name) for (name,) in names[: DAYS + WEEKS])
            number = f"(coalesce(list_position([{listed}], {OBJECT}), 1) - 1)::INTEGER"
            return Clusters(number, None, min(len(names), DAYS + WEEKS) + 1), total
    return Clusters(f"({place_of(data)} % {GROUPS})::INTEGER", None, GROUPS + 1), total
