"""What may be wrong with raw columns on their way to the tensors: each function yields it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from training_core.checks.data.arrays import (
    Numbers,
    column_name,
    column_names,
    flat,
    is_index,
    thinned,
)
from training_core.checks.data.cells import responses_of_cells
from training_core.checks.data.frames import is_number
from training_core.checks.data.problem import Problem
from training_core.checks.data.responses import Response, line_of, responses_of
from training_core.checks.data.saw_teeth import is_cycle, is_of_a_type, is_round, period_of
from training_core.checks.subject import Subject

_MODE = 0.2  # share of the rows of a category's most frequent value, which no one calls rare
_ONE = 0.95  # share of the rows that a column's tensors are the same for
_SATURATED = 3  # columns, of half of all: one may be meant to say that something is rare


def of_responses(subject: Subject) -> Iterator[Problem]:
    """Raw columns that do not arrive, or arrive overflowed or with another column's statistics."""
    responses = responses_of(subject)
    for response in responses:
        if response.is_dead:
            yield _dead(subject, response)
        else:
            yield from _overflow(subject, response, in_cells=False)
    for response in responses_of_cells(subject):
        yield from _overflow(subject, response, in_cells=True)
    yield from _of_other_columns(subject, responses)
    yield from _saturated(subject, responses)


def _dead(subject: Subject, response: Response) -> Problem:
    """Named among the tensors, it is meant to arrive; a key that is only read may not be."""
    raw = subject.train[response.column]
    named = any(
        response.column in column_names(subject.preprocessor, name, tuple(array.shape))
        for name, array in subject.examples.arrays.items()
    )
    rare = not is_number(raw) and float(raw.value_counts(normalize=True).iloc[0]) < _MODE
    return Problem(
        fails=named and not rare,
        message=f"the raw column {response.column!r} has {raw.nunique()} values, and no tensor "
        "changes with it",
        advice="look at how transform reads it, or take it out of the columns",
        measured=0.0, limit=1.0,
    )  # fmt: skip


def _overflow(subject: Subject, response: Response, *, in_cells: bool) -> Iterator[Problem]:
    """Numbers that begin again as the raw one grows."""
    found = _saw_tooth(response)
    if found is None:
        return
    name, column, period = found
    if is_cycle(period):
        return
    index = is_index(subject.examples.arrays[name])
    which = column_name(
        subject.preprocessor, name, tuple(subject.examples.arrays[name].shape), column
    )
    # A pixel that is made k times as bright in its byte.
    of_a_byte = in_cells and abs(256 / period - round(256 / period)) < 1e-3
    if index and not (is_of_a_type(period) or of_a_byte):
        return  # the place of "10" in a sorted vocabulary is before that of "9"
    # A number of which 256 groups are made is no text of 300 words.
    meant = index and not in_cells
    yield Problem(
        fails=not meant and (is_of_a_type(period) or of_a_byte or not is_round(period)),
        message=f"{which} grows with the raw column {response.column!r} and begins again every "
        f"{period:.6g}: a saw-tooth, as numbers are that do not fit into their type",
        advice="use a type that holds the raw numbers",
        measured=period,
    )


def _saw_tooth(response: Response) -> tuple[str, int, float] | None:
    """Return array, column and period of a tensor that begins again and again."""
    if not is_number(response.values):
        return None
    raw = response.values.to_numpy(dtype=np.float64)
    for name, (columns, answers) in response.changed.items():
        for column, answer in zip(columns, answers.T, strict=True):
            period = period_of(raw, answer)
            if period is not None:
                return name, column, period
    return None


def _saturated(subject: Subject, responses: list[Response]) -> Iterator[Problem]:
    """Numbers of many values of which the tensors keep one, as after a clip at the wrong place.

    All tensors that a column changes are looked at together: of twenty columns for twenty groups,
    each is 0 for nearly every row.
    """
    arrays = {name: flat(array) for name, array in thinned(subject.examples).items()}
    judged, found = 0, []
    for response in responses:
        if response.is_dead or not is_number(response.values):
            continue
        raw = _float(subject.train[response.column])
        known = np.isfinite(raw)
        if _most(raw[known]) > _MODE:
            continue
        judged += 1
        weights = np.random.default_rng(0)
        parts = [
            arrays[name][:, columns] @ weights.normal(size=len(columns))
            for name, (columns, _) in response.changed.items()
        ]
        mixed = np.sum(parts, axis=0)
        share = _most(mixed[known[: len(mixed)]])
        if share > _ONE:
            found.append((share, response.column))
    if len(found) >= _SATURATED and len(found) >= 0.5 * judged:
        share, column = max(found)
        yield Problem(
            fails=True,
            message=f"{len(found)} of {judged} raw columns of many numbers arrive as one value: "
            f"{column!r} does for {share:.1%} of the rows",
            advice="standardise with the mean and deviation of these rows, and clip far outside "
            "of them",
            measured=share, limit=_ONE,
        )  # fmt: skip


def _most(values: Numbers) -> float:
    """Return the share of the most frequent value."""
    _, counts = np.unique(values, return_counts=True)
    return float(counts.max() / len(values)) if len(values) else 0.0


def _of_other_columns(subject: Subject, responses: list[Response]) -> Iterator[Problem]:
    """A number standardised with what is exactly another column's mean or deviation."""
    responses = [response for response in responses if is_number(response.values)]
    known = {r.column: _finite(subject.train[r.column]) for r in responses}
    means = {column: float(values.mean()) for column, values in known.items()}
    deviations = {column: float(values.std()) for column, values in known.items()}
    for response in responses:
        own = response.column
        raw = response.values.to_numpy(dtype=np.float64)
        for name, (columns, answers) in response.changed.items():
            line = line_of(raw, answers[:, 0])
            if line is None or not deviations[own]:
                continue
            centre, scale = -line[1] / line[0], abs(1 / line[0])
            wrong = _whose(own, centre, scale, means, deviations)
            if wrong:
                array = subject.examples.arrays[name]
                which = column_name(subject.preprocessor, name, tuple(array.shape), columns[0])
                yield Problem(
                    fails=True,
                    message=f"{which} is made of {own!r} with the {wrong}",
                    advice="standardise each column with its own mean and deviation",
                )


def _whose(
    own: str, centre: float, scale: float, means: dict[str, float], deviations: dict[str, float]
) -> str:
    """Say whose statistics these are, if they are clearly another's; empty: nothing to say."""
    spread = deviations[own]
    off_centre = abs(centre - means[own]) > 0.25 * spread
    off_scale = not 1 / 1.3 < scale / spread < 1.3
    for other in means:
        if other == own or not deviations[other]:
            continue
        if off_centre and abs(centre - means[other]) <= 1e-4 * deviations[other] and centre != 0:
            return f"mean of {other!r} ({centre:.4g} instead of {means[own]:.4g})"
        if off_scale and abs(scale / deviations[other] - 1) <= 1e-4:
            return f"deviation of {other!r} ({scale:.4g} instead of {spread:.4g})"
    if off_scale and not off_centre and abs(scale / spread**2 - 1) <= 1e-3:
        return f"variance ({scale:.4g}) for its deviation ({spread:.4g})"
    return ""


def _finite(values: pd.Series) -> Numbers:
    numbers = _float(values)
    return numbers[np.isfinite(numbers)]


def _float(values: pd.Series) -> Numbers:
    return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
