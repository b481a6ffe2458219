"""What a snapshot looks like, small enough to keep: the numbers behind pictures and thresholds.

A profile holds, for every column, counts of rows in cells: for numbers, intervals between fixed
edges; for texts, the frequent values; then nulls. The same counts are kept for every day, with the
label's, so that days can be drawn again later without the rows (`history.py`).
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from components.common.data_figures import LabelKind
from training_core.errors import StoppedByGate

FORMAT = "evertrain/profile/3"
BINS = 20  # of a number's histogram, the bin of nulls aside
FINE = 5  # cells a bin: the Kolmogorov-Smirnov distance is taken at their edges
CATEGORIES = 200  # counted by name
DAILY_CATEGORIES = 40  # of those, counted by name every day
Kind = Literal["number", "category", "time", "boolean"]
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Cells:
    """Where the values of a column are counted.

    A number is filed by the upper 16 bits of `float32(value - centre)`: sign, exponent and seven
    bits of the fraction. A table of 65,536 cells then does what a search among edges would take
    fifteen times as long for (2 against 45 ns a value), at the price of edges that are rounded to
    1/128 of their distance from the centre.

    Attributes:
        centre: Of numbers; about their median.
        keys: Of numbers: the ordered upper bits (0 to 65,535) at which each cell but the first
            begins; ascending.
        names: Of texts and booleans: the values counted by name; the cell after them is "other".
        coarse: The bin of each cell, the null's (the last one) included; ascending.
    """

    centre: float = 0.0
    keys: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    coarse: list[int] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Cells in all; the last one is the nulls', the one before (of names) "other"."""
        return len(self.coarse)

    @property
    def bins(self) -> int:
        """Bins in all; the last one is the nulls'."""
        return self.coarse[-1] + 1

    @property
    def edges(self) -> Floats:
        """Where each cell of numbers but the first begins, to 1/128 of the way from the centre."""
        return self.centre + values_of(np.array(self.keys, np.uint16)).astype(np.float64)

    def merged(self, cells: Counts) -> Counts:
        """Counts by bin from counts by cell (last axis)."""
        starts = np.flatnonzero(np.diff(self.coarse, prepend=-1))
        merged: Counts = np.add.reduceat(cells, starts, axis=-1)
        return merged


@dataclass(frozen=True)
class ColumnProfile:
    """One column; counts are rows.

    Attributes:
        known: Rows with a value: without label, labelled 0, labelled 1.
        distinct: About, within some 3 %; None: not taken, for the cells are another profile's.
        own_value: Different values a row that has one, 1 where each is there once only; None: like
            `distinct`. From rows of some thousand values drawn by hash, each with all its rows.
        low, high: Smallest and largest value, as text; empty without values.
        least, most: The same as numbers; instants in days since 1970. None for texts.
        label_correlation: Pearson for numbers and times, Cramér's V for the rest.
        quantiles: Of numbers at 1, 5, 25, 50, 75, 95 and 99 %, to the width of a cell.
        beyond: Rows below and above what the profile whose cells are used has seen.
        unseen: Values that the profile whose cells are used did not have, the most frequent ones,
            with their rows; empty where it had more values than it names.
        cells: Where values are counted.
        seen: int64 [2, names]: the first and the last cluster that has each name.
        totals: int64 [cells].
        daily: int64 [3, clusters, bins]: rows without label, rows labelled 0, rows labelled 1.
    """

    column: str
    kind: Kind
    type: str
    nulls: int
    known: tuple[int, int, int]
    distinct: int | None
    own_value: float | None
    low: str
    high: str
    least: float | None
    most: float | None
    mean: float | None
    std: float | None
    label_correlation: float | None
    quantiles: list[float]
    beyond: tuple[int, int]
    unseen: dict[str, int]
    cells: Cells
    seen: Counts
    totals: Counts
    daily: Counts

    @property
    def filled(self) -> int:
        """Rows with a value."""
        return sum(self.known)

    @property
    def span(self) -> float:
        """Largest value less the smallest; 0 for texts."""
        return 0.0 if self.least is None or self.most is None else self.most - self.least

    @property
    def same(self) -> bool:
        """Whether there is one value, and no other."""
        if self.kind in ("category", "boolean"):
            return self.totals[-2] == 0 and int((self.totals[:-2] > 0).sum()) == 1
        return self.least is not None and self.least == self.most

    @property
    def typical(self) -> str:
        """The median (of times its day), or the most frequent category; empty without values."""
        if self.kind in ("category", "boolean"):
            named = self.totals[: len(self.cells.names)]
            return self.cells.names[int(named.argmax())] if named.any() else ""
        if not self.quantiles:
            return ""
        if self.kind == "time":
            return str(np.datetime64(int(self.quantiles[3]), "D"))
        return f"{self.quantiles[3]:.6g}"

    def bin_labels(self) -> list[str]:
        """What each bin holds, nulls last."""
        starts = np.flatnonzero(np.diff(self.cells.coarse, prepend=-1))[1:-1]
        if self.kind in ("category", "boolean"):
            bins = self.cells.bins
            return [*self.cells.names[: bins - 2], "other", "null"]
        edges = [f"{edge:.6g}" for edge in self.cells.edges[starts - 1]]
        if self.kind == "time":
            days = np.array([float(edge) for edge in edges]).astype("datetime64[D]")
            edges = [str(day) for day in days]
        pairs = zip([self.low, *edges], [*edges, self.high], strict=True)
        labels = [f"{low} to {high}" for low, high in pairs]
        if edges and self.least is not None and self.cells.merged(self.totals)[0] == 0:
            labels[0] = f"below {edges[0]}"
        return [*labels, "null"]


