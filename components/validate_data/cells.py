"""Where the values of a column are counted, from a sample of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from components.validate_data.profile import (
    BINS,
    CATEGORIES,
    DAILY_CATEGORIES,
    FINE,
    Cells,
    Counts,
    Floats,
    Kind,
    keys_of,
)

_ENOUGH = 20  # rows a value in the sample: then a value that it lacks is rare


def cells_from(sample: pa.Array, kind: Kind, *, whole: bool) -> tuple[Cells, int | None]:
    """Cut a column into cells, and count its different values where the sample knows them.

    Numbers: cells of one row in a hundred, five to a bin; a value that is more frequent has a cell
    of its own, and up to 20 different values have a bin each. Texts: the most frequent ones.

    Args:
        sample: Numbers and times as DOUBLE, all else as text; nulls are passed over.
        kind: Of the column.
        whole: Whether the sample is all there is.
    """
    if kind in ("number", "time"):
        values = sample.to_numpy(zero_copy_only=False)
        values = values[~np.isnan(values)]
        distinct, counts = np.unique(values, return_counts=True)
        return _of_numbers(values, distinct), _known(counts, whole=whole)
    found = pc.value_counts(sample.drop_null())
    names = found.field(0).to_pylist()
    rows = found.field(1).to_pylist()
    ranked = sorted(zip(names, rows, strict=True), key=lambda pair: (-pair[1], pair[0]))
    kept = [name for name, _ in ranked[:CATEGORIES]]
    other = min(len(kept), DAILY_CATEGORIES)
    coarse = [min(number, other) for number in range(len(kept) + 1)]
    return Cells(names=kept, coarse=[*coarse, other + 1]), _known(np.array(rows), whole=whole)


def _known(counts: Counts, *, whole: bool) -> int | None:
    """How many values there are, if the sample can tell."""
    if whole or len(counts) == 0:
        return len(counts)
    return len(counts) if counts.sum() >= _ENOUGH * len(counts) and counts.min() > 1 else None


def _of_numbers(values: Floats, distinct: Floats) -> Cells:
    finite = distinct[np.isfinite(distinct)]
    if not len(finite):
        return Cells(coarse=[0, 1])
    centre = float(np.quantile(values[np.isfinite(values)], 0.5, method="inverted_cdf"))
    if len(distinct) <= BINS:
        keys = np.unique(_keys(finite, centre))
        return _cells(centre, keys, keys[1:])
    shares = np.arange(1, BINS * FINE) / (BINS * FINE)
    cuts = np.quantile(values, shares, method="inverted_cdf")
    keys = np.unique(_keys(cuts[np.isfinite(cuts)], centre))
    return _cells(centre, keys, np.unique(_keys(cuts[FINE - 1 :: FINE], centre)))


def _cells(centre: float, keys: Counts, bin_keys: Counts) -> Cells:
    """Number the bins: a cell belongs to the last bin that begins at or below it."""
    bins = np.searchsorted(bin_keys, np.concatenate([[-1], keys]), side="right")
    starts = np.unique(bins, return_inverse=True)[1]
    return Cells(
        centre=centre, keys=keys.tolist(), coarse=[*starts.tolist(), int(starts.max()) + 1]
    )


def _keys(values: Floats, centre: float) -> Counts:
    with np.errstate(over="ignore"):
        return keys_of((values - centre).astype(np.float32)).astype(np.int64)
