"""What the checks look at: a task, a sample of its rows, and how it is going to be trained."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from training_core.checks.lost_labels import LostLabel, rows_without_target
from training_core.checks.lost_labels import lost_labels as lost_of
from training_core.checks.short_training import ShortTraining, train_briefly
from training_core.checks.watching import Watching
from training_core.examples import Examples
from training_core.feeds.order import order
from training_core.preparation import total_steps
from training_core.prior_bias import set_prior_bias
from training_core.settings import CheckSettings, TrainingSettings
from training_core.task import Preprocessor, Task

CPU = torch.device("cpu")
_SHARE, _FEWEST_STEPS = 0.1, 60  # of `checks.seconds`, and steps, of a short training
_FIXED, _WATCHED = 32, 150  # held-back rows that are watched, and the steps they are


class Subject:
    """A task and its sample, with what several checks need computed once.

    Everything is on the CPU: the checks run before a GPU is booked.

    Args:
        task: What is to be trained.
        train: Raw rows of the train split, or a sample of them, any index; those for which the task
            has no target are left out.
        validation: Raw rows of the validation split, or a sample; None: a fifth of `train` is held
            back for it.
        training: How it is going to be trained.
        settings: How to check.
        planned_rows: Rows of the whole train split; 0: as many as `train` has.
        lost_labels: Values of the label that were left out before, since the task has no target
            for them.

    Attributes:
        train, validation: Raw labelled rows, index 0, 1, 2, …
        lost_labels: Values of the label that the task has no target for, frequent ones first.
        examples, held_back: The same as examples, made with a preprocessor fitted on `train`.
        steps: Optimiser steps that the whole training is planned to take.
        training_seconds: What checks that train have taken so far; the runner counts it.
    """

    device = CPU

    def __init__(
        self,
        task: Task,
        train: pd.DataFrame,
        *,
        validation: pd.DataFrame | None = None,
        training: TrainingSettings | None = None,
        settings: CheckSettings | None = None,
        planned_rows: int = 0,
        lost_labels: Sequence[LostLabel] = (),
    ) -> None:
        self.task = task
        self.training = (training or TrainingSettings()).cold  # the code is checked, not a start
        self.settings = settings or CheckSettings()
        self.planned_rows = planned_rows or len(train)
        if validation is None:
            mixed = order(seed=1, epoch=0, count=len(train)).numpy()
            kept = len(train) - max(1, len(train) // 5)
            train, validation = train.iloc[np.sort(mixed[:kept])], train.iloc[np.sort(mixed[kept:])]
        parts = [part.reset_index(drop=True) for part in (train, validation)]
        without = [rows_without_target(task, part) for part in parts]
        self.train, self.validation = (
            part[~none].reset_index(drop=True) if none.any() else part
            for part, none in zip(parts, without, strict=True)
        )
        if not len(self.train) or not len(self.validation):  # whoever needs a target says so
            self.train, self.validation = parts
        unlabelled = [part[none] for part, none in zip(parts, without, strict=True) if none.any()]
        self.lost_labels = list(lost_labels)
        for each in unlabelled:
            self.lost_labels += lost_of(task, each, rows=sum(map(len, parts)))
        self._began, self.training_seconds = time.monotonic(), 0.0

    @cached_property
    def preprocessor(self) -> Preprocessor:
        """Fitted on `train`."""
        return self.task.preprocessor().fit(self.train.copy())

    @cached_property
    def examples(self) -> Examples:
        """`train` as the network gets it, before augmentation."""
        return Examples.from_frame(self.task, self.preprocessor, self.train.copy())

    @cached_property
    def held_back(self) -> Examples:
        """`validation` as the network gets it."""
        return Examples.from_frame(self.task, self.preprocessor, self.validation.copy())

    @property
    def steps(self) -> int:
        """Optimiser steps of the planned training."""
        return total_steps(self.training, samples=self.planned_rows)

    @property
    def batch_size(self) -> int:
        """Examples a step of a short training: the planned ones, as far as the sample has them."""
        return max(1, min(self.training.batch_size, len(self.examples) // 2))

    @property
    def seconds_left(self) -> float:
        """Of the time that checks which train may take; below 0: none.

        Half of `checks.seconds` is theirs, however long the others took.
        """
        whole = self.settings.seconds
        return max(whole - (time.monotonic() - self._began), whole / 2 - self.training_seconds)

    def build(self, seed: int = 0) -> nn.Module:
        """Return a new, untrained model; the same one for the same seed."""
        torch.manual_seed(seed)
        model = self.task.build_model(self.preprocessor)
        if self.training.bias_from_prior:
            set_prior_bias(self.task, model, self.examples)
        return model

    def batch(self, rows: int, *, seed: int = 0) -> Examples:
        """Return examples drawn without replacement; fewer where there are not as many."""
        return self.examples.take(order(seed=seed, epoch=0, count=len(self.examples))[:rows])

    def loss(self, outputs: Tensor, examples: Examples) -> Tensor:
        """Return the mean loss a unit, float64 scalar; as the trainer takes it."""
        losses = self.task.loss(outputs, examples.target).double()
        units = len(examples) if examples.units is None else examples.units.double().sum()
        return losses.sum() / units

    @cached_property
    def seconds_a_step(self) -> float:
        """Median of a few steps of a short training, after one to warm up; 0: it ended at once."""
        times: list[float] = []
        with torch.random.fork_rng(devices=()):
            train_briefly(
                self.task,
                self.build(0),
                self.examples,
                steps=6,
                batch_size=self.batch_size,
                training=self.training,
                after_step=lambda step, model: times.append(time.monotonic()),
            )
        return median([b - a for a, b in pairwise(times)] or [0.0])

    @cached_property
    def short_steps(self) -> int:
        """Steps of a short training: `checks.input_steps`, or what a tenth of the time allows.

        Several checks train, and one slow network must not leave the others without time. No fewer
        than 60, in which a rate that fits the plan shows.
        """
        affordable = _SHARE * self.settings.seconds / max(self.seconds_a_step, 1e-9)
        return min(self.settings.input_steps, max(_FEWEST_STEPS, int(affordable)))

    @cached_property
    def watched(self) -> Watching:
        """What was seen in the first steps of `trained`."""
        model, steps = self.build(), self.short_steps
        watching = Watching(
            model, self.held_back.take(slice(0, _FIXED)), steps=min(steps, _WATCHED)
        )
        watching.training = train_briefly(
            self.task,
            model,
            self.examples,
            steps=steps,
            batch_size=self.batch_size,
            training=self.training,
            after_backward=watching.after_backward,
            after_step=watching.after_step,
        )
        return watching

    @property
    def trained(self) -> ShortTraining:
        """The network after a short training as planned, which several checks look into."""
        return self.watched.training

    def train_briefly(
        self,
        examples: Examples,
        *,
        steps: int = 0,
        seed: int = 0,
        lr_factor: float = 1.0,
        weight_decay: Literal["none", "as planned"] = "none",
    ) -> ShortTraining:
        """Train a new model for `steps` (0: `short_steps`) at a constant learning rate."""
        return train_briefly(
            self.task,
            self.build(seed),
            examples,
            steps=steps or self.short_steps,
            batch_size=max(1, min(self.batch_size, len(examples))),
            training=self.training,
            seed=seed,
            lr_factor=lr_factor,
            weight_decay=weight_decay,
        )
