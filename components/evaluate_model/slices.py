"""Parts of the holdout: those that the settings name, and those where a search finds weakness.

A search through many parts always finds one that looks weak. So a shallow tree looks for them on
one half of the clusters (days, customers), and what it finds is judged on the other half, which had
no say in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from components.common.metrics import Floats
from components.common.metrics.contract import Rows
from components.common.resampling import Codes

LEAST_ROWS = 50  # of a slice: below that, nothing can be said
MOST_VALUES = 20  # of a column: the most frequent ones
_QUARTERS = 4
_DEPTH, _FOUND = 3, 5  # conditions of a slice that is searched for; how many are judged
_SHARE = 0.02  # of the rows, that such a slice has at least
_MOST_DIFFERENT = 1000  # values of a text column that is searched
_RECURRING = 0.8  # of a text column's rows, whose values the other half has as well
_NAMED = 4  # values that are named in words


@dataclass(frozen=True)
class Slice:
    """Some rows of the holdout.

    Attributes:
        words: "carrier = AA".
        source: Asked for in the settings, or found by the search.
        rows: Their places, int64.
    """

    words: str
    source: Literal["settings", "search"]
    rows: Rows


def declared(rows: pd.DataFrame, columns: Iterable[str]) -> list[Slice]:
    """Return a slice for each frequent value of each column, or for each quarter of its numbers.

    Raises:
        KeyError: A column is not there; its argument is the name.
    """
    found = []
    for column in columns:
        if column not in rows:
            raise KeyError(column)
        for words, inside in _parts(rows[column]):
            if inside.sum() >= LEAST_ROWS:
                found.append(Slice(words, "settings", np.flatnonzero(inside)))
    return found


def searched(
    rows: pd.DataFrame, worse: Floats, codes: Codes, *, without: Sequence[str], seed: int = 0
) -> list[Slice]:
    """Search for parts where rows are worse than elsewhere.

    Args:
        rows: Raw rows, N.
        worse: float64 [N]: how much worse each row is than it should be.
        codes: The cluster of each row: half of them are searched.
        without: Columns that are no features (label, time).
        seed: Of the halves.

    Returns:
        At most five slices, the worst first, of rows of the other half alone.
    """
    from sklearn.tree import DecisionTreeRegressor

    clusters = np.unique(codes)
    chosen = np.random.default_rng(seed).permutation(clusters)[: len(clusters) // 2]
    looked = np.isin(codes, chosen)
    features = [
        _Feature.of(rows[name], worse, looked) for name in rows.columns if name not in without
    ]
    usable = [feature for feature in features if feature is not None]
    least = max(LEAST_ROWS, int(_SHARE * looked.sum()))
    if not usable or looked.sum() < 2 * least or (~looked).sum() < LEAST_ROWS:
        return []
    matrix = np.column_stack([feature.values for feature in usable])
    tree = DecisionTreeRegressor(max_depth=_DEPTH, min_samples_leaf=least, random_state=0)
    tree.fit(matrix[looked], worse[looked])
    leaves = tree.apply(matrix)
    overall = worse[looked].mean()
    weak = sorted(
        (leaf for leaf in np.unique(leaves) if tree.tree_.value[leaf].item() > overall),
        key=lambda leaf: -tree.tree_.value[leaf].item(),
    )
    found = []
    for leaf in weak[:_FOUND]:
        inside = np.flatnonzero((leaves == leaf) & ~looked)
        if len(inside) >= LEAST_ROWS:
            found.append(Slice(_words(tree.tree_, leaf, usable), "search", inside))
    return found


def _parts(column: pd.Series[Any]) -> list[tuple[str, npt.NDArray[np.bool_]]]:
    name, missing = str(column.name), column.isna().to_numpy()
    parts = []
    numbers = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if numbers and column.nunique() > MOST_VALUES:
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        edges = np.unique(np.nanquantile(values, np.linspace(0, 1, _QUARTERS + 1)))
        for low, high in itertools.pairwise(edges):
            last = high == edges[-1]
            inside = (values >= low) & ((values <= high) if last else (values < high))
            parts.append((f"{name} from {low:,.6g} to {high:,.6g}", inside))
    else:
        told = column.astype(str).to_numpy()
        for value in column.dropna().astype(str).value_counts().index[:MOST_VALUES]:
            parts.append((f"{name} = {value}", (told == value) & ~missing))
    return [*parts, (f"{name} is missing", missing)]


@dataclass(frozen=True)
class _Feature:
    """A column as numbers: its own, or of a text how bad its rows were in the half looked at.

    Attributes:
        order: Values of a text by that number; None: the column is numeric.
    """

    name: str
    values: Floats
    order: pd.Series[Any] | None

    @classmethod
    def of(
        cls, column: pd.Series[Any], worse: Floats, looked: npt.NDArray[np.bool_]
    ) -> _Feature | None:
        """None: no feature that a slice can be named by."""
        if pd.api.types.is_numeric_dtype(column):
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
            finite = values[np.isfinite(values)]
            if len(finite) == 0:
                return None
            below = float(finite.min()) - 1.0
            return cls(str(column.name), np.where(np.isfinite(values), values, below), None)
        if not column.map(_is_text_or_missing).all():
            return None  # lists, times, bytes
        told = column.fillna("(missing)").astype(str)
        if told.nunique() > _MOST_DIFFERENT:
            return None
        elsewhere = told[~looked]
        if len(elsewhere) and not elsewhere.isin(set(told[looked])).mean() >= _RECURRING:
            return None  # a date, an id: what is found there is nowhere else
        seen = pd.Series(worse[looked]).groupby(told.to_numpy()[looked]).agg(["sum", "size"])
        overall = float(worse[looked].mean())
        order = ((seen["sum"] + 20 * overall) / (seen["size"] + 20)).sort_values()
        values = told.map(order).fillna(overall).to_numpy(dtype=np.float64)
        return cls(str(column.name), values, order)


def _is_text_or_missing(cell: object) -> bool:
    """Not asked by `cell != cell`: of a list, such as an image, that has no one answer."""
    return isinstance(cell, str) or (pd.api.types.is_scalar(cell) and bool(pd.isna(cell)))  # type: ignore[call-overload]


def _words(tree: Any, leaf: int, features: list[_Feature]) -> str:
    """The conditions on the way to a leaf."""
    bounds: dict[int, list[float]] = {}
    node = 0
    for below in _path(tree, leaf):
        feature, threshold = int(tree.feature[node]), float(tree.threshold[node])
        low, high = bounds.setdefault(feature, [-np.inf, np.inf])
        left = below == tree.children_left[node]
        bounds[feature] = [low, min(high, threshold)] if left else [max(low, threshold), high]
        node = below
    return " and ".join(_condition(features[f], low, high) for f, (low, high) in bounds.items())


def _path(tree: Any, leaf: int) -> list[int]:
    """Nodes from below the root down to a leaf."""
    above = {int(c): n for n in range(tree.node_count) for c in _children(tree, n)}
    path = [int(leaf)]
    while path[-1] != 0:
        path.append(above[path[-1]])
    return path[-2::-1]


def _children(tree: Any, node: int) -> list[int]:
    both = (int(tree.children_left[node]), int(tree.children_right[node]))
    return [child for child in both if child >= 0]


def _condition(feature: _Feature, low: float, high: float) -> str:
    if feature.order is None:
        if np.isinf(low):
            return f"{feature.name} at most {high:,.6g}"
        if np.isinf(high):
            return f"{feature.name} above {low:,.6g}"
        return f"{feature.name} above {low:,.6g} and at most {high:,.6g}"
    inside = feature.order[(feature.order > low) & (feature.order <= high)]
    names = [str(name) for name in inside.index[::-1]]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{feature.name} is {', '.join(names[:_NAMED])}{more}"
