"""Which rows the checks of the loss look at."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from training_core.checks.subject import Subject
from training_core.examples import Examples
from training_core.feeds.order import order
from training_core.task import Kind
from training_core.untrained import untrained_outputs


def rows_within(subject: Subject, *, most: int, values: int) -> Examples:
    """Return examples drawn at random, `most` of them.

    Fewer where their outputs would have more numbers than `values` together; four at least.
    """
    return subject.batch(_count(subject, most, values))


def balanced_rows_within(subject: Subject, *, most: int, values: int) -> Examples:
    """Return examples as `rows_within`, as many of each class as far as there are enough."""
    count = _count(subject, most, values)
    return subject.examples.take(balanced_rows(subject.task.kind, subject.examples.target, count))


def _count(subject: Subject, most: int, values: int) -> int:
    two = untrained_outputs(subject.build(), subject.examples.take(slice(0, 2)))
    return max(4, min(most, values // max(1, two[:1].numel())))


def balanced_rows(kind: Kind, target: Tensor, count: int, *, seed: int = 0) -> Tensor:
    """Return rows of which each class has as many, as far as there are enough; int64 [count]."""
    mixed = order(seed=seed, epoch=0, count=len(target))
    if kind in ("regression", "sequence"):
        return mixed[:count]
    classes = pd.Series(classes_of(kind, target)[mixed].numpy())
    turn = classes.groupby(classes).cumcount().to_numpy()  # the how-manieth of its class
    return mixed[torch.from_numpy(np.argsort(turn, kind="stable")[:count].copy())]


def classes_of(kind: Kind, target: Tensor) -> Tensor:
    """Return each row's class, int64 [N]; with several labels, the first that it has, or -1."""
    if kind != "multilabel":
        return (target >= 0.5).long() if kind == "binary" else target.long()
    has = target >= 0.5
    return torch.where(has.any(1), has.long().argmax(1), -1)
