"""What the data looks like, how it moved, and which feature knows too much."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from components.common.data_figures import ColumnDrift, Leak

_BINS = 20
_CATEGORIES = 200
_FLOOR = 1e-4  # share given to an empty bin, so that its logarithm exists


def profile_of(rows: pd.DataFrame) -> dict[str, Any]:
    """Describe each column as plain data: kind, nulls, mean or top category, histogram."""
    columns = {}
    for name in map(str, rows.columns):
        values = rows[name]
        entry: dict[str, Any] = {"null": float(values.isna().mean())}
        if pd.api.types.is_numeric_dtype(values.dtype):
            known = np.asarray(values.dropna(), dtype=np.float64)
            known = known[np.isfinite(known)]
            edges = (
                np.unique(np.quantile(known, np.linspace(0, 1, _BINS + 1))[1:-1])
                if known.size
                else np.zeros(0)
            )
            entry |= {
                "kind": "number",
                "mean": float(known.mean()) if known.size else None,
                "edges": edges.tolist(),
                "shares": _shares(known, edges).tolist(),
            }
        elif pd.api.types.is_datetime64_any_dtype(values.dtype):
            entry |= {"kind": "time", "first": str(values.min()), "last": str(values.max())}
        else:
            top = values.astype("string").value_counts(normalize=True).head(_CATEGORIES)
            entry |= {
                "kind": "category",
                "shares": {str(k): float(v) for k, v in top.items()},
            }
        columns[name] = entry
    return {"format": "evertrain/profile/1", "rows": len(rows), "columns": columns}


def drift_between(rows: pd.DataFrame, before: dict[str, Any]) -> list[ColumnDrift]:
    """Compare rows with an earlier profile, column by column, largest drift first."""
    found = []
    for name, old in before["columns"].items():
        if name not in rows.columns or old["kind"] == "time":
            continue
        values = rows[name]
        if old["kind"] == "number" and pd.api.types.is_numeric_dtype(values.dtype):
            known = np.asarray(values.dropna(), dtype=np.float64)
            known = known[np.isfinite(known)]
            shares = _shares(known, np.asarray(old["edges"]))
            psi = _psi(np.asarray(old["shares"]), shares)
            now = f"{known.mean():.4g}" if known.size else "–"
            then = "–" if old["mean"] is None else f"{old['mean']:.4g}"
        elif old["kind"] == "category":
            top = values.astype("string").value_counts(normalize=True).head(_CATEGORIES)
            names = sorted({*old["shares"], *map(str, top.index)})
            psi = _psi(
                np.array([old["shares"].get(n, 0.0) for n in names]),
                np.array([float(top.get(n, 0.0)) for n in names]),
            )
            now = str(top.index[0]) if len(top) else "–"
            then = max(old["shares"], key=old["shares"].get, default="–")
        else:
            continue
        found.append(
            ColumnDrift(
                column=name, psi=psi, now=now, before=then,
                null_now=float(values.isna().mean()), null_before=old["null"],
            )
        )  # fmt: skip
    return sorted(found, key=lambda drift: -drift.psi)


def find_leaks(rows: pd.DataFrame, label: str, limit: float) -> list[Leak]:
    """Return numeric columns that alone rank a binary label with an AUC above the limit.

    Text columns are ranked by the label's rate in each value, on the other half of the rows.
    """
    if label not in rows.columns:
        return []
    labelled = rows[rows[label].notna()]
    truth = labelled[label].astype(float).to_numpy()
    if len(np.unique(truth)) != 2:
        return []
    found = []
    for name in map(str, labelled.columns):
        values = labelled[name]
        if name == label or pd.api.types.is_datetime64_any_dtype(values.dtype):
            continue
        if pd.api.types.is_numeric_dtype(values.dtype):
            score = np.asarray(values, dtype=np.float64)
            where = np.isfinite(score)
        else:
            text = values.astype("string").fillna("")
            half = np.arange(len(text)) % 2 == 0
            rates = pd.Series(truth[half]).groupby(text[half].to_numpy()).mean()
            score = text.map(rates).fillna(truth.mean()).to_numpy(dtype=np.float64)
            where = ~half
        auc = _auc(score[where], truth[where] > 0.5)
        strength = max(auc, 1 - auc)
        if strength > limit:
            found.append(Leak(column=name, auc=strength))
    return sorted(found, key=lambda leak: -leak.auc)


def _auc(score: npt.NDArray[np.float64], truth: npt.NDArray[np.bool_]) -> float:
    """Area under the ROC curve by ranks (Mann-Whitney), ties at their mean rank."""
    positives = int(truth.sum())
    if positives in (0, len(truth)):
        return 0.5
    ranks = pd.Series(score).rank().to_numpy()
    wins = ranks[truth].sum() - positives * (positives + 1) / 2
    return float(wins / (positives * (len(truth) - positives)))


def _shares(
    values: npt.NDArray[np.float64], edges: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    counts = np.bincount(np.searchsorted(edges, values), minlength=len(edges) + 1)
    shares: npt.NDArray[np.float64] = counts / max(1, len(values))
    return shares


def _psi(before: npt.NDArray[np.float64], now: npt.NDArray[np.float64]) -> float:
    """Population stability index."""
    before, now = np.maximum(before, _FLOOR), np.maximum(now, _FLOOR)
    return float(((now - before) * np.log(now / before)).sum())
