"""From one training's checkpoints to its chosen model, packaged and kept in the object store."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from components.common.layout import fetch_object, put_object
from components.common.resampling import Draws
from components.common.rows import clusters_of, read_part, sample_part
from components.select_checkpoint.candidates import Candidates, mean_of_best
from components.select_checkpoint.scoring import Judge
from components.select_checkpoint.selection import Selection, select
from training_core.checkpoints.catalogue import Checkpoints
from training_core.errors import TrainingFailed
from training_core.examples import Examples
from training_core.package import write_package
from training_core.transfer.lora import merged
from training_core.transfer.safetensors import read_safetensors
from training_core.transfer.shaping import still_layers

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from components.common.records import StepContext
    from components.select_checkpoint.averaging import State

_STATISTICS_ROWS = 4096  # of the train split, for the statistics of normalising layers
SAMPLE = 64  # rows that graphs are traced with


class Packaged(NamedTuple):
    """What became of one training; `files` are sha256 by name, all of them in the store."""

    chosen: Selection
    files: dict[str, str]


class Packaging:
    """Chooses among the checkpoints of trainings on the same splits, and packages the chosen ones.

    Args:
        context: Of the step.
        parts: What split_data left.
        trained: What train_distributed left.
    """

    def __init__(
        self, context: StepContext, parts: dict[str, Any], trained: dict[str, Any]
    ) -> None:
        self._context, self._parts, self._trained = context, parts, trained
        self.task = context.project.task()
        kind = type(self.task.preprocessor())
        self.preprocessor = kind.from_state_dict(trained["preprocessor"])

    @cached_property
    def validation(self) -> pd.DataFrame:
        """Raw rows of the validation split."""
        return read_part(self._context, self._parts, "validation")

    @property
    def seen(self) -> dict[str, str]:
        """What these trainings and the choice among their checkpoints have seen."""
        seen: dict[str, str] = self._trained.get("seen") or self._parts["seen"]
        return seen

    @cached_property
    def _judge(self) -> Judge:
        settings, validation = self._context.project.settings, self.validation
        draws = Draws.of(clusters_of(validation, settings), resamples=settings.decision.resamples)
        return Judge(self.task, self.preprocessor, validation, draws)

    def candidates(self, training: dict[str, Any]) -> tuple[Checkpoints, Candidates]:
        """Return a training's checkpoints, and what makes networks of them.

        Args:
            training: As of `package`.
        """
        start = self._context.project.settings.training.start
        checkpoints = Checkpoints(self._context.store, training["prefix"])
        found = Candidates(
            checkpoints,
            build=self._network,
            train=self._train,
            complete=self._completing(training["base"]) if start.lora.rank else None,
            still=still_layers(self._network(), start) if start.adapts else (),
        )
        return checkpoints, found

    def package(self, training: dict[str, Any], folder: Path) -> Packaged:
        """Choose one candidate of a training and write its package.

        Args:
            training: Where its checkpoints lie (`prefix`), and what they leave out (`base`).
            folder: Made if it is not there.

        Raises:
            TrainingFailed: No checkpoint can be used, or the model cannot be packaged.
        """
        settings, judge = self._context.project.settings, self._judge
        prefix = training["prefix"]
        checkpoints, found = self.candidates(training)
        scores = found.finite(judge.scores(found.readable()))
        if not scores:
            raise TrainingFailed(
                f"no checkpoint below {prefix} in {self._context.store.uri} can be used"
                + (f": {checkpoints.damaged[0]}" if checkpoints.damaged else ""),
                hint="evertrain run PROJECT --force trains afresh",
            )
        mean = mean_of_best(scores, count=settings.select.average)
        if mean is not None:
            scores += found.finite(judge.scores([(mean, found.network(mean))]))
        chosen = select(
            scores,
            judge.draws,
            rule=settings.select.rule,
            confidence=settings.decision.confidence,
            damaged=checkpoints.damaged,
            averaged=found.averaged,
        )
        facts: dict[str, Any] = {
            "step": chosen.place.step,
            "run_key": self._context.record.run_key,
            "seen": self.seen,
        }
        if found.averaged:
            facts["weights"] = f"average kept by training ({settings.training.averaging.kind})"
        if chosen.place.members:
            facts["mean_of_steps"] = chosen.candidate.members
        files = write_package(
            folder,
            task=self.task,
            preprocessor=self.preprocessor,
            model=found.network(chosen.place),
            sample=self.validation.head(SAMPLE),
            facts=facts,
        )
        keep_package(self._context, folder, files)
        return Packaged(chosen, files)

    def _network(self) -> Any:
        return self.task.build_model(self.preprocessor)

    def _train(self) -> Examples:
        rows = sample_part(self._context, self._parts, "train", rows=_STATISTICS_ROWS)
        return Examples.from_frame(self.task, self.preprocessor, rows)

    def _completing(self, base: str) -> Callable[[State], State]:
        """Return what makes a plain network's state of a LoRA training's checkpoint."""
        began = read_safetensors(fetch_object(self._context.store, base, self._context.cache))
        lora = self._context.project.settings.training.start.lora
        return lambda state: merged(state, began, lora)


def keep_package(context: StepContext, folder: Path, files: dict[str, str]) -> None:
    """Put a package's files into the object store, under their hashes."""
    for name, sha256 in files.items():
        stored = put_object(context.store, folder / name)
        assert stored == sha256, name
