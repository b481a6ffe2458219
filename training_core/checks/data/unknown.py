"""Values that arrive as if there were none, or as one never seen, though a network needs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from training_core.checks.data.arrays import flat
from training_core.checks.data.elements import elements_of, like_cell
from training_core.checks.data.frames import (
    copy_of,
    is_number,
    is_plain,
    label_columns,
    sample_of,
)
from training_core.checks.data.problem import Problem
from training_core.checks.data.variants import NEVER_SEEN, is_marked_number, variants_of
from training_core.checks.subject import Subject
from training_core.task import Preprocessor

_ROWS = 400  # whose values are taken for null
_MARKED, _MOST = 0.1, 0.5  # of a column's values are numbers that float() does not read
_NULL = 0.95  # of those arrive as nulls do
_FREQUENT = 10  # times in the train rows: no vocabulary leaves that out as rare
_TYPES = 60  # frequent ones looked at, and as many rarer ones
_INVERTED = 2.0  # times as frequent as values that are known
_LOWEST = 3  # of the known: the third rarest, for one may be known by chance
_OF_TOKENS, _OF_ROWS = 0.1, 0.05  # of the frequent words, and of a category's rows

Mask = npt.NDArray[np.bool_]


def of_nulls(subject: Subject) -> Iterator[Problem]:
    """Texts that hold numbers, 12,50 or 3 km, and arrive as a null does: they were not read.

    Only texts that `float` refuses are judged, all of which have to be lost: that a reader of
    numbers is at work is what tells them from names of which the rare share the place of null.
    """
    for column in plain_columns(subject, subject.train):
        values = subject.train[column].dropna()
        marked = values[[is_marked_number(value) for value in values]]
        share = len(marked) / max(1, len(values))
        if share < _MARKED or marked.nunique() < _FREQUENT:
            continue
        rows = sample_of(subject.train.loc[marked.index], _ROWS, seed=9).reset_index(drop=True)
        other = differing(subject.preprocessor, rows, rows.assign(**{column: None}))
        if other is None or other.mean() > 1 - _NULL:
            continue
        lost = ~other
        example = rows[column].iloc[int(lost.argmax())]
        yield Problem(
            fails=share >= _MOST,
            message=f"{share:.0%} of the values of {column!r} are numbers such as {example!r}, and "
            "arrive as a null does: what reads them takes them for no numbers",
            advice="read them with their comma, marks and unit (decimal=',' and thousands='.' of "
            "pandas), and let what cannot be read raise an error",
            measured=share, limit=_MOST,
        )  # fmt: skip


def of_unknown(subject: Subject) -> Iterator[Problem]:
    """Frequent values of the very rows fitted on that arrive as one never seen does.

    Written otherwise (another case, without punctuation, as a text) they are known: they are
    looked up otherwise than they were learned.
    """
    preprocessor, rows = subject.preprocessor, subject.train
    labels = label_columns(subject.task)
    for column in dict.fromkeys(preprocessor.columns):
        if column in labels or column not in rows or is_number(rows[column]):
            continue
        tokens = not is_plain(rows[column].dropna())
        words = [elements_of(cell) or [] for cell in rows[column][:50] if isinstance(cell, str)]
        tokens = tokens or bool(words and np.median([len(each) for each in words]) >= 2)
        kinds = _kinds(rows, column, tokens=tokens)
        found = _looked_up(preprocessor, rows, column, kinds) if kinds else None
        if found is not None:
            yield from _inverted(column, kinds, found, rows=len(rows), tokens=tokens)


@dataclass(frozen=True)
class _Kind:
    """A value, or an element of cells: how often there, and the cell of a row without it."""

    value: Any
    count: int
    row: int
    place: int  # of the element in its cell; -1: the value is the cell


@dataclass(frozen=True)
class _Found:
    """Of each kind, whether it arrives as one never seen, and the variant that does not."""

    unknown: Mask
    variant: list[Any]


def plain_columns(subject: Subject, *rows: pd.DataFrame) -> Iterator[str]:
    """Yield columns of one value a cell that are no numbers, at least in one of the frames.

    Args:
        rows: Those looked at; the label's columns are left out.
    """
    labels = label_columns(subject.task)
    for column in dict.fromkeys(subject.preprocessor.columns):
        if column in labels or not all(column in frame for frame in rows):
            continue
        if all(is_number(frame[column]) for frame in rows):
            continue
        if all(is_plain(frame[column].dropna()) for frame in rows):
            yield column


def differing(preprocessor: Preprocessor, one: pd.DataFrame, other: pd.DataFrame) -> Mask | None:
    """Say which rows give other tensors in one frame than in the other; None: it may be refused."""
    try:
        a, b = (preprocessor.transform(copy_of(frame)) for frame in (one, other))
        same = [_equal(flat(a[name]), flat(b[name])) for name in a]
    except Exception:  # noqa: BLE001 (the user's code may refuse such rows)
        return None
    return ~np.all(same, axis=0) if same else None


def _equal(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> Mask:
    return np.asarray(((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1))


def _kinds(rows: pd.DataFrame, column: str, *, tokens: bool) -> list[_Kind]:
    """Return frequent values and some rarer ones, each with a row and its first place there."""
    counts: Counter[Any] = Counter()
    first: dict[Any, tuple[int, int]] = {}
    for row, cell in enumerate(rows[column]):
        for place, value in enumerate((elements_of(cell) or []) if tokens else [cell]):
            if not isinstance(value, str | bytes | int) or isinstance(value, bool):
                continue
            counts[value] += 1
            if value not in first or place < first[value][1]:
                first[value] = (row, place if tokens else -1)
    ranked = counts.most_common()
    frequent = [each for each in ranked if each[1] >= _FREQUENT]
    rarer = [each for each in ranked if 1 < each[1] < _FREQUENT]
    picked = [*_evenly(frequent, _TYPES), *_evenly(rarer, _TYPES)]
    return [_Kind(value, count, *first[value]) for value, count in picked]


def _evenly(ranked: Sequence[Any], most: int) -> list[Any]:
    places = np.unique(np.linspace(0, len(ranked) - 1, min(most, len(ranked))).astype(int))
    return [ranked[int(place)] for place in places]


def _looked_up(
    preprocessor: Preprocessor, rows: pd.DataFrame, column: str, kinds: list[_Kind]
) -> _Found | None:
    """Put a value never seen, and each variant, in the place of each kind; one call."""
    sources, cells, variants = [], [], []
    for kind in kinds:
        others = variants_of(kind.value)
        variants.append(others)
        for value in (kind.value, _never(kind.value), *others):
            sources.append(kind.row)
            cell = rows[column].iloc[kind.row]
            cells.append(value if kind.place < 0 else like_cell(cell, kind.place, value))
    frame = rows.iloc[sources].reset_index(drop=True)
    frame[column] = pd.Series(cells, dtype=object)
    try:
        arrays = preprocessor.transform(copy_of(frame))
        table = np.concatenate([flat(array) for array in arrays.values()], axis=1)
    except Exception:  # noqa: BLE001 (a value never seen may be refused)
        return None
    unknown, known_as, start = [], [], 0
    for others in variants:
        never = table[start + 1]
        unknown.append(bool(_equal(table[start : start + 1], never[None])[0]))
        arrive = ~_equal(table[start + 2 : start + 2 + len(others)], never[None])
        known_as.append(next((v for v, there in zip(others, arrive, strict=True) if there), None))
        start += 2 + len(others)
    return _Found(np.array(unknown), known_as)


def _never(value: Any) -> Any:
    if isinstance(value, str):
        return NEVER_SEEN
    return NEVER_SEEN.encode() if isinstance(value, bytes) else 2**31 - 7


def _inverted(
    column: str, kinds: list[_Kind], found: _Found, *, rows: int, tokens: bool
) -> Iterator[Problem]:
    counts = np.array([kind.count for kind in kinds])
    known = np.sort(counts[~found.unknown])
    cut = _INVERTED * float(known[min(_LOWEST, len(known)) - 1]) if len(known) else 0.0
    frequent = counts >= _FREQUENT
    other_way = np.array([variant is not None for variant in found.variant])
    wrong = found.unknown & frequent & other_way & (counts >= cut)
    if tokens:
        share, limit = float(wrong.sum() / max(1, frequent.sum())), _OF_TOKENS
        enough, what = wrong.sum() >= _LOWEST, "frequent elements"
    else:
        share, limit = float(counts[wrong].sum() / rows), _OF_ROWS
        enough, what = wrong.any(), "values"
    if share < limit or not enough:
        return
    most = int(np.where(wrong, counts, -1).argmax())
    value, variant = kinds[most].value, found.variant[most]
    yield Problem(
        fails=True,
        message=f"{share:.0%} of the {what} of {column!r} arrive as one never seen: {value!r}, "
        f"{counts[most]} times in the rows fitted on, is unknown, and {variant!r} is known",
        advice="look values up exactly as they were learned: one function for fit and transform "
        "that makes them lower case, strips them, makes them text",
        measured=share, limit=limit,
    )  # fmt: skip
