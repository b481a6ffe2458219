"""Whom a training learns from beside the labels: asked once for each row, before the first step.

The teacher gets the raw rows and prepares them by its own vocabulary and scales, so any champion
can teach, whatever network and preparation it has: an ensemble too. What it says lies beside the
examples, in memory or on disk, so steps cost what they cost without it, and a training that goes on
after a kill learns from the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from components.common.champion_model import package_folder
from components.common.layout import fetch_object
from components.common.training_start import TrainingTeacher
from infra.store import ObjectStore
from training_core.errors import ConfigurationError
from training_core.evaluation import outputs_of
from training_core.package import Package, answers_as
from training_core.transfer.safetensors import read_safetensors

if TYPE_CHECKING:
    from typing import Any

    import pandas as pd
    from torch import Tensor

    from training_core.examples import Examples
    from training_core.task import Preprocessor, Task

_ROWS = 8192  # asked at once

Predict = Callable[["pd.DataFrame", "Examples"], "Tensor"]


class Teacher:
    """Answers for raw rows, in the form that examples carry.

    Args:
        settled: Who it is.
        task: Of the student.
        store: Of the project.
        cache: Folder of local copies.
    """

    def __init__(
        self, settled: TrainingTeacher, task: Task, *, store: ObjectStore, cache: Path
    ) -> None:
        self.settled, self._task, self._store, self._cache = settled, task, store, cache
        self._predict: Predict | None = None

    @classmethod
    def of(
        cls, told: dict[str, Any] | None, task: Task, *, store: ObjectStore, cache: Path
    ) -> Teacher | None:
        """Return whom snapshot_data has settled; None: nobody, or there was no champion yet."""
        settled = None if told is None else TrainingTeacher.model_validate(told)
        if settled is None or not settled.is_there:
            return None
        return cls(settled, task, store=store, cache=cache)

    def prepare(self, preprocessor: Preprocessor) -> None:
        """Load it.

        Args:
            preprocessor: The student's, fitted; a file's weights expect its arrays.

        Raises:
            ConfigurationError: It answers another question, or its weights are of another network.
            TrainingFailed, OutsideError: It cannot be loaded.
        """
        champion = self.settled.weights == "champion"
        self._predict = self._champion() if champion else self._file(preprocessor)

    def ask(self, frame: pd.DataFrame, examples: Examples, *, most: int | None = None) -> Examples:
        """Return examples that carry what it says of them.

        Args:
            frame: Raw rows.
            examples: The same rows.
            most: Bytes that may lie in memory; None: any number.

        Raises:
            ConfigurationError: It cannot score them, or says what is no number; or that is too
                much for memory.
        """
        from training_core.distillation.loss import taught_logits

        assert self._predict is not None
        found: Tensor | None = None
        for first in range(0, len(examples), _ROWS):
            rows = slice(first, first + _ROWS)
            predictions = self._predict(frame.iloc[rows], examples.take(rows))
            if not torch.isfinite(predictions).all():
                raise ConfigurationError(
                    f"{self._who}, which training is to learn from, gives predictions that are not "
                    "finite",
                    hint="train without it: --set training.distillation.teacher=none",
                )
            if found is None:
                shape = (len(examples), *predictions.shape[1:])
                self._refuse_too_much(4 * math.prod(shape), most)
                found = torch.empty(shape)
            found[rows] = taught_logits(predictions, self._task.kind)
        return examples if found is None else replace(examples, teacher=found)

    @property
    def _who(self) -> str:
        return self.settled.words

    def _champion(self) -> Predict:
        folder = package_folder(self._store, self.settled.package, self._cache)
        package = Package(folder, type(self._task.preprocessor()))
        why = answers_as(package.manifest, self._task)
        if why:
            raise ConfigurationError(
                f"{self._who} cannot teach this task: {why}",
                hint="train without it: --set training.distillation.teacher=none",
            )

        def predict(frame: pd.DataFrame, examples: Examples) -> Tensor:
            try:
                return torch.from_numpy(np.ascontiguousarray(package.predict(frame)))
            except KeyError as error:
                raise ConfigurationError(
                    f"{self._who} cannot teach with these rows: {error.args[0]}",
                    hint="train without it: --set training.distillation.teacher=none",
                ) from error

        return predict

    def _file(self, preprocessor: Preprocessor) -> Predict:
        weights = read_safetensors(fetch_object(self._store, self.settled.sha256, self._cache))
        network = self._task.build_model(preprocessor)
        try:
            network.load_state_dict(weights)
        except RuntimeError as error:
            words = " ".join(str(error).split())
            raise ConfigurationError(
                f"the weights in {self.settled.file} (training.distillation.file) are not this "
                f"network's: {words}",
                hint="a teacher from a file has the student's own network and preparation; a model "
                "of another kind can teach as the champion",
            ) from error

        def predict(frame: pd.DataFrame, examples: Examples) -> Tensor:
            outputs = outputs_of(network, examples, device=torch.device("cpu"))
            return self._task.predict(outputs)

        return predict

    def _refuse_too_much(self, size: int, most: int | None) -> None:
        if most is not None and size > most:
            raise ConfigurationError(
                f"what {self._who} says of the train split takes {size / 2**30:.1f} GiB, more than "
                f"the {most / 2**30:.0f} GiB that may lie in memory",
                hint="keep examples on disk: --set training.data=disk",
            )
