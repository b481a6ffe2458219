"""The label reaches the network as the target, and by no other way."""

from __future__ import annotations

import contextlib

import numpy as np
import pandas as pd
import torch

from training_core.augmentation import augmentation_of
from training_core.checks.contract import Check, Finding, NotApplicable
from training_core.checks.data.arrays import Numbers, column_name, first_difference, flat, is_index
from training_core.checks.data.filled import filled_by_class
from training_core.checks.data.frames import copy_of, label_columns, sample_of
from training_core.checks.data.group_means import group_mean
from training_core.checks.data.own_labels import LIMIT, SOME, own_labels
from training_core.checks.data.telling import (
    TOO_GOOD,
    monotone_in,
    ranks_well,
    rates_well,
    same_as_classes,
)
from training_core.checks.subject import Subject
from training_core.examples import Examples
from training_core.task import PADDING, Arrays

_ROWS = 256
_JUDGED = 4_000  # rows in which columns are held against the target; fewer of wide arrays
_CELLS = 2_000_000
_LABELS = 64  # classes or labels looked at one by one


class LabelIsNoInput(Check):
    """Leakage, after Kaufman et al. 2012: the target, or what follows from it, among the inputs."""

    name = "label_is_no_input"
    looks_at = "the tensors are the same without the label, and none of them alone knows the target"

    def look(self, subject: Subject) -> Finding:
        labels = label_columns(subject.task)
        read = [label for label in labels if label in subject.preprocessor.columns]
        if subject.task.kind == "sequence":
            return self._sequence(subject, read)
        if read:
            return self.failed(
                f"the preprocessor's columns hold the label {read[0]!r}", advice=_TAKE_OUT
            )
        reached = _reached_by(subject, labels)
        if reached:
            return self.failed(
                f"{reached} changes with the label ({', '.join(labels)})", advice=_TAKE_OUT
            )
        width = sum(array[0].numel() for array in subject.examples.arrays.values())
        examples = subject.batch(max(100, min(_JUDGED, _CELLS // max(1, width))), seed=3)
        arrays = {name: array for name, array in examples.arrays.items() if array.numel()}
        examples = Examples(arrays, examples.target, examples.units)
        equal = _equal_column(subject, examples)
        if equal:
            return self.failed(f"{equal} is the target under another name", advice=_TAKE_OUT)
        own = self._filled(subject) or self._group(subject) or self._own(subject)
        if own is not None:
            return own
        how_well, column = _best_column(subject, examples)
        if how_well > TOO_GOOD:
            return self.warned(
                f"{column} alone tells {how_well:.4f} of the target",
                measured=how_well, limit=TOO_GOOD,
                advice="find out whether it is known when the model serves",
            )  # fmt: skip
        return self.passed(
            f"without the label the tensors are the same; no column alone tells more than "
            f"{how_well:.3f} of the target",
            measured=how_well, limit=TOO_GOOD,
        )  # fmt: skip

    def _sequence(self, subject: Subject, read: list[str]) -> Finding:
        examples = subject.batch(_ROWS, seed=3)
        own = _same_positions(examples)
        if own:  # what is hidden from the network may be hidden by the augmentation
            own = _same_positions(augmentation_of(subject.task, seed=0)(examples, sample=0, part=0))
        if own:
            return self.failed(
                f"the target at each position is the input at that position ({own!r})",
                advice="let the target be the following token",
            )
        if read:
            raise NotApplicable(f"the label {read[0]!r} is an input by design")
        reached = _reached_by(subject, label_columns(subject.task))
        if reached:
            return self.failed(f"{reached} changes with the label", advice=_TAKE_OUT)
        return self._own(subject) or self.passed("without the label the tensors are the same")

    def _filled(self, subject: Subject) -> Finding | None:
        """What stands where nothing was known may have been taken from the label."""
        found = filled_by_class(subject)
        if found is None:
            return None
        values = " and ".join(f"{value:.6g}" for value in found.values[:3])
        return self.failed(
            f"{found.share:.1%} of the rows have one of {len(found.values)} values of "
            f"{found.column!r} ({values}) that occur in rows of one class each: nulls filled by "
            "class",
            measured=found.share,
            limit=0.0,
            advice="leave nulls null, or let fit learn one value for all of them",
        )

    def _group(self, subject: Subject) -> Finding | None:
        """A mean over the whole table holds the label of the very row."""
        found = group_mean(subject)
        if found is None:
            return None
        return self.failed(
            f"{found.column!r} is the mean or the sum of the label over all rows with the same "
            f"{found.key!r}, in {found.share:.0%} of the rows whose group has different labels: it "
            "holds each row's own label",
            measured=found.share,
            limit=0.0,
            advice="take the labels of earlier rows alone, as they are known when the model serves",
        )

    def _own(self, subject: Subject) -> Finding | None:
        """What fit takes from labels may come back as a row's own one."""
        found = own_labels(subject)
        if found is None:
            return None
        said = (
            f"fitted on labels drawn at random, {found.column} explains {found.share:.0%} of the "
            f"very labels of the rows it was fitted on, and {found.elsewhere:.0%} of those left "
            "out: a train row's features hold its own label, which a held-back row's do not"
        )
        if found.lasting > LIMIT:
            return self.failed(said, measured=found.share, limit=LIMIT, advice=_OUT_OF_FOLD)
        return self.warned(said, measured=found.share, limit=SOME, advice=_OUT_OF_FOLD)


_TAKE_OUT = "take the label out of the inputs"
_OUT_OF_FOLD = (
    "encode train rows by the labels of other rows (out of fold), smooth small groups towards the "
    "mean, or let the network learn an embedding"
)


def _reached_by(subject: Subject, labels: list[str]) -> str:
    """Name the first tensor column that changes with the label; empty: none."""
    frame = sample_of(subject.train, _ROWS).reset_index(drop=True)
    there = [label for label in labels if label in frame.columns]
    base = subject.preprocessor.transform(copy_of(frame))
    others = copy_of(frame)
    moved = np.random.default_rng(0).permutation(len(frame))
    for label in there:
        others[label] = frame[label].iloc[moved].to_numpy()
    changed = [_difference(subject, base, others)]
    with contextlib.suppress(Exception):  # a transform that wants the column got another row's
        changed.append(_difference(subject, base, copy_of(frame).drop(columns=there)))
    return next((name for name in changed if name), "")


def _difference(subject: Subject, base: Arrays, frame: pd.DataFrame) -> str:
    difference = first_difference(base, subject.preprocessor.transform(frame))
    if difference is None:
        return ""
    name, _, column = difference
    return column_name(subject.preprocessor, name, base[name].shape, column)


def _targets(subject: Subject, examples: Examples) -> Numbers:
    """One column for each label, or each of the most frequent classes."""
    target = flat(examples.target)
    if subject.task.kind == "multiclass":
        classes, counts = np.unique(target, return_counts=True)
        kept = classes[np.argsort(-counts, kind="stable")[:_LABELS]]
        return np.asarray(target == kept, dtype=np.float64)
    return target[:, :_LABELS]


def _equal_column(subject: Subject, examples: Examples) -> str:
    """Name the first tensor column that is the target, one of its classes, or rises with it."""
    target, targets = flat(examples.target), _targets(subject, examples)
    for name, array in examples.arrays.items():
        columns = flat(array)
        same = np.zeros(columns.shape[1], dtype=bool)
        if subject.task.kind == "regression":
            same |= monotone_in(columns, target[:, 0])
        else:
            if subject.task.kind == "multiclass":
                same |= same_as_classes(columns, target[:, 0])
            for label in targets.T:
                same |= same_as_classes(columns, label)
        if same.any():
            place = int(np.flatnonzero(same)[0])
            return column_name(subject.preprocessor, name, tuple(array.shape), place)
    return ""


def _best_column(subject: Subject, examples: Examples) -> tuple[float, str]:
    """Return how much of the target the best single column tells, and its name."""
    targets, kind = _targets(subject, examples), subject.task.kind
    best, where = 0.0, ""
    for name, array in examples.arrays.items():
        columns = np.nan_to_num(flat(array))
        told = np.zeros(columns.shape[1])
        if kind != "multiclass":  # the classes of blobs may well be in order of one column
            for label in targets.T:
                told = np.maximum(told, ranks_well(columns, label, classes=kind != "regression"))
        if is_index(array) and columns.shape[1] <= _LABELS:
            rates = [rates_well(column, targets) for column in columns.T]
            told = np.maximum(told, rates)
        place = int(told.argmax()) if told.size else 0
        if told.size and told[place] > best:
            best = float(told[place])
            where = column_name(subject.preprocessor, name, tuple(array.shape), place)
    return best, where


def _same_positions(examples: Examples) -> str:
    """Name an input that is the target, wherever that counts; empty: none is."""
    target = examples.target
    counts = target != PADDING
    for name, array in examples.arrays.items():
        if (
            array.shape == target.shape
            and not torch.is_floating_point(array)
            and len(torch.unique(target[counts])) > 1
            and bool((array[counts] == target[counts]).all())
        ):
            return name
    return ""
