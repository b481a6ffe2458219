"""The user's own rule: `Task.rule`, what people would say without a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from components.common.labels import label_columns
from components.common.runnable import has_rule
from components.train_baseline.contract import Baseline, Floats, Ground, Predictions
from training_core.errors import ConfigurationError

_SUM_TOLERANCE = 1e-3  # of the probabilities of a row's classes; float16 is off by 5e-4


class Rule(Baseline):
    """It learns nothing, and never sees the label."""

    name = "rule"

    def why_absent(self, ground: Ground) -> str:
        return "" if has_rule(ground.task) else "the task brings none"

    def fit(self, ground: Ground) -> Predictions | None:
        found = {part: _asked(ground, part) for part in ground.scored}
        silent = [part for part, predicted in found.items() if predicted is None]
        if silent and len(silent) < len(found):
            raise _fault(ground, f"answers None for the {silent[0]} rows, but not for all parts")
        return {part: p for part, p in found.items() if p is not None} or None


def _asked(ground: Ground, part: str) -> Floats | None:
    """What the rule says of a part's rows, checked."""
    labels = label_columns(ground.task)
    rows = ground.scored[part].drop(columns=labels, errors="ignore")
    try:
        said: Any = ground.task.rule(rows)
    except Exception as error:
        raise _fault(
            ground,
            f"raised {type(error).__name__}: {error} for the {part} rows",
            hint=f"it is asked without the label ({', '.join(labels)}), and of raw rows",
        ) from error
    if said is None:
        return None
    try:
        predicted = np.asarray(said, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise _fault(ground, f"does not answer with numbers: {error}") from error
    _check_shape(ground, predicted, rows=rows)
    _check_range(ground, predicted)
    return predicted


def _check_shape(ground: Ground, predicted: Floats, *, rows: pd.DataFrame) -> None:
    one_each = ground.task.kind in ("binary", "regression")
    wanted = (len(rows),) if one_each else (len(rows), ground.outputs)
    words = "a number" if one_each else f"{ground.outputs} numbers"
    if predicted.shape != wanted:
        raise _fault(
            ground,
            f"answers with shape {list(predicted.shape)}, and {list(wanted)} is needed: "
            f"{words} for each of {len(rows)} rows",
        )


def _check_range(ground: Ground, predicted: Floats) -> None:
    kind = ground.task.kind
    _refuse(ground, ~np.isfinite(predicted), predicted, "is not a finite number")
    if kind == "regression":
        return
    _refuse(ground, (predicted < 0) | (predicted > 1), predicted, "is no probability, 0 to 1")
    if kind == "multiclass":
        sums = predicted.sum(axis=1)
        wrong = np.abs(sums - 1) > _SUM_TOLERANCE
        _refuse(ground, wrong, sums, "is the sum of the classes' probabilities, not 1")


def _refuse(ground: Ground, wrong: Any, values: Floats, words: str) -> None:
    """Name the first value that is wrong, and count the rows that have one."""
    if not wrong.any():
        return
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    rows = int(wrong.reshape(len(wrong), -1).any(axis=1).sum())
    raise _fault(
        ground,
        f"is wrong for {rows} of {len(wrong)} rows, the first of them row {place[0]}: "
        f"{values[place]:g} {words}",
    )


def _fault(ground: Ground, words: str, *, hint: str = "") -> ConfigurationError:
    name = type(ground.task).__name__
    return ConfigurationError(
        f"{name}.rule {words}",
        hint=hint
        or f"mend {name}.rule; the task contract says what a {ground.task.kind} "
        "prediction is (training_core/task.py)",
    )
