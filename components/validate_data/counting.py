"""Counting rows into cells while they stream by: nothing is kept but the counts."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from components.validate_data.profile import Cells, Counts, Floats, keys_of

_HASHES = 4096  # kept of each column whose distinct values are estimated: 1.6 to 2.2 % error
# Odd, and without pattern: the multiplicative hash of Knuth, The Art of Computer Programming 6.4.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass
class Tally:
    """Counts of one column by cluster, label and cell.

    Attributes:
        counts: int64 [clusters * 3 * cells].
    """

    cells: Cells
    clusters: int
    counts: Counts = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros(self.clusters * 3 * self.cells.count, np.int64)

    def add(self, codes: npt.NDArray[np.uint8], groups: npt.NDArray[np.int32]) -> None:
        """Count a batch.

        Args:
            codes: The cell of each row.
            groups: Three times the cluster of each row, plus its label (none, 0, 1).
        """
        width = self.cells.count
        first = int(groups.min())  # rows mostly come by day, so few groups are in a batch
        found = np.bincount((groups - first) * np.int32(width) + codes)
        self.counts[first * width : first * width + len(found)] += found

    def by_cluster(self) -> Counts:
        """int64 [3, clusters, cells]."""
        return self.counts.reshape(self.clusters, 3, self.cells.count).transpose(1, 0, 2)


@dataclass(frozen=True)
class Labels:
    """The labels of a batch, as sums over values need them.

    Attributes:
        groups: int32 [rows]: three times the cluster, plus the label (0 none, 1 no, 2 yes).
        yes: float64 [rows]: 1 where the label is yes.
        none: Rows without label.
    """

    groups: npt.NDArray[np.int32]
    yes: Floats
    none: npt.NDArray[np.intp]

    @classmethod
    def of(cls, clusters: npt.NDArray[np.int32], labels: npt.NDArray[np.int32]) -> Labels:
        groups = clusters * np.int32(3) + labels
        return cls(groups, (labels == 2).astype(np.float64), np.flatnonzero(labels == 0))


@dataclass
class NumberCounter:
    """Files numbers and keeps their extremes and what mean, spread and correlation need.

    Attributes:
        reach: Smallest and largest value of a reference, if there is one.
        sums: Of values less the centre: all rows' and those without label, each Σ and Σ²; Σ of
            those labelled yes.
    """

    cells: Cells
    tally: Tally
    reach: tuple[float, float] | None
    least: float = np.inf
    most: float = -np.inf
    below: int = 0
    above: int = 0
    sums: Floats = field(default_factory=lambda: np.zeros(5))

    def __post_init__(self) -> None:
        floats = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
        table = np.searchsorted(np.array(self.cells.keys, np.int64), keys_of(floats), side="right")
        table[np.isnan(floats)] = self.cells.count - 1
        self._table = table.astype(np.uint8)

    def add(self, values: Floats, labels: Labels) -> None:
        """Count a batch; NaN is null."""
        delta = values - self.cells.centre
        with np.errstate(over="ignore"):
            upper = delta.astype("<f4").view(np.uint16)[1::2]
        codes = np.take(self._table, upper, mode="clip")
        self.tally.add(codes, labels.groups)
        null = self.cells.count - 1
        if codes.max() == null:
            nulls = codes == null
            if nulls.all():
                return
            delta[nulls] = 0.0  # adds nothing to sums; rows are counted by the tally
        least, most = float(np.fmin.reduce(values)), float(np.fmax.reduce(values))
        self.least, self.most = min(self.least, least), max(self.most, most)
        if self.reach is not None and (least < self.reach[0] or most > self.reach[1]):
            self.below += int((values < self.reach[0]).sum())
            self.above += int((values > self.reach[1]).sum())
        without = delta[labels.none]
        with np.errstate(invalid="ignore", over="ignore"):  # infinite values: see `moments`
            self.sums += (
                delta.sum(), delta @ delta, without.sum(), without @ without, delta @ labels.yes
            )  # fmt: skip

    def moments(self) -> tuple[float | None, float | None, float | None]:
        """Mean, standard deviation, and Pearson's correlation with the label; None: not defined."""
        none, no, yes = self.tally.by_cluster()[:, :, :-1].sum(axis=(1, 2)).astype(float)
        total, squares, total_none, squares_none, total_yes = self.sums
        if not none + no + yes or not np.isfinite(self.sums).all():
            return None, None, None
        mean, std = _mean_and_std(none + no + yes, total, squares)
        if not no or not yes:
            return self.cells.centre + mean, std, None
        labelled_mean, spread = _mean_and_std(no + yes, total - total_none, squares - squares_none)
        if not spread:
            return self.cells.centre + mean, std, None
        between = (total_yes / yes - labelled_mean) * (yes / no) ** 0.5
        return self.cells.centre + mean, std, float(np.clip(between / spread, -1, 1))


