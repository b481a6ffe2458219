"""Examples as `training.regularisation` has them trained, beside what they were."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from training_core.augmentation import augmentation_of
from training_core.checks.contract import Sample
from training_core.checks.data.pictures import is_picture, network_of, picture
from training_core.checks.data.problem import Problem
from training_core.checks.subject import Subject
from training_core.errors import ConfigurationError
from training_core.examples import Examples
from training_core.feeds.order import order
from training_core.regularisation.loss import loss_of

_COMPANY = 64  # rows of the microbatch that shown ones are mixed within


def of_regularisation(subject: Subject) -> Iterator[Problem]:
    """Say so now if the settings do not fit the task or its arrays, before the long training."""
    try:
        loss_of(subject.task, subject.training.regularisation)
        _drawn(subject, [0])
    except ConfigurationError as error:
        advice = error.hint or "change training.regularisation"
        yield Problem(fails=True, message=error.what, advice=advice)


def with_trained(subject: Subject, rows: list[int], samples: list[Sample]) -> list[Sample]:
    """Show beside each sample what a training step would get of it, if that is something else.

    Args:
        subject: Says what is on.
        rows: Of the samples, in the train split.
        samples: As they arrive at the network.
    """
    if not subject.training.regularisation.changes_examples:
        return samples
    drawn, company = _drawn(subject, rows)
    found = []
    for place, sample in enumerate(samples):
        words = network_of(subject, drawn, place)
        other, share = getattr(drawn, "other", None), getattr(drawn, "share", None)
        if isinstance(other, Tensor) and isinstance(share, Tensor) and share[place] < 1:
            partners = Examples(company.arrays, other, company.units)
            second = network_of(subject, partners, place)["target"]
            words["target"] += f" ({share[place]:.0%}), {second} ({1 - share[place]:.0%})"
        network = {**sample.network, **{f"{n}, as trained": text for n, text in words.items()}}
        images = {
            f"{name}, as trained": picture(array[place])
            for name, array in drawn.arrays.items()
            if is_picture(array)
        }
        found.append(replace(sample, network=network, images={**sample.images, **images}))
    return found


def _drawn(subject: Subject, rows: list[int]) -> tuple[Examples, Examples]:
    """Return some rows and their company as a step gets them, and as they were."""
    others = order(seed=6, epoch=0, count=len(subject.examples))[:_COMPANY].tolist()
    company = subject.examples.take(torch.tensor([*rows, *others]))
    augment = augmentation_of(subject.task, seed=0, regularisation=subject.training.regularisation)
    return augment(company, sample=0, part=0), company
