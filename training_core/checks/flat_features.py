"""The network's own tensors as a flat table, for models that know only tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from training_core.examples import Examples
from training_core.task import PADDING

Table = npt.NDArray[np.float64]

_COLUMNS = 400  # of an array; more are drawn from
_CATEGORIES = 40  # different integers, at most, that are taken as categories
_WORDS = 300  # commonest tokens that are counted
_FREQUENCIES = 6


def flat_features(train: Examples, test: Examples) -> tuple[Table, Table]:
    """Return a row of numbers for each example of two sets, standardised by the first.

    Beside the arrays' own values, what tables do not show: integers one-hot, how often each token
    comes, and of images their profiles and frequencies, which stay when what they show moves.
    """
    count = len(train)
    blocks = []
    for name, array in train.arrays.items():
        blocks += _blocks(_joined(array, test.arrays[name]), count)
    table = np.concatenate(blocks, 1) if blocks else np.zeros((count + len(test), 1))
    return _standardised(table, count)


def position_features(train: Examples, test: Examples) -> tuple[Table, Table]:
    """Return a row for each position of sequences [N, T] that is no padding, as `flat_features`.

    It holds what stands there and one before, where arrays have positions.
    """
    count, length = len(train), _joined(train.target, test.target).shape[1]
    everyone = count + len(test)
    blocks: list[Table] = [np.broadcast_to(np.arange(float(length)), (everyone, length))[..., None]]
    for name, array in train.arrays.items():
        if array.ndim < 2 or array.shape[1] != train.target.shape[1]:
            continue
        both = _joined(array, test.arrays[name])
        values = both.reshape(len(both), length, -1)[:, :, :_COLUMNS].astype(np.float64)
        before = np.concatenate([np.zeros_like(values[:, :1]), values[:, :-1]], 1)
        blocks += [values, before]
    table = np.concatenate(blocks, 2)
    real = [(examples.target[:, :length] != PADDING).numpy() for examples in (train, test)]
    rows = np.concatenate([table[:count][real[0]], table[count:][real[1]]])
    many = int(real[0].sum())
    encoded = [_one_hot(rows[:, [i]], many) for i in range(rows.shape[1])]
    return _standardised(np.concatenate(encoded, 1), many)


def labels_of_positions(train: Examples, test: Examples) -> list[npt.NDArray[np.int64]]:
    """Return the labels that go with the rows of `position_features`."""
    length = _joined(train.target, test.target).shape[1]
    labels = [examples.target[:, :length].numpy() for examples in (train, test)]
    return [np.asarray(each[each != PADDING], dtype=np.int64) for each in labels]


def _joined(one: Tensor, other: Tensor) -> npt.NDArray[Any]:
    """Both, one after the other, cut to common lengths: texts may be padded to a set's longest."""
    fit = tuple(slice(0, min(a, b)) for a, b in zip(one.shape[1:], other.shape[1:], strict=True))
    return np.concatenate([one[(slice(None), *fit)].numpy(), other[(slice(None), *fit)].numpy()])


def _blocks(both: npt.NDArray[Any], count: int) -> list[Table]:
    """Return tables made of one array, each [N, columns]."""
    values = both.reshape(len(both), -1).astype(np.float64)
    blocks = [values if values.shape[1] <= _COLUMNS else values[:, _drawn(values.shape[1])]]
    whole = np.issubdtype(both.dtype, np.integer) and both.ndim <= 2
    if whole and values.shape[1] <= 50:
        blocks += [_one_hot(values[:, [i]], count) for i in range(values.shape[1])]
    if whole and values.shape[1] >= 5:
        tokens, times = np.unique(values[:count], return_counts=True)
        common = tokens[np.argsort(-times)[:_WORDS]]
        blocks.append(np.stack([(values == token).sum(1) for token in common], 1).astype(float))
    if both.ndim >= 3 and min(both.shape[-2:]) > 1:
        blocks.append(_of_images(both.astype(np.float64)))
    return blocks


def _of_images(images: Table) -> Table:
    """Return what is the same wherever it stands in the image: [N, columns]."""
    planes = images.reshape(len(images), -1, *images.shape[-2:])[:, :4]
    rows, columns = np.sort(planes.mean(3), 2), np.sort(planes.mean(2), 2)
    spectrum = np.abs(np.fft.rfft2(planes))[:, :, :_FREQUENCIES, :_FREQUENCIES]
    quantiles = np.quantile(planes.reshape(*planes.shape[:2], -1), [0, 0.1, 0.5, 0.9, 1], axis=2)
    parts = [rows, columns, spectrum, np.moveaxis(quantiles, 0, 2)]
    return np.concatenate([part.reshape(len(images), -1)[:, :_COLUMNS] for part in parts], 1)


def _one_hot(column: Table, count: int) -> Table:
    """A column of categories as ones and zeros; one of more different values as it is."""
    known = np.unique(column[:count])
    if len(known) > _CATEGORIES or (known != np.trunc(known)).any():
        return column
    return np.asarray(column == known, dtype=np.float64)


def _drawn(columns: int) -> npt.NDArray[np.int64]:
    return np.sort(np.random.default_rng(0).choice(columns, _COLUMNS, replace=False))


def _standardised(table: Table, count: int) -> tuple[Table, Table]:
    table = np.nan_to_num(table, posinf=0.0, neginf=0.0)
    mean, deviation = table[:count].mean(0), table[:count].std(0)
    kept = deviation > 1e-12
    if not kept.any():
        return np.zeros((count, 1)), np.zeros((len(table) - count, 1))
    scaled = np.clip((table[:, kept] - mean[kept]) / deviation[kept], -8, 8)
    return scaled[:count], scaled[count:]
