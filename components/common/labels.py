"""The label of each kind of task, as steps see it that have rows and no network.

| kind       | a row's `TARGET`                    | what a profile shows of it                   |
|------------|-------------------------------------|----------------------------------------------|
| binary     | 0 or 1                              | the number                                   |
| multiclass | the class's index                   | the class's name                             |
| multilabel | how many of its labels are yes      | each label's column, as 0 or 1               |
| regression | the number, if it is finite         | the number                                   |
| sequence   | tokens that are no padding          | the same, in the column `LABEL: tokens`      |

NULL, in each of them, is a row without a label: NaN, a class of -1, a sequence that is all padding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from training_core.errors import ConfigurationError

if TYPE_CHECKING:
    from training_core.task import Kind, Task

Target = Callable[[pd.DataFrame], npt.NDArray[Any]]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Label:
    """What is to be predicted, and in which columns it stands.

    Attributes:
        kind: Of the task.
        columns: Raw columns that hold it; more than one of a multilabel task only.
        target: `Task.target`: a function of those columns alone, row by row.
        classes: Names of the classes in the order of their indices; empty: they have none.
        is_input: Whether the network reads those columns as well, as a language model does.
        owner: The task's class, for what is said of it.
    """

    kind: Kind
    columns: tuple[str, ...]
    target: Target
    classes: tuple[str, ...] = ()
    is_input: bool = False
    owner: str = "the task"

    @classmethod
    def of(cls, task: Task) -> Label:
        """Return the label of a task."""
        columns = label_columns(task)
        return cls(
            kind=task.kind,
            columns=tuple(columns),
            target=task.target,
            classes=tuple(map(str, getattr(task, "classes", ()))),
            is_input=any(name in columns for name in task.preprocessor().columns),
            owner=type(task).__name__,
        )

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns that a profile shows of it.

        Of a sequence it is one more: the sequence itself may be an input, and stays as it is.
        """
        if self.kind == "sequence":
            return (f"{self.columns[0]}: tokens",)
        return self.columns

    @property
    def beside(self) -> set[str]:
        """Columns that do not describe a row, since they are what is to be predicted of it."""
        return {*self.shown, *(() if self.is_input else self.columns)}

    @property
    def has_classes(self) -> bool:
        """Whether a row is of one class of several, each of which every part needs."""
        return self.kind in ("binary", "multiclass")

    def name_of(self, index: float) -> str:
        """A class in words."""
        if index < len(self.classes):
            return self.classes[int(index)]
        return f"{index:g}"

    def numbers(self, frame: pd.DataFrame) -> Floats:
        """Return what the profile shows of rows, float64 [N, columns]; NaN: there is no label.

        Args:
            frame: The columns of the label, and no others.

        Raises:
            ConfigurationError: The task's target raises, or is not of the kind's shape.
        """
        target = self._asked(frame)
        if self.kind == "sequence":
            from training_core.task import PADDING

            tokens = (target != PADDING).sum(axis=1).astype(np.float64)[:, None]
            return np.where(tokens > 0, tokens, np.nan)
        values = target.astype(np.float64).reshape(len(frame), -1)
        if self.kind == "multiclass":
            return np.where(values < 0, np.nan, values)
        return np.where(np.isfinite(values), values, np.nan)

    def _asked(self, frame: pd.DataFrame) -> npt.NDArray[Any]:
        where = f"{self.owner}.target, asked for {len(frame)} values of {_named(self.columns)},"
        try:
            target = np.asarray(self.target(frame))
        except Exception as error:
            raise ConfigurationError(
                f"{where} raised {type(error).__name__}: {error}",
                hint="it must take whatever stands in these columns, in a frame that has no other: "
                "a value that is no label is NaN, a class of -1, or all padding",
            ) from error
        wanted: tuple[int, ...] = (len(frame),)
        if self.kind == "multilabel":
            wanted = (len(frame), len(self.columns))
        if self.kind == "sequence":
            wanted = (len(frame), *target.shape[1:2])
        whole = self.kind in ("multiclass", "sequence")
        fits = target.shape == wanted and (self.kind != "sequence" or target.ndim == 2)
        if not fits or (
            target.dtype.kind not in "iu" if whole else target.dtype.kind not in "fiub"
        ):
            raise ConfigurationError(
                f"{where} returned {target.dtype} of shape {list(target.shape)}",
                hint=f"a {self.kind} target is {_SHAPES[self.kind]} (training_core/task.py)",
            )
        return target


_SHAPES: dict[Kind, str] = {
    "binary": "float32 [N], 0 or 1",
    "multiclass": "int64 [N], the class",
    "multilabel": "float32 [N, K], 0 or 1",
    "regression": "float32 [N]",
    "sequence": "int64 [N, T], the token",
}


def label_columns(task: Task) -> list[str]:
    """Return the label's column, and those of the other labels where there are several."""
    if task.kind == "multilabel":
        return list(getattr(task, "labels", [task.label]))
    return [task.label]


def _named(columns: Sequence[str]) -> str:
    return ", ".join(map(repr, columns[:3])) + (" and others" if len(columns) > 3 else "")
