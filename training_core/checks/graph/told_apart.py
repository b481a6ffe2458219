"""Columns of indices that the network cannot tell apart, though index 3 is another thing in each.

A table of embeddings that several columns share needs an offset for each: without it, and with
their vectors summed, exchanging two columns changes nothing. Where both columns hold the same kind
of thing (two teams, two products) that is how it should be, and so it is for a bag of words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

import torch
from torch import Tensor, nn

from training_core.checks.data.frames import copy_of, sample_of
from training_core.checks.data.responses import Response, responses_of
from training_core.checks.graph.calling import ROUNDING, change_by_row, largest, outputs_of
from training_core.checks.graph.inputs import Input, inputs_of
from training_core.checks.subject import Subject
from training_core.examples import Examples

ROWS, LEAST = 48, 8  # exchanged; with fewer rows nothing is said
FEW = 8  # columns of which all pairs are looked at; of more, neighbours
ALIKE = 0.5  # of rows: indices of one column's values in the other, and values in common
SLACK = 20.0  # of rounding: sums are added up in another order
MATTERS = 1e-3  # of the outputs' deviation that either column alone must move


@dataclass(frozen=True)
class Column:
    """A column of indices, and the one raw column that it is made of."""

    input: Input
    raw: str


def not_told_apart(subject: Subject, model: nn.Module) -> list[tuple[Column, Column]]:
    """Return pairs of columns that may be exchanged in all rows without any effect."""
    return [pair for pair in _pairs(subject) if _exchange_changes_nothing(subject, model, *pair)]


def _pairs(subject: Subject) -> Iterator[tuple[Column, Column]]:
    columns = _columns(subject)
    for one, other in combinations(columns, 2) if len(columns) <= FEW else pairwise(columns):
        if one.raw != other.raw and not _of_one_kind(subject, one, other):
            yield one, other


def _columns(subject: Subject) -> list[Column]:
    arrays = subject.examples.arrays
    inputs = [
        each
        for each in inputs_of(subject.examples, subject.preprocessor)
        if not arrays[each.array].is_floating_point()
        and arrays[each.array].dtype is not torch.bool
        and each.of(subject.examples).ndim == 1
        and len(torch.unique(each.of(subject.examples))) > 2
    ]
    if len(inputs) < 2:
        return []
    made_of: dict[tuple[str, int], list[Response]] = {}
    for response in responses_of(subject):
        places = [
            (array, column)
            for array, (columns, _) in response.changed.items()
            for column in columns
            if not arrays[array].is_floating_point()
        ]
        for place in places if len(places) == 1 else ():  # a text has many: a bag of words
            made_of.setdefault(place, []).append(response)
    owners = [(each, made_of.get((each.array, each.place), [])) for each in inputs]
    return [Column(each, found[0].column) for each, found in owners if len(found) == 1]


def _of_one_kind(subject: Subject, one: Column, other: Column) -> bool:
    """Say whether raw columns share values, or their values the same indices."""
    sets = [set(subject.train[column.raw].dropna().astype(str)) for column in (one, other)]
    if len(sets[0] & sets[1]) >= ALIKE * min(map(len, sets)):
        return True
    rows = copy_of(sample_of(subject.train, ROWS))
    put = rows.assign(**{one.raw: rows[other.raw].to_numpy()})
    try:
        made = subject.preprocessor.transform(put)
    except Exception:  # noqa: BLE001 (values of another type may raise anything: another kind)
        return False
    mine, theirs = (
        torch.from_numpy(made[c.input.array]).reshape(len(rows), -1)[:, c.input.place]
        for c in (one, other)
    )
    return float((mine == theirs).double().mean()) >= ALIKE


def _exchange_changes_nothing(
    subject: Subject, model: nn.Module, one: Column, other: Column
) -> bool:
    """Only with indices that both columns have, so that each stays within its table."""
    examples = subject.examples
    first, second = one.input.of(examples), other.input.of(examples)
    both = torch.isin(first, second) & torch.isin(second, first) & (first != second)
    chosen = both.nonzero().flatten()[:ROWS]
    if len(chosen) < LEAST:
        return False
    rows = examples.take(chosen)
    before = outputs_of(model, rows)
    moved = {
        which: change_by_row(before, outputs_of(model, _put(rows, one, other, which)))
        for which in ("both", "one", "other")
    }
    spread = float(before.std())
    alone = [float((moved[which] > MATTERS * spread).double().mean()) for which in ("one", "other")]
    limit = SLACK * ROUNDING * largest(before)
    return float(moved["both"].max()) <= limit and min(alone) > ALIKE


def _put(rows: Examples, one: Column, other: Column, which: str) -> Examples:
    """Put each column's indices, or those of one of them, into the other."""
    changed = rows.clone()
    if which in ("both", "one"):
        _write(one.input.of(changed), other.input.of(rows))
    if which in ("both", "other"):
        _write(other.input.of(changed), one.input.of(rows))
    return changed


def _write(into: Tensor, values: Tensor) -> None:
    into.copy_(values.to(into.dtype))
