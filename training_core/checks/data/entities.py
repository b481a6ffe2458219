"""Rows of one customer, patient or device in train and held back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from training_core.checks.data.frames import is_plain, label_columns
from training_core.checks.data.neighbours import target_distance
from training_core.checks.flat_features import flat_features
from training_core.checks.subject import Subject

_LEAST = 30  # entities
_LARGEST = 0.05  # share of the rows that one entity has on average: more is a category
_BOTH = 0.5  # share of held-back rows whose entity train has
_NEAREST = 0.5  # share of those whose nearest train row is of the same entity
_LABELS = 0.7  # times what labels of any two rows are apart
_ROWS, _TRAIN = 400, 4_000  # looked at


@dataclass(frozen=True)
class Entity:
    """A raw column that names what a row is of.

    Attributes:
        column: Its name.
        shared: Share of held-back rows whose entity has rows in train.
        nearest: Share of those whose nearest train row is of the same entity.
        labels: How far labels of one entity are apart, times what those of any two rows are.
    """

    column: str
    shared: float
    nearest: float
    labels: float


def entity_on_both_sides(subject: Subject) -> Entity | None:
    """Find a column that is no input, whose values tell which rows have like inputs and labels.

    Little et al. 2017, Gigascience 6(5): rows of one subject on both sides of a split measure how
    well subjects are recognised. A name that is an input is known wherever the model serves.
    """
    train, held_back = subject.train.head(_TRAIN), subject.validation.head(_ROWS)
    nearest: np.ndarray | None = None
    for column in _candidates(subject):
        names, own = train[column].astype(str), held_back[column].astype(str)
        shared = own.isin(set(names)).to_numpy() & held_back[column].notna().to_numpy()
        entities = pd.concat([names, own])
        repeats = len(entities) / max(1, entities.nunique())
        if shared.mean() < _BOTH or shared.sum() < _LEAST or entities.nunique() < _LEAST:
            continue
        if repeats > _LARGEST * len(entities):
            continue
        if nearest is None:
            nearest = _nearest(subject, len(train), len(held_back))
        same = names.to_numpy()[nearest[shared]] == own.to_numpy()[shared]
        labels = _labels_apart(subject, names.to_numpy(), own.to_numpy(), np.flatnonzero(shared))
        if same.mean() >= _NEAREST and labels <= _LABELS:
            return Entity(str(column), float(shared.mean()), float(same.mean()), labels)
    return None


def _candidates(subject: Subject) -> Iterator[str]:
    """Yield columns of texts and whole numbers that neither are inputs nor labels."""
    taken = {*subject.preprocessor.columns, *label_columns(subject.task)}
    for column in subject.train.columns:
        values = subject.train[column]
        whole = pd.api.types.is_integer_dtype(values.dtype)
        text = pd.api.types.is_string_dtype(values.dtype) or values.dtype == object
        text = text or isinstance(values.dtype, pd.CategoricalDtype)
        if column in taken or column not in subject.validation.columns:
            continue
        if (whole or text) and is_plain(values):
            yield column


def _nearest(subject: Subject, train: int, held_back: int) -> np.ndarray:
    """Return the nearest train row of each held-back one, int64 [N]."""
    known = subject.examples.take(slice(0, train))
    tables = flat_features(known, subject.held_back.take(slice(0, held_back)))
    one, other = (torch.from_numpy(np.ascontiguousarray(t, dtype=np.float32)) for t in tables)
    return np.asarray(torch.cdist(other, one).argmin(1).numpy())


def _labels_apart(subject: Subject, names: np.ndarray, own: np.ndarray, rows: np.ndarray) -> float:
    """Return how far labels of one entity are apart, as a share of those of any two rows."""
    random = np.random.default_rng(0)
    places = pd.Series(np.arange(len(names))).groupby(names).indices
    of_same = np.array([random.choice(places[own[row]]) for row in rows])
    target = subject.held_back.target[torch.from_numpy(rows)]
    spread = float(subject.examples.target.double().std()) or 1.0
    apart = [
        target_distance(
            target, subject.examples.target[torch.from_numpy(other)],
            kind=subject.task.kind, spread=spread,
        ).mean()
        for other in (of_same, random.integers(0, len(names), len(rows)))
    ]  # fmt: skip
    return float(apart[0] / apart[1]) if apart[1] > 0 else 1.0
