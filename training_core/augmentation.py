"""Augmentation: changes to the examples of a training step, drawn anew each time.

It is the task's own (`Task.augment`), then what `training.regularisation` asks for, and happens in
training only. What is drawn depends on the seed, the position in the global order of samples and
the part of the step, never on the process that does the work: a run that goes on draws what the
undisturbed one would have drawn.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch

from training_core.examples import Examples
from training_core.feeds.order import mixed_seed
from training_core.regularisation.settings import RegularisationSettings
from training_core.task import Task


class Augmentation(Protocol):
    """Augments one microbatch."""

    def __call__(self, examples: Examples, *, sample: int, part: int) -> Examples:
        """Return augmented examples.

        Args:
            examples: Of one microbatch; left as they are.
            sample: Global position of the step's end.
            part: Of the step, over all ranks.
        """


def augmentation_of(
    task: Any, *, seed: int, regularisation: RegularisationSettings | None = None
) -> Augmentation:
    """Return what happens to each microbatch in training: what the task does, then the settings.

    Raises:
        ConfigurationError: The settings do not fit the task.
    """
    own = _own(task, seed=seed)
    if regularisation is None or not regularisation.changes_examples:
        return own
    from training_core.regularisation.changes import Changes

    return Changes(own, task=task, settings=regularisation, seed=seed)


def _own(task: Any, *, seed: int) -> Augmentation:
    """Return what a task does to each microbatch in training; nothing, if it does not say."""
    augment = getattr(task, "augment", None)
    if augment is None or getattr(type(task), "augment", None) is Task.augment:
        return _nothing

    def augmented(examples: Examples, *, sample: int, part: int) -> Examples:
        generator = torch.Generator().manual_seed(mixed_seed(seed, part, sample))
        arrays = {name: array.clone() for name, array in examples.arrays.items()}
        arrays, target = augment(arrays, examples.target.clone(), generator)
        return Examples(arrays, target, examples.units, examples.teacher)

    return augmented


def augments(task: Any) -> bool:
    """Say whether a task has an augmentation of its own."""
    return augmentation_of(task, seed=0) is not _nothing


def _nothing(examples: Examples, *, sample: int, part: int) -> Examples:
    return examples
