"""Which raw row an augmented example's inputs and its target come from, by experiment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from training_core.checks.data.arrays import flat
from training_core.examples import Examples

_TRIALS = 20  # bits of a row's code: two of 192 rows share one in 2 of 100 batches
_NOTICED = 0.2  # of the usual difference between rows: more than a minimum that all are padded with

Change = Callable[[Examples], Examples]


@dataclass(frozen=True)
class Provenance:
    """Rows that augmented examples are made of.

    Attributes:
        arrays: By name, the row that each example's array follows, int64 [N]; -1: none, or several.
        target: The same of its target.
    """

    arrays: dict[str, Tensor]
    target: Tensor

    @property
    def exchanged(self) -> dict[str, Tensor]:
        """By array, which examples have their inputs from one row and their target from another."""
        known = self.target >= 0
        return {
            name: known & (rows >= 0) & (rows != self.target) for name, rows in self.arrays.items()
        }

    def of_another(self, target: Tensor, sources: Tensor) -> Tensor:
        """Say which rows' inputs come from a row of another target than their target's, bool [N].

        An example made of others of its own class has the right label.
        """
        theirs, own = target[sources.clamp(min=0)], target[self.target.clamp(min=0)]
        return (theirs != own).flatten(1).any(1) if target.ndim > 1 else theirs != own


def provenance_of(augment: Change, raw: Examples, others: Examples) -> Provenance:
    """Replace random halves of the rows, and see which augmented examples answer.

    Exact: no neighbour is guessed. An example that changes whenever row j does, and never else, is
    made of row j; one that is mixed of two rows answers to both, and is left out.

    Args:
        augment: Draws the same each time it is called.
        raw: N rows.
        others: As many rows, which are put in the place of these.
    """
    generator = torch.Generator().manual_seed(0)
    put_in = torch.rand(_TRIALS, len(raw), generator=generator) < 0.5
    plain = augment(raw)
    answers: dict[str, list[Tensor]] = {name: [] for name in raw.arrays}
    of_target = []
    for chosen in put_in:
        arrays = {
            name: _put(array, others.arrays[name], chosen) for name, array in raw.arrays.items()
        }
        after = augment(Examples(arrays, raw.target, raw.units))
        for name, array in after.arrays.items():
            usual = _apart(raw.arrays[name], others.arrays[name])
            answers[name].append(_apart(plain.arrays[name], array) > _NOTICED * usual.mean())
        after = augment(Examples(raw.arrays, _put(raw.target, others.target, chosen), raw.units))
        of_target.append(_apart(plain.target, after.target) > 0)
    differs = {name: _apart(raw.arrays[name], others.arrays[name]) for name in raw.arrays}
    return Provenance(
        arrays={
            name: _sources(torch.stack(answers[name]), put_in, differs[name] > 0)
            for name in raw.arrays
        },
        target=_sources(torch.stack(of_target), put_in, _apart(raw.target, others.target) > 0),
    )


def with_other_targets(examples: Examples, pool: Examples) -> Examples:
    """Return as many rows of the pool, each with another target, as far as there are any."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.randint(len(pool), (len(examples),), generator=generator)
    for _ in range(20):
        alike = _apart(examples.target, pool.target[rows]) == 0
        again = torch.randint(len(pool), (len(examples),), generator=generator)
        rows = torch.where(alike, again, rows)
    return pool.take(rows)


def _put(into: Tensor, other: Tensor, chosen: Tensor) -> Tensor:
    return torch.where(chosen.view(-1, *[1] * (into.ndim - 1)), other, into)


def _apart(one: Tensor, other: Tensor) -> Tensor:
    """Return the mean difference in each row, float64 [N]."""
    difference = torch.from_numpy(flat(one) - flat(other)).abs()
    return difference.mean(1) if difference.shape[1] else torch.zeros(len(one)).double()


def _sources(answers: Tensor, put_in: Tensor, differs: Tensor) -> Tensor:
    """Find each column of `answers` among those of `put_in`, bool [trials, N]."""
    same = (answers[:, :, None] == put_in[:, None, :]).all(0) & differs
    return torch.where(same.sum(1) == 1, same.long().argmax(1), -1)
