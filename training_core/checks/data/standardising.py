"""Inputs far from a mean of 0 and a deviation of 1: is more learned with them there?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from training_core.checks.data.arrays import flat, thinned
from training_core.checks.data.problem import Problem
from training_core.checks.data.scales import Scales
from training_core.checks.loss.blind import blind_losses
from training_core.checks.short_training import ShortTraining
from training_core.checks.subject import Subject
from training_core.evaluation import outputs_of
from training_core.examples import Examples

_SMALL = 0.1  # of a whole row, which is 1 where rows are normalised, and 2.4 with six columns
_FAR = 3.0  # deviations from 0: first layers then see one constant, and little else
_MOST = 0.6  # of the columns
_HELD_BACK = 4_000  # rows scored
_ROWS = 20  # scored at least
_SURE = 3.0  # standard errors
_LESS = 0.5  # of what is learned of standardised inputs
_LEAST = 0.02  # of the loss without inputs, that standardised ones gain


@dataclass(frozen=True)
class _Strange:
    """An array far from standardised.

    Attributes:
        said: How.
        doubtful: It is worth a word, even if it does no harm.
    """

    said: str
    doubtful: bool


def of_standardising(subject: Subject) -> Iterator[Problem]:
    """Train on strange inputs, and on the same standardised: what each learns is the evidence.

    LeCun, Bottou, Orr and Müller 1998, Efficient BackProp, 4.3: inputs off their mean, or of other
    sizes, slow learning down. Nothing is trained where inputs look as they should.
    """
    strange = {
        name: found
        for name, array in thinned(subject.examples).items()
        if (found := _strange(array)) is not None
    }
    if not strange:
        return
    told = [f"{name!r} {each.said}" for name, each in strange.items()]
    lost = _lost(subject, list(strange)) if subject.seconds_left > 0 else None
    if lost is None and not any(each.doubtful for each in strange.values()):
        return
    much = "" if lost is None else f": as it is, {lost:.0%} of what can be learned of it is not"
    yield Problem(
        fails=lost is not None,
        message=f"{' and '.join(told)}{much}",
        advice="standardise inputs with the mean and deviation of the rows trained on, once",
        measured=lost, limit=1 - _LESS,
    )  # fmt: skip


def _strange(array: Tensor) -> _Strange | None:
    """Judge columns of a table one by one, and pixels or steps of time together."""
    if not array.is_floating_point() or not bool(torch.isfinite(array).all()):
        return None
    columns = flat(array)
    scales = Scales.of(columns if array.ndim <= 2 else columns.reshape(-1, 1))
    size = float(np.sqrt((columns.std(axis=0) ** 2).sum()))
    if 0 < size < _SMALL:
        return _Strange(f"hardly differs from row to row: by {size:.2g} over all columns", True)
    varied = scales.deviation > 0
    if array.ndim <= 2:
        varied &= ~((columns == scales.low) | (columns == scales.high)).all(axis=0)
    far = varied & (np.abs(scales.mean) > _FAR * scales.deviation)
    if not far.any() or far.sum() < _MOST * varied.sum():
        return None
    mean, deviation = (float(np.median(each[far])) for each in (scales.mean, scales.deviation))
    bounded = bool(scales.is_bounded[far].all())
    said = f"is around {mean:.3g}, with a deviation of {deviation:.2g}, and not around 0"
    return _Strange(said, doubtful=not bounded)


def _lost(subject: Subject, names: list[str]) -> float | None:
    """Return which share of the gain on standardised inputs is missed; None: not surely half.

    Paired on held-back rows, and both with two seeds: a training has luck of its own.
    """
    test = subject.held_back.take(slice(0, _HELD_BACK))
    if len(test) < _ROWS:
        return None
    train, standard = (
        _with_standardised(subject, each, names) for each in (subject.examples, test)
    )
    shares, blind = [], None
    for seed in (0, 1):
        own = subject.trained if seed == 0 else subject.train_briefly(subject.examples, seed=seed)
        real = _losses(subject, own, test)
        try:
            other = _losses(subject, subject.train_briefly(train, seed=seed), standard)
        except (RuntimeError, ValueError, IndexError, ZeroDivisionError):
            return None  # it reads lengths or places, and they are no more what they were
        better = real - other
        error = float(better.std()) / np.sqrt(len(better))
        if not bool(torch.isfinite(better).all()) or float(better.mean()) <= _SURE * error:
            return None
        blind = blind_losses(subject, test, {})[0] if blind is None else blind
        gain, floor = float((blind - other).mean()), abs(float(blind.mean()))
        share = float(better.mean()) / gain if gain > _LEAST * floor else 0.0
        if share <= 1 - _LESS:
            return None
        shares.append(min(1.0, share))
    return min(shares)


def _losses(subject: Subject, trained: ShortTraining, examples: Examples) -> Tensor:
    with torch.no_grad():
        outputs = outputs_of(trained.model, examples, device=subject.device)
        return subject.task.loss(outputs, examples.target).double()


def _with_standardised(subject: Subject, examples: Examples, names: list[str]) -> Examples:
    """Standardise arrays with the statistics of the train rows; columns of a table each alone."""
    arrays = dict(examples.arrays)
    for name in names:
        own = subject.examples.arrays[name].double()
        if own.ndim <= 2:
            mean, deviation = own.mean(0), own.std(0, unbiased=False)
        else:
            mean, deviation = own.mean(), own.std(unbiased=False)
        spread = torch.where(deviation > 0, deviation, torch.ones_like(deviation))
        arrays[name] = ((arrays[name].double() - mean) / spread).to(arrays[name].dtype)
    return Examples(arrays, examples.target, examples.units)
