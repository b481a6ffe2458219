"""Held-back rows whose categories are all unseen: written otherwise, or of another world."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from training_core.checks.data.frames import copy_of, sample_of
from training_core.checks.data.problem import Problem
from training_core.checks.data.unknown import differing, plain_columns
from training_core.checks.data.variants import plainly
from training_core.checks.subject import Subject

_ROWS = 200  # held-back ones that are looked at
_LEAST = 20
_TWINS, _SOME = 0.5, 0.1  # of the held-back rows have a value of train, written otherwise
_ALL = 0.95  # of them have a value that train does not hold
_NAMES = 0.2  # different values in as many train rows are names, of which new ones come
_SEVERAL = 2  # columns


def of_unseen(subject: Subject) -> Iterator[Problem]:
    """Categories of held-back rows that train never held, as the preprocessor tells them apart.

    One column wholly unseen is a cold start, or time that goes on, and so are several that say the
    same (a shop, and its town). A value of train in other letters, or of another type, is none of
    these, and neither are several columns that do not follow from each other.
    """
    rows = sample_of(subject.validation, _ROWS, seed=10).reset_index(drop=True)
    if len(rows) < _LEAST:
        return
    unseen: list[str] = []
    for column in plain_columns(subject, subject.train, rows):
        train = subject.train[column].dropna()
        values = {value: plainly(value) for value in train.unique()}
        known, twins = set(values), {plain: value for value, plain in values.items() if plain}
        new = np.array([not pd.isna(v) and v not in known for v in rows[column]])
        twin = np.array([n and plainly(v) in twins for v, n in zip(rows[column], new, strict=True)])
        if twin.mean() >= _SOME:
            yield from _respelt(subject, rows, column, twin, twins)
        elif new.mean() >= _ALL and len(values) < _NAMES * len(train):
            unseen.append(column)
    independent = [
        column
        for place, column in enumerate(unseen)
        if not any(_follow(subject.train, column, other) for other in unseen[:place])
    ]
    if len(independent) >= _SEVERAL:
        named = " and ".join(repr(column) for column in independent)
        yield Problem(
            fails=True,
            message=f"no value that held-back rows have in {named} was ever seen in training",
            advice="are both splits from one source, written and divided in one way?",
            measured=float(len(independent)), limit=1.0,
        )  # fmt: skip


def _respelt(
    subject: Subject, rows: pd.DataFrame, column: str, twin: np.ndarray, twins: dict[str, object]
) -> Iterator[Problem]:
    """Held-back values that are train's but for case, blanks, punctuation or type."""
    chosen = rows[twin].reset_index(drop=True)
    as_in_train = pd.Series([twins[plainly(v)] for v in chosen[column]], dtype=object)
    other = chosen.assign(**{column: as_in_train})
    plain = copy_of(chosen).assign(**{column: chosen[column].astype(object)})
    differ = differing(subject.preprocessor, plain, other)
    if differ is None or differ.mean() < _TWINS:
        return
    share, place = float(twin.mean() * differ.mean()), int(differ.argmax())
    yield Problem(
        fails=share >= _TWINS,
        message=f"{share:.0%} of the held-back rows have in {column!r} a value of train that is "
        f"written otherwise: {chosen[column].iloc[place]!r} for {as_in_train.iloc[place]!r}, which "
        "arrives as another one",
        advice="write values in one way before they are learned and looked up, wherever rows come "
        "from",
        measured=share, limit=_TWINS,
    )  # fmt: skip


def _follow(train: pd.DataFrame, one: str, other: str) -> bool:
    """Say whether one column follows from the other: each value goes with a single one of it."""
    pairs = train[[one, other]].dropna().astype(str).drop_duplicates()
    return bool(len(pairs) <= max(pairs[one].nunique(), pairs[other].nunique()))
