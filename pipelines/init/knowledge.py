"""What a column alone knows of the label: the area under its ROC curve."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np
import numpy.typing as npt

from components.common.tables import quoted
from pipelines.init.columns import Column, value_of
from pipelines.init.label import Label

_MOST_ROWS = 50_000  # the AUC's standard error is then below 0.01 with 1,000 rows of a class
_RANKED = 1_000  # values up to which a column is also read as categories

Floats = npt.NDArray[np.float64]


def auc_of_each(
    connection: duckdb.DuckDBPyConnection, columns: Sequence[Column], label: Label, *, rows: int
) -> dict[str, float]:
    """Return how well each column alone ranks the labels: 0.5 not at all, 1.0 without a fault.

    The best of three: by size, by the label's rate in each value (learned on one half of the rows,
    judged on the other), and by whether there is a value at all.
    """
    every = max(1, -(-rows // _MOST_ROWS))
    numbered = [c for c in columns if c.kind != "other" and c.known]
    taken = "".join(
        f", {value_of(c.name, c.type)} AS c{i}" for i, c in enumerate(numbered)
    )  # names of our own: whatever the data calls its columns
    # Other bits of the hash than those that chose the sample.
    connection.execute(
        f"CREATE OR REPLACE TABLE labelled AS SELECT {label.sql} AS y, "
        f'(hash("whole row") >> 20) % 2 AS half{taken} FROM sample AS "whole row" '
        f'WHERE {label.sql} IS NOT NULL AND (hash("whole row") >> 40) % {every} = 0'
    )
    return {c.name: _auc_of(connection, f"c{i}", c) for i, c in enumerate(numbered)}


def _auc_of(connection: duckdb.DuckDBPyConnection, name: str, column: Column) -> float:
    found = connection.execute(
        f"SELECT {name} IS NULL AS missing, count(*) FILTER (half = 0) AS n0, "
        "coalesce(sum(y) FILTER (half = 0), 0) AS p0, count(*) FILTER (half = 1) AS n1, "
        "coalesce(sum(y) FILTER (half = 1), 0) AS p1 "
        f"FROM labelled GROUP BY {quoted(name)} ORDER BY {quoted(name)} NULLS FIRST"
    ).fetchnumpy()
    missing = np.asarray(found["missing"], dtype=bool)
    n0, p0, n1, p1 = (np.asarray(found[k], dtype=np.float64) for k in ("n0", "p0", "n1", "p1"))
    count, positive = n0 + n1, p0 + p1
    aucs = [_auc(missing.astype(np.float64), count, positive)]
    if column.kind in ("integer", "float", "time"):
        there = ~missing
        place = np.arange(len(count), dtype=np.float64)
        aucs.append(_auc(place[there], count[there], positive[there]))
    if column.kind in ("text", "boolean") or column.distinct <= _RANKED:
        prior = positive.sum() / max(1.0, count.sum())
        aucs.append(_auc((p0 + prior) / (n0 + 1), n1, p1))
    return max(max(auc, 1 - auc) for auc in aucs)


def _auc(score: Floats, count: Floats, positive: Floats) -> float:
    """Area under the ROC curve of groups of rows with one score each (Mann-Whitney), ties half."""
    _, place = np.unique(score, return_inverse=True)
    positives = np.bincount(place, weights=positive, minlength=1)
    negatives = np.bincount(place, weights=count - positive, minlength=1)
    if not positives.sum() or not negatives.sum():
        return 0.5
    below = np.cumsum(negatives) - negatives
    wins = (positives * (below + negatives / 2)).sum()
    return float(wins / (positives.sum() * negatives.sum()))