@dataclass(frozen=True)
class Profile:
    """A snapshot, or a part of one.

    Attributes:
        label: The column that shows the label (`common/labels.py`), or the first of them.
        first_days: Of each cluster, in days since 1970, ascending; without a time column: 0, 1, …
        lengths: Of each cluster in days: 1, older ones 7, all that is older still 0.
        ordered: Whether clusters are days; otherwise they are hashed groups of rows.
        cluster_rows: int64 [3, clusters]: rows without label, labelled 0, labelled 1.
        label_rows: Rows without label, labelled 0, labelled 1 (not binary: all that
            are labelled, and none); among them those whose time is null
            or later than that of 999 in 1,000, which are in no cluster.
    """

    rows: int
    label: str
    ordered: bool
    first_days: Counts
    lengths: Counts
    cluster_rows: Counts
    label_rows: tuple[int, int, int]
    columns: dict[str, ColumnProfile]
    label_kind: LabelKind = "binary"
    label_columns: list[str] = field(default_factory=list)

    @property
    def shows_label(self) -> set[str]:
        """The columns that show the label."""
        return {self.label, *self.label_columns}

    @property
    def has_labels(self) -> bool:
        """Whether any row in a cluster has a label."""
        return bool(self.cluster_rows[1:].any())

    @property
    def label_mean(self) -> float | None:
        """Share of the labelled rows in clusters whose label is 1; None: it is not binary."""
        _, negatives, positives = (int(n) for n in self.cluster_rows.sum(axis=1))
        if self.label_kind != "binary":
            return None
        return positives / (negatives + positives) if negatives + positives else None

    def to_json(self) -> str:
        """One line; arrays are compressed: 20 columns and 365 days take some 300 KB."""
        content = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "columns"}
        content["columns"] = [asdict(column) for column in self.columns.values()]
        return json.dumps({"format": FORMAT, **content}, default=_packed)

    @classmethod
    def from_json(cls, text: str | bytes) -> Profile:
        """Read what `to_json` wrote.

        Raises:
            StoppedByGate: It is no profile of this format.
        """
        try:
            content = json.loads(text, object_hook=_unpacked)
            if content.pop("format") != FORMAT:
                raise ValueError("another format")
            columns = [_column(one) for one in content.pop("columns")]
            rows = tuple(content.pop("label_rows"))
            return cls(columns={c.column: c for c in columns}, label_rows=rows, **content)
        except (ValueError, TypeError, KeyError, AttributeError, zlib.error) as error:
            raise StoppedByGate(
                f"a data profile cannot be read as {FORMAT}: {error}",
                hint="it is made again when its snapshot is validated again: run with --force",
            ) from error


def keys_of(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """The ordered upper 16 bits: the larger a value, the larger its key. Not for NaN."""
    bits = np.ascontiguousarray(values).view(np.uint32) >> 16
    ordered = np.where(bits & 0x8000, 0xFFFF - bits, bits | 0x8000)
    return ordered.astype(np.uint16)


def values_of(keys: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """The value of each ordered key that is nearest to 0."""
    wide = keys.astype(np.uint32)
    bits = np.where(wide & 0x8000, wide & 0x7FFF, 0xFFFF - wide) << 16
    return bits.astype(np.uint32).view(np.float32)


def significant(value: float, digits: int = 10) -> float:
    """Round: the last digits of a sum depend on the order of its rows."""
    return float(f"{value:.{digits}g}")


def _column(content: dict[str, Any]) -> ColumnProfile:
    content["cells"] = Cells(**content["cells"])
    for name in ("beyond", "known"):
        content[name] = tuple(content[name])
    return ColumnProfile(**content)


def _packed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        content = zlib.compress(value.astype("<i4").tobytes(), 6)
        return {"shape": value.shape, "int32": base64.b85encode(content).decode()}
    raise TypeError(f"{type(value).__name__} in a profile")


def _unpacked(content: dict[str, Any]) -> Any:
    if content.keys() != {"shape", "int32"}:
        return content
    raw = zlib.decompress(base64.b85decode(content["int32"]))
    shape: Sequence[int] = content["shape"]
    return np.frombuffer(raw, "<i4").astype(np.int64).reshape(shape)
