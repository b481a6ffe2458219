"""No held-back example is one of the train split."""

from __future__ import annotations

import hashlib
import math
from collections import Counter

import numpy as np
import torch

from training_core.checks.contract import Check, Finding
from training_core.checks.data.arrays import flat
from training_core.checks.data.copies import copied
from training_core.checks.data.entities import entity_on_both_sides
from training_core.checks.data.times import between_in_time
from training_core.checks.data.windows import overlapping
from training_core.checks.subject import Subject
from training_core.examples import Examples

_LIMIT = 0.01  # share of held-back rows; CIFAR-10 shares some 3 % near duplicates with its tests
_LEAST = 3
_ERRORS = 5.0  # standard errors above the share of twins within train
_DISTINCT = 0.95  # share of different values among rows without a twin: nobody draws one twice
_JUDGED = 2_000  # rows in which values are counted
_TRIPLES = 20.0  # expected, before their absence says anything
_OVERLAPS = 0.3  # share of held-back windows; a split by time has some at its border


class NoSharedRows(Check):
    """Held-back rows that were trained on measure memory: Barz and Denzler 2020, arXiv:1902.00423.

    Rows of few different values have natural twins. What is no such twin: more than there are
    within train; a row whose continuous columns are all equal to another's; pairs without the
    triples that chance would have made as well; long rows that agree in all where they agree in
    half. And what is not bit for bit there, but as good as: windows that overlap with train's, rows
    of a customer that train knows, rows between two of train in time.
    """

    name = "no_shared_rows"
    looks_at = "held-back examples do not occur in train, nor rows that are as good as they"

    def look(self, subject: Subject) -> Finding:
        train, held_back = _digests(subject.examples), _digests(subject.held_back)
        known = set(train)
        shared = np.array([digest in known for digest in held_back])
        share, count = float(shared.mean()), int(shared.sum())
        natural = _within(train, len(held_back))
        said = (
            f"{count} of {len(held_back)} held-back examples ({share:.1%}) occur in train; of "
            f"train's own {natural:.1%} have a twin"
        )
        if not count:
            said = "no held-back example occurs in train"
            return self._akin(subject) or self.passed(said, measured=0.0, limit=_LIMIT)
        # Twins come in pairs, hence the 2; and both shares are of samples.
        rows = 1 / len(held_back) + 1 / len(train)
        pooled = (count + natural * len(train)) / (len(held_back) + len(train))
        error = math.sqrt(2 * pooled * (1 - pooled) * rows)
        more = share > natural + _ERRORS * error
        reason = "more than that explains" if more else _unnatural(subject, train, held_back)
        if reason and share > _LIMIT and count >= _LEAST:
            return self.failed(
                f"{said}: {reason}", measured=share, limit=_LIMIT,
                advice="remove duplicates before dividing the rows, or divide by group",
            )  # fmt: skip
        if reason:
            return self.warned(
                f"{said}: {reason}", measured=share, limit=_LIMIT,
                advice="remove duplicates before dividing the rows",
            )  # fmt: skip
        return self._akin(subject) or self.passed(said, measured=share, limit=_LIMIT)

    def _akin(self, subject: Subject) -> Finding | None:
        """Rows that are not equal to train's, and as good as known."""
        window = overlapping(subject.examples, subject.held_back)
        if window is not None and window.count >= _LEAST and window.share > _LIMIT:
            row, other = window.rows
            said = (
                f"{window.share:.0%} of the held-back windows in {window.array!r} overlap with one "
                f"of train by half or more, bit for bit: held-back row {row} is train row {other}, "
                f"{abs(window.lag)} positions {'later' if window.lag > 0 else 'earlier'}"
            )
            advice = "divide by recording, or by time with a gap as long as a window"
            say = self.failed if window.share > _OVERLAPS else self.warned
            return say(said, measured=window.share, limit=_OVERLAPS, advice=advice)
        entity = entity_on_both_sides(subject)
        if entity is not None:
            return self.warned(
                f"{entity.shared:.0%} of the held-back rows have a {entity.column!r} that has rows "
                f"in train too; for {entity.nearest:.0%} of them the nearest train row is one of "
                f"those, and labels are {entity.labels:.2f} times as far apart as any two rows'",
                measured=entity.nearest,
                advice=f"divide by group: split.by group, group [{entity.column}]",
            )
        between = between_in_time(subject)
        if between is not None:
            return self.warned(
                f"{between.between:.0%} of the held-back rows lie between train rows in "
                f"{between.column!r}, and the rows just before and after them tell "
                f"{between.explained:.0%} of their target",
                measured=between.explained,
                advice="divide by time: the model will serve rows that come after all of train's",
            )
        return None


def _digests(examples: Examples) -> list[bytes]:
    """One digest an example, of its inputs and its target."""
    digests = [hashlib.blake2b(digest_size=12) for _ in range(len(examples))]
    for part in [*examples.arrays.values(), examples.target]:
        numbers = part.float() + 0.0 if part.is_floating_point() else part  # minus zero is zero
        rows = np.ascontiguousarray(numbers.reshape(len(examples), -1).numpy())
        for digest, row in zip(digests, rows, strict=True):
            digest.update(row.data)
    return [digest.digest() for digest in digests]


def _within(train: list[bytes], count: int) -> float:
    """Share of train's examples that would be found in the rest, were `count` of them put aside.

    Expected over all ways of putting them aside; the rest is smaller than train, so a little less
    is found than in all of it, which is made up for.
    """
    count = min(count, len(train) // 2)
    aside = count / len(train)
    times = Counter(train)
    found = sum(times[digest] > 1 and 1 - aside ** (times[digest] - 1) for digest in train)
    return min(1.0, found / len(train) / (1 - aside))


def _unnatural(subject: Subject, train: list[bytes], held_back: list[bytes]) -> str:
    """Say why twins of such rows are not chance; empty: they may be."""
    times = Counter([*train, *held_back])
    alone = np.flatnonzero([times[digest] == 1 for digest in train])[:_JUDGED]
    continuous = 0
    for array in [*subject.examples.arrays.values(), subject.examples.target]:
        if not array.is_floating_point():
            continue
        columns = flat(array[torch.from_numpy(alone)])
        if len(columns) < 20:
            continue
        ordered = np.sort(columns, axis=0)
        distinct = 1 + (np.diff(ordered, axis=0) > 0).sum(axis=0)
        continuous += int((distinct >= _DISTINCT * len(columns)).sum())
    if continuous >= 2:
        return f"they agree in {continuous} columns in which otherwise no two rows do"
    counts = Counter(times.values())
    once, twice, more = counts[1], counts[2], sum(n for k, n in counts.items() if k > 2)
    # Drawn from a pool of equal rows, occurrences follow Poisson; unequal ones make more triples.
    expected = once * (2 * twice / once) ** 2 / 6 if once else float(twice)
    if expected > _TRIPLES and more < expected / 4:
        return f"{twice} examples occur twice, and {more} more often: copies, not chance"
    return copied(subject.examples, subject.held_back)
