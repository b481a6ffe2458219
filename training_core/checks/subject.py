"""What the checks look at: a task, a sample of its rows, and how it is going to be trained."""

from __future__ import annotations

import time
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from training_core.checks.short_training import ShortTraining, train_briefly
from training_core.checks.watching import Watching
from training_core.examples import Examples
from training_core.feeds.order import order
from training_core.preparation import total_steps
from training_core.prior_bias import set_prior_bias
from training_core.settings import CheckSettings, TrainingSettings
from training_core.task import Preprocessor, Task

CPU = torch.device("cpu")
_FIXED, _WATCHED = 32, 150  # held-back rows that are watched, and the steps they are


class Subject:
    """A task and its sample, with what several checks need computed once.

    Everything is on the CPU: the checks run before a GPU is booked.

    Args:
        task: What is to be trained.
        train: Raw rows of the train split, or a sample of them; all labelled, any index.
        validation: Raw rows of the validation split, or a sample; None: a fifth of `train` is held
            back for it.
        training: How it is going to be trained.
        settings: How to check.
        planned_rows: Rows of the whole train split; 0: as many as `train` has.

    Attributes:
        train, validation: Raw rows, index 0, 1, 2, …
        examples, held_back: The same as examples, made with a preprocessor fitted on `train`.
        steps: Optimiser steps that the whole training is planned to take.
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
    ) -> None:
        self.task = task
        self.training = training or TrainingSettings()
        self.settings = settings or CheckSettings()
        self.planned_rows = planned_rows or len(train)
        if validation is None:
            mixed = order(seed=1, epoch=0, count=len(train)).numpy()
            kept = len(train) - max(1, len(train) // 5)
            train, validation = train.iloc[np.sort(mixed[:kept])], train.iloc[np.sort(mixed[kept:])]
        self.train = train.reset_index(drop=True)
        self.validation = validation.reset_index(drop=True)
        self._began = time.monotonic()

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
        """Of the time that checks which train may take; below 0: none."""
        return self.settings.seconds - (time.monotonic() - self._began)

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
    def watched(self) -> Watching:
        """What was seen in the first steps of `trained`."""
        model, steps = self.build(), self.settings.input_steps
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
        """Train a new model for `steps` (0: `checks.input_steps`) at a constant learning rate."""
        return train_briefly(
            self.task,
            self.build(seed),
            examples,
            steps=steps or self.settings.input_steps,
            batch_size=max(1, min(self.batch_size, len(examples))),
            training=self.training,
            seed=seed,
            lr_factor=lr_factor,
            weight_decay=weight_decay,
        )
