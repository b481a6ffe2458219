"""A row's tensors depend on that row alone: not on its neighbours, its place or its index."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from training_core.checks.contract import Check, Finding
from training_core.checks.data.arrays import column_name, first_difference
from training_core.checks.data.frames import copy_of, label_columns, sample_of, written
from training_core.checks.subject import Subject
from training_core.task import Arrays

_ROWS = 192  # of each split
_ALONE = 4
_TARGET = "target"  # compared like an array


@dataclass(frozen=True)
class _Way:
    """One way to ask for the same rows again; `rows`: which of them, in which order."""

    said: str
    rows: np.ndarray[Any, np.dtype[np.int64]]
    ask: Callable[[], Arrays]


class RowsStayThemselves(Check):
    """Metamorphic, after Chen, Cheung and Yiu 1998: what must not change the tensors does not.

    Found in this way: labels shifted by a row, statistics of the batch inside `transform`, rows
    that are sorted, joins by the index, chance in `transform`, and what is not in `state_dict`.
    """

    name = "rows_stay_themselves"
    looks_at = (
        "a row gives the same tensors alone, in any order, under any index, and once reloaded"
    )

    def look(self, subject: Subject) -> Finding:
        frame = _both_splits(subject)
        before = copy_of(frame)
        state = json.dumps(subject.preprocessor.state_dict(), sort_keys=True)
        base = self._asked(subject, frame)
        seen = frame
        for way in self._ways(subject, before):
            problem = _problem(subject, way, base)
            if problem:
                return self.failed(f"{way.said} {problem}", advice=_ADVICE)
        if json.dumps(subject.preprocessor.state_dict(), sort_keys=True) != state:
            return self.failed(
                "transform changes what the preprocessor has learned (its state_dict)",
                advice="learn in fit only",
            )
        changed, added = written(before, seen)
        if changed:
            return self.failed(
                f"transform or target writes to the frame it is given: {', '.join(changed)}",
                advice="work on a copy of the column",
            )
        if added:
            return self.warned(
                f"transform or target adds columns to the frame it is given: {', '.join(added)}",
                advice="work on a copy of the frame",
            )
        return self.passed(f"{len(frame)} rows give the same tensors whatever comes with them")

    def _asked(self, subject: Subject, frame: pd.DataFrame) -> Arrays:
        """Arrays and target; `frame` is handed over as it is."""
        target = np.asarray(subject.task.target(frame))
        return {**subject.preprocessor.transform(frame), _TARGET: target}

    def _ways(self, subject: Subject, frame: pd.DataFrame) -> list[_Way]:
        count = len(frame)
        everyone = np.arange(count)
        mixed = np.random.default_rng(0).permutation(count)
        renamed = copy_of(frame).set_axis(pd.Index(mixed))
        again = copy_of(frame)

        def ask(rows: pd.DataFrame) -> Callable[[], Arrays]:
            return lambda: self._asked(subject, copy_of(rows))

        def repeated() -> Arrays:
            self._asked(subject, again)
            return self._asked(subject, again)

        def reloaded() -> Arrays:
            preprocessor = subject.preprocessor
            state = json.loads(json.dumps(preprocessor.state_dict()))
            other = type(preprocessor).from_state_dict(state)
            target = np.asarray(subject.task.target(copy_of(frame)))
            return {**other.transform(copy_of(frame)), _TARGET: target}

        in_order = frame.iloc[mixed].reset_index(drop=True)
        train = min(_ROWS, len(subject.train))

        def in_the_split() -> Arrays:
            parts = [(subject.examples, subject.train), (subject.held_back, subject.validation)]
            taken = [
                examples.take(torch.from_numpy(sample_of(rows, _ROWS).index.to_numpy().copy()))
                for examples, rows in parts[: 1 if count == train else 2]
            ]
            names = [*taken[0].arrays]
            whole = {n: torch.cat([e.arrays[n] for e in taken]).numpy() for n in names}
            return {**whole, _TARGET: torch.cat([e.target for e in taken]).numpy()}

        return [
            _Way("asked twice with the same rows,", everyone, repeated),
            _Way("with the rows in another order,", mixed, ask(in_order)),
            _Way("with another index,", everyone, ask(renamed)),
            *(
                _Way("for one row alone,", mixed[i : i + 1], ask(in_order.iloc[i : i + 1]))
                for i in range(min(_ALONE, count))
            ),
            _Way("among all rows of their split,", everyone, in_the_split),
            _Way("with only half of the rows,", everyone[: count // 2], ask(frame[: count // 2])),
            _Way("reloaded from its state (as JSON),", everyone, reloaded),
        ]


_ADVICE = (
    "make transform and target functions of each row by itself, with all that was learned in "
    "the preprocessor's state"
)


def _both_splits(subject: Subject) -> pd.DataFrame:
    """Rows of both splits: held-back ones hold what was not seen in training."""
    parts = [sample_of(part, _ROWS) for part in (subject.train, subject.validation)]
    if not parts[0].dtypes.equals(parts[1].dtypes):  # joined, both would have other types
        parts = parts[:1]
    return pd.concat(parts, ignore_index=True)


def _problem(subject: Subject, way: _Way, base: Arrays) -> str:
    """Say what is different, naming array and column; empty: nothing."""
    expected = {name: np.asarray(array)[way.rows] for name, array in base.items()}
    try:
        arrays = way.ask()
    except Exception as error:  # noqa: BLE001 (the user's code may raise anything)
        return f"it raises {type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    try:
        difference = first_difference(expected, arrays)
    except ValueError as why:
        return f"the tensors have another form: {why}"
    if difference is None:
        return ""
    name, row, column = difference
    was = expected[name].reshape(len(expected[name]), -1)[row, column]
    now = arrays[name].reshape(len(arrays[name]), -1)[row, column]
    if name == _TARGET:
        label = ", ".join(label_columns(subject.task))
        where = f"the target (column {label})"
    else:
        where = column_name(subject.preprocessor, name, expected[name].shape, column)
    return f"{where} of a row is {now:.6g} instead of {was:.6g}"
