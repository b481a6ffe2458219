"""Whether the features of a train row hold its own label, as the mean of few labels does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from training_core.checks.data.arrays import Numbers, column_name, flat
from training_core.checks.data.frames import copy_of, label_columns
from training_core.checks.data.telling import ranks_well
from training_core.checks.subject import Subject
from training_core.task import PADDING, Arrays

LIMIT = 0.1  # share of a drawn label's variance: the means of labels of ten rows each
SOME = 0.02
_ROWS, _CELLS = 20_000, 4_000_000  # looked at; of wide arrays fewer rows
_FEW = 200  # rows in which a column has to change with the labels before all are transformed
_COLUMNS = 512  # of an array that are looked at: the first that change with the labels
_LABELS = 64
_LUCK = 14.0  # times 1 / rows: a squared correlation goes beyond it in one of 5,000 columns


@dataclass(frozen=True)
class OwnLabels:
    """What a tensor column knows of labels that were drawn, and say nothing of their rows.

    Attributes:
        column: In words.
        share: Of the drawn labels' variance that it explains in the rows it was fitted on.
        lasting: What is left of it where all planned rows are fitted, and not a sample.
        elsewhere: The same in rows left out of the fit: about 0.
    """

    column: str
    share: float
    lasting: float
    elsewhere: float


def own_labels(subject: Subject) -> OwnLabels | None:
    """Fit on shuffled labels; None: no tensor column of the rows fitted on knows them.

    A shuffled label has nothing to do with its row, so a column that knows it was told by `fit`.
    Means of labels explain the number of groups over the number of rows (Micci-Barreca 2001;
    Prokhorenkova et al. 2018, arXiv:1706.09516): little where groups are large, and nearly all
    where a group is one or two rows.
    """
    width = sum(array[0].numel() for array in subject.examples.arrays.values())
    frame = subject.train.head(min(_ROWS, max(256, _CELLS // max(1, width))))
    base = {name: a[: len(frame)].numpy() for name, a in subject.examples.arrays.items()}
    shuffled = _shuffled(subject, frame, seed=0)
    few = {name: array[:_FEW] for name, array in base.items()}
    told_few = _told(subject, shuffled, base=few, rows=shuffled.head(_FEW))
    if not any(told.any() for told in told_few.values()):  # labels change no column
        return None
    first = _told(subject, shuffled, base=base)
    second = _told(subject, _shuffled(subject, frame, seed=1), base=base)
    both = {n: np.minimum(t, second[n]) for n, t in first.items() if len(second[n]) == len(t)}
    name = max(both, key=lambda each: float(both[each].max(initial=0.0)))
    place, share = int(both[name].argmax()), float(both[name].max(initial=0.0))
    # The best of many columns knows something by luck: selected ones, too, were chosen from all.
    inputs = sum(array[0].size for array in base.values()) + len(frame.columns)
    if share < max(SOME, (2 * math.log(inputs) + _LUCK) / len(frame)):
        return None
    half = len(frame) // 2
    kept, rest = shuffled[:half], shuffled[half:].reset_index(drop=True)
    of_half, of_rest = (_told(subject, kept, rows=rows).get(name) for rows in (kept, rest))
    # Means of the same groups explain twice as much of half as many rows; where each row brings a
    # group of its own they explain as much. By this a sample says what all rows would.
    before = share if of_half is None or len(of_half) <= place else float(of_half[place])
    fades = min(1.0, math.log2(max(before, share) / share))
    lasting = share * (len(frame) / max(subject.planned_rows, len(frame))) ** fades
    elsewhere = 0.0 if of_rest is None or len(of_rest) <= place else float(of_rest[place])
    words = column_name(subject.preprocessor, name, base[name].shape, place)
    if subject.task.kind == "sequence":
        words = f"{name!r}"
    return OwnLabels(words, share, lasting, elsewhere)


def _shuffled(subject: Subject, frame: pd.DataFrame, *, seed: int) -> pd.DataFrame:
    """Return rows with labels of other rows; several labels of a row stay together."""
    moved = np.random.default_rng(seed).permutation(len(frame))
    labels = [label for label in label_columns(subject.task) if label in frame.columns]
    return frame.assign(**{label: frame[label].iloc[moved].array for label in labels})


def _told(
    subject: Subject,
    fitted_on: pd.DataFrame,
    *,
    base: Arrays | None = None,
    rows: pd.DataFrame | None = None,
) -> dict[str, Numbers]:
    """Return what each column explains of the rows' labels: squared rank correlation.

    Args:
        fitted_on: Rows with the labels that `fit` is given.
        base: A column that is the same here knows nothing of labels, and gets 0.
        rows: What is transformed; None: the rows of the fit.
    """
    rows = fitted_on if rows is None else rows
    fitted = subject.task.preprocessor().fit(copy_of(fitted_on))
    target = np.asarray(subject.task.target(copy_of(rows)))
    told = {}
    for name, array in fitted.transform(copy_of(rows)).items():
        columns, before = flat(array), None if base is None else base.get(name)
        changed = np.ones(columns.shape[1], dtype=bool)
        if before is not None and before.shape == array.shape:
            changed = (flat(before) != columns).any(axis=0)
        told[name] = np.zeros(len(changed))
        places = np.flatnonzero(changed)[:_COLUMNS]
        if not len(places):
            continue
        if subject.task.kind == "sequence":
            told[name][0] = _of_positions(array, target)
        else:
            classes = subject.task.kind == "multiclass"
            told[name][places] = _explained(columns[:, places], target, classes=classes)
    return told


def _of_positions(array: npt.NDArray[Any], target: npt.NDArray[Any]) -> float:
    """Return the most that a value at a position explains of what is answered there."""
    length = min(array.shape[1], target.shape[1]) if array.ndim > 1 else 0
    if not length or abs(array.shape[1] - target.shape[1]) > 1:
        return 0.0  # not by position
    counts = target[:, :length] != PADDING
    values = flat(array[:, :length][counts])
    return float(_explained(values, target[:, :length][counts], classes=True).max(initial=0.0))


def _explained(columns: Numbers, target: npt.NDArray[Any], *, classes: bool) -> Numbers:
    """Return the most that each column explains of a label, or of a class."""
    labels = flat(target)
    if classes:
        found, counts = np.unique(labels, return_counts=True)
        kept = found[np.argsort(-counts, kind="stable")[:_LABELS]]
        labels = np.asarray(labels == kept, dtype=np.float64)
    best = np.zeros(columns.shape[1])
    for label in labels.T[:_LABELS]:
        best = np.maximum(best, ranks_well(np.nan_to_num(columns), label, classes=False))
    return best
