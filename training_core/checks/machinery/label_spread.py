"""How unevenly labels are spread over batches, against random orders."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

_ORDERS = 200  # random ones to compare with
_COLUMNS = 16  # of a target with many
_ENTRIES = 64  # of a sequence


def spread(target: Tensor, epochs: Sequence[Tensor], size: int) -> float:
    """Return by how many standard errors batch means of the label vary more than by chance.

    Args:
        target: First dimension N, of any kind of task.
        epochs: Orders of the N rows.
        size: Of a batch; an epoch's short last one is left out.
    """
    labels = _labels(target)
    if not labels.numel():  # all labels are alike
        return 0.0
    count = len(target) // size * size
    generator = torch.Generator().manual_seed(0)
    random = [torch.randperm(len(target), generator=generator) for _ in range(_ORDERS)]
    by_chance = torch.stack([_variance(labels[rows[:count]], size) for rows in random])
    found = torch.stack([_variance(labels[rows[:count]], size) for rows in epochs])
    error = float(by_chance.std()) / math.sqrt(len(epochs))
    if error < 1e-12:  # one batch
        return 0.0
    return (float(found.mean()) - float(by_chance.mean())) / error


def _variance(labels: Tensor, size: int) -> Tensor:
    """Variance of the batches' means, added up over columns; its cube root, which is about normal.

    E. B. Wilson, M. M. Hilferty 1931, "The distribution of chi-square".
    """
    variance = labels.view(-1, size, labels.shape[1]).mean(1).var(0, unbiased=False).sum()
    return variance.pow(1 / 3)


def _labels(target: Tensor) -> Tensor:
    """Return standardised columns that say what the labels are: float64 [N, columns]."""
    flat = target.reshape(len(target), -1)
    if target.is_floating_point():
        columns = flat[:, :_COLUMNS].double().nan_to_num()
        if flat.shape[1] == 1:  # ranks: a few huge values would decide alone
            columns = columns.argsort(0).argsort(0).double() if _many(columns) else columns
    else:
        classes, counts = torch.unique(flat, return_counts=True)
        common = classes[counts.argsort(descending=True)][:_COLUMNS]
        shares = [(flat[:, :_ENTRIES] == one).double().mean(1) for one in common]
        columns = torch.stack(shares, 1)
    deviations = columns.std(0, unbiased=False)
    return (columns - columns.mean(0))[:, deviations > 0] / deviations[deviations > 0]


def _many(columns: Tensor) -> bool:
    return len(torch.unique(columns)) > 10
