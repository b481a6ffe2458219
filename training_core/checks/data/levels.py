"""Pictures and signals whose values mostly become one value on their way to the tensors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from training_core.checks.data.arrays import Numbers, channels_of, flat
from training_core.checks.data.frames import copy_of, is_plain, label_columns, sample_of
from training_core.checks.data.nested import dense
from training_core.checks.data.problem import Problem
from training_core.checks.subject import Subject

_ROWS = 64
_MORE, _RATHER_MORE = 0.6, 0.4  # of the values, joined to the most frequent one
_THRESHOLD = 0.95  # of two values at most are one: an image made black and white has more of both


def of_levels(subject: Subject) -> Iterator[Problem]:
    """Of many values of a cell's elements nearly all become one, as after `pixels // 255`.

    Looked at where a tensor has a place for each element: then nothing is padding.
    """
    labels = label_columns(subject.task)
    for column in dict.fromkeys(subject.preprocessor.columns):
        if column in labels or column not in subject.train or is_plain(subject.train[column]):
            continue
        rows = sample_of(subject.train, _ROWS, seed=8).reset_index(drop=True)
        cells = [dense(cell) for cell in rows[column]]
        known = [cell for cell in cells if cell is not None]
        if len(known) < len(cells) or len({cell.shape for cell in known}) != 1:
            continue
        shape = (len(known), *known[0].shape)
        raw = np.stack([np.ravel(cell).astype(np.float64) for cell in known])
        for name, array in subject.preprocessor.transform(copy_of(rows)).items():
            made = flat(array)
            if made.shape != raw.shape or not np.issubdtype(array.dtype, np.number):
                continue
            before, after = _most(raw, shape), _most(made, array.shape)
            if after - before <= _RATHER_MORE:
                continue
            meant = after < _THRESHOLD and len(np.unique(made)) == 2
            yield Problem(
                fails=after - before > _MORE and not meant,
                message=f"{after:.0%} of the values of {name!r} are one and the same, which is "
                f"made of {column!r}, of whose values {before:.0%} are: the others are cut off or "
                "divided away",
                advice="look at the formula: a division of whole numbers, a floor, a logarithm of "
                "what is below it",
                measured=after, limit=before + _MORE,
            )  # fmt: skip


def _most(values: Numbers, shape: tuple[int, ...]) -> float:
    """Return the share of the most frequent value, the median of the channels."""
    shares = []
    for channel in channels_of(values, shape):
        _, counts = np.unique(channel, return_counts=True)
        shares.append(float(counts.max() / channel.size))
    return float(np.median(shares))