def _mean_and_std(rows: float, total: float, squares: float) -> tuple[float, float]:
    mean = total / rows
    variance = squares / rows - mean**2
    # what is left of equal numbers after rounding is no spread
    return mean, float(variance**0.5) if variance > 1e-12 * squares / rows else 0.0


@dataclass
class NameCounter:
    """Files texts by name; what has no name is "other"."""

    cells: Cells
    tally: Tally

    def __post_init__(self) -> None:
        self._names = pa.array(self.cells.names, pa.string())

    def add(self, values: pa.Array, labels: Labels) -> None:
        """Count a batch."""
        found = pc.index_in(values, value_set=self._names)
        codes = pc.fill_null(found, len(self.cells.names)).to_numpy().astype(np.uint8)
        if values.null_count:
            codes[values.is_null().to_numpy(zero_copy_only=False)] = self.cells.count - 1
        self.tally.add(codes, labels.groups)


class DistinctCounter:
    """About how many different values there are, by the share of hashes that are small.

    The hashes below a bar are kept, with their rows; when they grow too many the bar is halved.
    Source: adaptive sampling, Flajolet 1990. The same values give the same answer in whatever
    order they come.
    """

    def __init__(self) -> None:
        self._bar = 64
        self._kept = np.zeros(0, np.uint64)
        self._rows = np.zeros(0, np.int64)

    def add_numbers(self, values: Floats) -> None:
        """See a batch of numbers, by a hash of their bits; NaN is null."""
        bits = values.view(np.uint64)
        hashes = bits >> np.uint64(32)
        hashes ^= bits
        hashes *= _MULTIPLIER  # the upper bits of the product depend on all bits
        below = self._below(hashes)
        self._keep(hashes[below][~np.isnan(values[below])])

    def add_hashes(self, hashes: npt.NDArray[np.uint64]) -> None:
        """See a batch of values by their hashes."""
        hashes = hashes * _MULTIPLIER
        self._keep(hashes[self._below(hashes)])

    def _below(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.intp]:
        if self._bar == 64:
            return np.arange(len(hashes))
        return np.flatnonzero(hashes < np.uint64(1 << self._bar))

    def _keep(self, hashes: npt.NDArray[np.uint64]) -> None:
        new, rows = np.unique(hashes, return_counts=True)
        self._kept, places = np.unique(np.concatenate([self._kept, new]), return_inverse=True)
        rows = np.concatenate([self._rows, rows])
        self._rows = np.bincount(places, rows, len(self._kept)).astype(np.int64)
        while len(self._kept) > _HASHES:
            self._bar -= 1
            small = self._kept < np.uint64(1 << self._bar)
            self._kept, self._rows = self._kept[small], self._rows[small]

    @property
    def estimate(self) -> int:
        """Different values, with an error of some 2 %."""
        return len(self._kept) << (64 - self._bar)

    @property
    def own_value(self) -> float:
        """Different values a row: of the kept ones, whose rows are all counted."""
        return len(self._kept) / max(1, int(self._rows.sum()))
