"""What may be wrong with the tensors, one function a kind: each yields what it finds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from training_core.checks.data.arrays import column_name, flat, is_index, thinned
from training_core.checks.data.problem import Problem
from training_core.checks.data.scales import Scales, growth, runs_on, takes_last
from training_core.checks.subject import Subject

LARGE, HUGE = 20.0, 1e4  # mean or deviation of a float column
_GROWN = 3.0  # times the loss of standardised inputs
_FAR = 10.0  # deviations, or parts of one, from the columns beside it
_DRIFT = 8.0  # deviations of train between the two splits; a season moves a column by two or three


def of_form(subject: Subject) -> Iterator[Problem]:
    """Wrong number of rows, a type no network reads, numbers that are none."""
    for name, array in subject.examples.arrays.items():
        if len(array) != len(subject.examples):
            yield Problem(
                fails=True,
                message=f"{name!r} has {len(array)} rows for {len(subject.examples)} raw ones",
                advice="return one row of each array for each raw row",
            )
            return
        if array.is_complex():
            yield Problem(
                fails=True, message=f"{name!r} is {array.dtype}", advice="return real numbers"
            )
        if array.is_floating_point():
            yield from _not_finite(subject, name, array)


def of_indices(subject: Subject) -> Iterator[Problem]:
    """Negative indices, which read a table from its end."""
    for name, array in thinned(subject.examples).items():
        if not is_index(array):
            continue
        columns = flat(array)
        if not (columns < 0).any():
            continue
        place = int(np.flatnonzero((columns < 0).any(axis=0))[0])
        which = column_name(subject.preprocessor, name, tuple(array.shape), place)
        rows = torch.from_numpy(np.flatnonzero((columns < 0).any(axis=1))[:64])
        lowest = float(columns.min())
        wraps = takes_last(subject, name, subject.examples.take(rows))
        how = ": it reads the last rows of the table" if wraps else ""
        yield Problem(
            fails=wraps, message=f"{which} holds negative whole numbers, {lowest:g}{how}",
            advice="give what is missing or unseen an index of its own", measured=lowest, limit=0.0,
        )  # fmt: skip


def of_scale(subject: Subject) -> Iterator[Problem]:
    """Columns of a size that networks do not train on well, by what the network makes of them."""
    for name, array in thinned(subject.examples).items():
        if not array.is_floating_point() or not bool(torch.isfinite(array).all()):
            continue
        scales = Scales.of(flat(array))
        worst = int(scales.largest.argmax())
        largest = float(scales.largest[worst])
        if largest > LARGE:
            outputs, loss = growth(subject, name)
            fails = loss > _GROWN or (largest > HUGE and outputs > _FAR)
            count = int((scales.largest > LARGE).sum())
            which = column_name(subject.preprocessor, name, tuple(array.shape), worst)
            others = f" (and {count - 1} more)" if count > 1 else ""
            yield Problem(
                fails=fails,
                message=f"{which}{others} has mean {scales.mean[worst]:.4g} and deviation "
                f"{scales.deviation[worst]:.4g}: the untrained network's loss is {loss:.3g} times "
                f"that on standardised inputs",
                advice="scale the inputs to a mean near 0 and a deviation near 1",
                measured=largest, limit=LARGE,
            )  # fmt: skip
        yield from _unlike_the_others(subject, name, array, scales)


def of_splits(subject: Subject) -> Iterator[Problem]:
    """Held-back rows that look like nothing seen in training."""
    held_back = thinned(subject.held_back)
    for name, array in thinned(subject.examples).items():
        train, other = flat(array), flat(held_back[name])
        if train.shape[1] != other.shape[1] or len(other) < 20:
            continue
        usual = np.nanmedian(train, axis=0)
        varied = (train == usual).mean(axis=0) < 0.9
        if is_index(array):
            unseen = (other == 0).mean(axis=0) - (train == 0).mean(axis=0)
            far = varied & (unseen > 0.5)
            what = "is 0, unseen in training, for {:.0%} more of the held-back rows"
            size = unseen
        else:
            one, two = Scales.of(train), Scales.of(other)
            spread = np.where(one.deviation > 0, one.deviation, 1.0)
            size = np.abs(two.mean - one.mean) / spread
            ratio = two.deviation / spread
            size = np.maximum(size, ratio)
            size = np.maximum(size, np.where(ratio > 0, 1 / np.maximum(ratio, 1e-9), 0.0))
            far = varied & (size > _DRIFT)
            what = "is {:.1f} deviations of train, or times its deviation, away in held-back rows"
        if not far.any():
            continue
        place = int(np.where(far, size, -1).argmax())
        which = column_name(subject.preprocessor, name, tuple(array.shape), place)
        most = varied.sum() >= 3 and far.sum() >= 0.5 * varied.sum() and not is_index(array)
        yield Problem(
            fails=bool(most),
            message=f"{which} {what.format(size[place])} ({int(far.sum())} of "
            f"{int(varied.sum())} columns of {name!r} are as far)",
            advice="prepare held-back rows exactly as those of training",
            measured=float(size[place]), limit=0.5 if is_index(array) else _DRIFT,
        )  # fmt: skip


def _not_finite(subject: Subject, name: str, array: Tensor) -> Iterator[Problem]:
    columns = flat(array)
    wrong = ~np.isfinite(columns)
    if not wrong.any() or set(np.unique(columns)) <= {0.0, -np.inf}:  # a mask that is added
        return
    place = int(wrong.any(axis=0).argmax())
    which = column_name(subject.preprocessor, name, tuple(array.shape), place)
    rows = torch.from_numpy(np.flatnonzero(wrong.any(axis=1))[:64])
    copes = not np.isinf(columns).any() and runs_on(subject, subject.examples.take(rows))
    reason = f" in {array.dtype}" if array.dtype is torch.float16 else ""
    yield Problem(
        fails=not copes,
        message=f"{which} is not a finite number{reason} in {int(wrong.any(axis=1).sum())} rows",
        advice="replace what is missing, and use a type that holds the numbers",
        measured=float(wrong.mean()), limit=0.0,
    )  # fmt: skip


def _unlike_the_others(
    subject: Subject, name: str, array: Tensor, scales: Scales
) -> Iterator[Problem]:
    """A column left out of the standardisation that all those beside it got."""
    if array.ndim != 2:
        return
    judged = ~scales.is_bounded
    plain = judged & (np.abs(scales.mean) < 0.05) & (np.abs(scales.deviation - 1) < 0.1)
    if plain.sum() < 3 or plain.sum() < 0.6 * judged.sum():
        return
    away = np.maximum(np.abs(scales.mean), scales.deviation)
    odd = judged & (away > 3)
    if not odd.any():
        return
    place = int(np.where(odd, away, -1).argmax())
    which = column_name(subject.preprocessor, name, tuple(array.shape), place)
    yield Problem(
        fails=bool(away[place] > _FAR),
        message=f"{which} has mean {scales.mean[place]:.4g} and deviation "
        f"{scales.deviation[place]:.4g}, where {int(plain.sum())} columns beside it have 0 and 1",
        advice="standardise it with its own mean and deviation",
        measured=float(away[place]), limit=_FAR,
    )  # fmt: skip
