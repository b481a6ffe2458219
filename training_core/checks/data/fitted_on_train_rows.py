"""What the preprocessor has learned comes from the rows that it was given, and from no others."""

from __future__ import annotations

import numpy as np
import pandas as pd

from training_core.checks.contract import Check, Finding
from training_core.checks.data.arrays import Numbers
from training_core.checks.data.frames import copy_of, label_columns, written
from training_core.checks.data.learned import Leaf, is_computed, leaves_of, moved, statistics_of
from training_core.checks.subject import Subject

_SAME = 1e-9
_EXACT = 1e-6  # a state may hold 32-bit numbers
_ERRORS = 4.5  # standard errors within which a statistic of other rows of the kind lies: 3 √2
_OTHERS = (0.6, 0.8, 1.25, 1.6)  # times the number: how many of these agree by luck


class FittedOnTrainRows(Check):
    """Fitted on other rows, a preprocessor learns something else; what stays came from elsewhere.

    Kaufman et al. 2012 call it leakage when statistics of held-back rows reach the training.
    """

    name = "fitted_on_train_rows"
    looks_at = "fitted on other rows it learns other numbers, and on the same rows the same"

    def look(self, subject: Subject) -> Finding:
        rows = copy_of(subject.train)
        learned = leaves_of(subject.task.preprocessor().fit(rows))
        changed, added = written(subject.train, rows)
        if changed:
            return self.failed(
                f"fit writes to the frame it is given: {', '.join(changed)}",
                advice="work on a copy of the column",
            )
        others = _fits_on_other_rows(subject)
        unmoved = {
            place: value
            for place, value in learned.items()
            if isinstance(value, float)
            and is_computed(value)
            and all(_same(value, other.get(place)) for other in others)
        }
        if others and unmoved:
            return self._from_elsewhere(subject, unmoved)
        again = leaves_of(subject.task.preprocessor().fit(copy_of(subject.train)))
        differs = next((p for p in learned if not _same(learned[p], again.get(p))), None)
        if differs is not None or len(again) != len(learned):
            return self.warned(
                f"fitted twice on the same rows it learns two things ({differs or 'its size'})",
                advice="take chance out of fit, or seed it",
            )
        if added:
            return self.warned(
                f"fit adds columns to the frame it is given: {', '.join(added)}",
                advice="work on a copy of the frame",
            )
        return self.passed(
            f"{len(learned)} values learned; fitted on other rows, no calculated number stays"
        )

    def _from_elsewhere(self, subject: Subject, unmoved: dict[str, float]) -> Finding:
        places, values = list(unmoved), np.array(list(unmoved.values()))
        everything = pd.concat([subject.train, subject.validation], ignore_index=True)
        names, all_rows, errors = statistics_of(everything)
        said = f"{len(values)} learned numbers stay the same whatever rows fit is given"
        for place, value in unmoved.items():
            agrees = np.abs(all_rows - value) <= _EXACT * abs(value)
            if agrees.any():
                return self.failed(
                    f"{said}: {place} = {value:.6g} is the {names[int(agrees.argmax())]} of train "
                    "and validation together",
                    measured=float(len(values)), limit=0.0,
                    advice="fit on the rows that fit is given",
                )  # fmt: skip
        # All others would be near to something: there are many of them.
        plain = [name.startswith(("mean of '", "deviation of '")) for name in names]
        all_rows, errors = all_rows[plain], errors[plain]
        near = _near(values, all_rows, errors)
        luck = np.concatenate([_near(values * other, all_rows, errors) for other in _OTHERS])
        example = f"{places[0]} = {values[0]:.6g}"
        if near.sum() >= 2 and near.mean() >= 0.5 and luck.mean() <= near.mean() / 2:
            return self.failed(
                f"{said}, and were learned from rows like these: {example}",
                measured=float(len(values)), limit=0.0,
                advice="fit on the rows that fit is given",
            )  # fmt: skip
        return self.warned(
            f"{said}: {example}",
            measured=float(len(values)), limit=0.0,
            advice="if they were learned from data, fit them on the rows that fit is given",
        )  # fmt: skip


def _fits_on_other_rows(subject: Subject) -> list[dict[str, Leaf]]:
    """States fitted on either half of the rows, and on rows whose numbers are others.

    A fit that these rows are too few or too odd for is left out.
    """
    half = len(subject.train) // 2
    labels = label_columns(subject.task)
    fitted = []
    for rows in (
        subject.train[:half],
        subject.train[half:],
        moved(subject.train, but=labels),
    ):
        try:
            fitted.append(leaves_of(subject.task.preprocessor().fit(copy_of(rows))))
        except Exception:  # noqa: BLE001, S112 (the user's code may raise anything)
            continue
    return fitted


def _same(value: Leaf, other: Leaf) -> bool:
    if isinstance(value, float | int) and isinstance(other, float | int):
        if value != value or other != other:
            return value != value and other != other
        return abs(value - other) <= _SAME * max(abs(value), abs(other))
    return value == other


def _near(values: Numbers, statistics: Numbers, errors: Numbers) -> np.ndarray:
    """Say which values lie within the sampling error of a statistic."""
    if not len(statistics):
        return np.zeros(len(values), dtype=bool)
    distance = np.abs(values[:, None] - statistics) <= _ERRORS * errors
    return np.asarray(distance.any(axis=1))
