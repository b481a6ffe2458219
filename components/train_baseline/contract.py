"""What a baseline is, and what it is given.

A baseline is one small class in a file of its own: a name, the kinds of task it can learn, why it
may be absent, and `fit`, which learns from the train split and predicts the rows of every other
part. It predicts row by row, in the order of the rows, so that each later comparison is paired.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn

from components.common.decision_settings import Baseline as Name
from components.common.settings import BaselineSettings
from components.train_baseline.features import Features
from training_core.checks.short_training import without_information
from training_core.evaluation import outputs_of
from training_core.examples import Examples
from training_core.settings import TrainingSettings
from training_core.task import Kind, Preprocessor, Task

Floats = npt.NDArray[np.float64]
Predictions = dict[str, Floats]  # part -> predictions, shaped as training_core/task.py's table says
ALL_KINDS: frozenset[Kind] = frozenset(get_args(Kind))
ROWS_OF_NUMBERS: frozenset[Kind] = ALL_KINDS - {"sequence"}  # a few numbers predicted for each row


class Ground:
    """What baselines learn from and are asked about.

    Args:
        task: What is learned.
        train: Raw rows of the train split; all labelled.
        scored: Raw rows by part (validation, holdout), to be predicted.
        settings: Of the baselines.
        training: Of the network.
    """

    def __init__(
        self,
        task: Task,
        train: pd.DataFrame,
        scored: dict[str, pd.DataFrame],
        *,
        settings: BaselineSettings,
        training: TrainingSettings,
    ) -> None:
        self.task = task
        self.train = train
        self.scored = scored
        self.settings = settings
        self.training = training

    @cached_property
    def preprocessor(self) -> Preprocessor:
        """Fitted on the train split, as the network's."""
        return self.task.preprocessor().fit(self.train)

    @cached_property
    def target(self) -> npt.NDArray[Any]:
        """Of the train split."""
        return self.task.target(self.train)

    @cached_property
    def outputs(self) -> int:
        """How many numbers are predicted for each row, or for each position of a sequence."""
        if self.task.kind in ("multiclass", "sequence"):  # only the network knows its classes
            return int(self.blind_outputs(self.task.build_model(self.preprocessor)).shape[-1])
        return int(np.prod(self.target.shape[1:]))

    def blind_outputs(self, model: nn.Module) -> Tensor:
        """Return its outputs for two rows without information (some models cannot take one)."""
        some = Examples.from_frame(self.task, self.preprocessor, self.train.iloc[:2])
        return outputs_of(model, without_information(some), device=torch.device("cpu"))

    @cached_property
    def rates(self) -> Floats:
        """Labels as numbers whose mean is a prediction, [N, outputs]."""
        if self.task.kind == "multiclass":
            return np.asarray(np.eye(self.outputs)[self.target])
        return np.asarray(self.target.reshape(len(self.target), -1), dtype=np.float64)

    @cached_property
    def features(self) -> Features:
        """The train split as the network gets it, flat."""
        return self.features_of(self.train)

    def features_of(self, rows: pd.DataFrame) -> Features:
        """Rows as the network gets them, flat."""
        return Features.of(self.preprocessor.transform(rows), rows=len(rows))

    def shaped(self, predicted: Floats) -> Floats:
        """Predictions [N, outputs] as the kind of task has them."""
        return predicted[:, 0] if self.task.kind in ("binary", "regression") else predicted


class Baseline(ABC):
    """A simple model.

    Class attributes:
        name: As in the settings, the report and `decision.must_beat`.
        kinds: Kinds of task that it can learn.
    """

    name: ClassVar[Name]
    kinds: ClassVar[frozenset[Kind]] = ROWS_OF_NUMBERS

    def why_absent(self, ground: Ground) -> str:
        """Say why it is not to be trained; empty: it is."""
        return ""

    @abstractmethod
    def fit(self, ground: Ground) -> Predictions | None:
        """Learn from the train split and predict every part; None: it has nothing to say.

        Raises:
            ConfigurationError: What the user gave it is wrong.
        """
