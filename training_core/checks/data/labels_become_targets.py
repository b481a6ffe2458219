"""Each value of the label becomes a target, unless it stands for none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from training_core.checks.contract import Check, Finding, NotApplicable
from training_core.checks.data.variants import is_marked_number, plainly
from training_core.checks.lost_labels import LostLabel
from training_core.checks.subject import Subject

_FAILS, _WARNS = 0.01, 0.05  # of the rows
_NONE = {
    "", "na", "nan", "none", "null", "nil", "unknown", "missing", "undefined", "unlabelled",
    "unlabeled", "notavailable", "notapplicable", "tbd", "pending", "open",
}  # fmt: skip
_ANSWERS = {"yes", "no", "true", "false", "y", "n", "t", "f", "on", "off"}


class LabelsBecomeTargets(Check):
    """A class that is spelt otherwise in the rows has no target, and its rows are left out.

    pandas gives a value that is in no list the code -1, and `to_numeric` gives NaN for `yes`: both
    mean "not labelled yet", and all that follows is trained and judged without these rows.
    """

    name = "labels_become_targets"
    looks_at = "each value of the label becomes a target, unless it stands for none"

    def look(self, subject: Subject) -> Finding:
        if subject.task.kind == "sequence":
            raise NotApplicable("a sequence marks the positions that have no target itself")
        lost = [each for each in subject.lost_labels if plainly(each.value) not in _NONE]
        share = sum(each.share for each in lost)
        wrong = [(each, why) for each in lost if (why := _why(subject, each))]
        surely = sum(each.share for each, _ in wrong)
        if surely >= _FAILS:
            first, why = wrong[0]
            return self.failed(
                f"{surely:.1%} of the rows are left out: {first.column!r} says {first.value!r}, "
                f"for which the task has no target{why}",
                advice="spell the classes as the rows do, or let target() read every value",
                measured=surely, limit=_FAILS,
            )  # fmt: skip
        if share >= _WARNS and (texts := [each for each in lost if _is_judged(subject, each)]):
            return self.warned(
                f"{share:.1%} of the rows are left out: {texts[0].column!r} says "
                f"{texts[0].value!r}, for which the task has no target",
                advice="if it means no label, set it to null in the data; else let target() read "
                "it",
                measured=share, limit=_WARNS,
            )  # fmt: skip
        for label, first, second in _joined(subject):
            return self.failed(
                f"{label!r} says {first!r} and {second!r}, and all rows have the same target",
                advice="let target() tell them apart: bool('False'), for one, is true",
                measured=1.0, limit=1.0,
            )  # fmt: skip
        filled = _nulls_with_a_target(subject)
        if filled >= _WARNS:
            return self.warned(
                f"{filled:.1%} of the rows have no {subject.task.label!r}, and the task makes a "
                "target of that: what is not known yet is trained as an answer",
                advice="return NaN for nulls from target(), or write what they mean into the data",
                measured=filled, limit=_WARNS,
            )  # fmt: skip
        said = f", but for {share:.2%} of the rows" if share else ""
        return self.passed(f"each value of the label is a target{said}")


def _joined(subject: Subject) -> Iterator[tuple[str, Any, Any]]:
    """Yield labels of several frequent values of which the target knows one, and two of these."""
    task, rows = subject.task, subject.train
    names = getattr(task, "labels", ()) if task.kind == "multilabel" else [task.label]
    target = subject.examples.target.reshape(len(rows), -1)
    for place, name in enumerate(names):
        if name not in rows or target.shape[1] != len(names):
            continue
        values = [value for value in rows[name] if pd.api.types.is_scalar(value)]
        shares = pd.Series(values, dtype=object).value_counts(normalize=True)
        frequent = [value for value, share in shares.items() if share >= _FAILS]
        if len(frequent) > 1 and bool((target[:, place] == target[0, place]).all()):
            yield name, frequent[0], frequent[1]


def _nulls_with_a_target(subject: Subject) -> float:
    """Return the share of rows whose label is null; rows without a target are not among them."""
    rows = pd.concat([subject.train, subject.validation])
    label = subject.task.label
    if subject.task.kind == "multilabel" or label not in rows:
        return 0.0
    return float(rows[label].isna().mean())


def _why(subject: Subject, lost: LostLabel) -> str:
    """Say why a value is surely meant to be a target; empty: it may stand for none."""
    classes = list(getattr(subject.task, "classes", ()))
    if classes:
        twin = next((c for c in classes if plainly(c) == plainly(lost.value)), None)
        if twin is not None:
            return f", which calls it {twin!r}"
        rows = pd.concat([subject.train, subject.validation])
        present = set(rows[subject.task.label]) if subject.task.label in rows else set(classes)
        empty = [each for each in classes if each not in present]
        return f", while its class {empty[0]!r} has no rows" if empty and _is_frequent(lost) else ""
    if isinstance(lost.value, str) and subject.task.kind in ("binary", "multilabel"):
        return ", which reads numbers" if plainly(lost.value) in _ANSWERS else ""
    return ", which reads plain numbers" if is_marked_number(lost.value) else ""


def _is_frequent(lost: LostLabel) -> bool:
    return lost.share >= _FAILS


def _is_judged(subject: Subject, lost: LostLabel) -> bool:
    """Say whether a value is worth a word: a number without a target was looked at and let go."""
    return isinstance(lost.value, str) or bool(getattr(subject.task, "classes", ()))
