"""A training as it is planned, to be begun as often as one likes: the same start each time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from training_core.determinism import seed_everything
from training_core.distillation.settings import DistillationSettings
from training_core.examples import Examples
from training_core.feeds.batches import Feed
from training_core.loop import Trainer
from training_core.parallel.choose import choose_device
from training_core.parallel.single import SingleProcess
from training_core.parallel.topology import CanonicalMicrobatches
from training_core.preparation import total_steps
from training_core.prior_bias import set_prior_bias
from training_core.settings import TrainingSettings
from training_core.stopping.settings import StoppingSettings
from training_core.task import Preprocessor, Task

NEVER = 2**31  # steps between what must not happen
_SAMPLE = 16_384  # rows that the prior of the labels is taken of, as before a training


@dataclass(frozen=True)
class Planned:
    """What it takes to begin the training: task, data and settings.

    Attributes:
        task: What is trained.
        preprocessor: Fitted on the train split.
        feed: Of the train split, or of a sample of it.
        examples: The same, or a sample of it, in memory.
        validation: Of the validation split, or of a sample of it.
        settings: As the project has them.
        rows: Rows of the whole train split, where the feed has only a sample of it; 0: as the feed.
        validation_rows: The same of the validation split.
    """

    task: Task
    preprocessor: Preprocessor
    feed: Feed
    examples: Examples
    validation: Examples
    settings: TrainingSettings
    rows: int = 0
    validation_rows: int = 0

    @property
    def train_rows(self) -> int:
        """Rows of the whole train split."""
        return self.rows or len(self.feed)

    @property
    def steps(self) -> int:
        """Optimiser steps of the whole planned training."""
        return total_steps(self.settings, samples=self.train_rows)

    @property
    def device(self) -> torch.device:
        """Where it trains."""
        return choose_device(self.settings.device)

    def model(self) -> nn.Module:
        """Return a new, untrained model: the one that the training begins with."""
        seed_everything(self.settings.seed)
        model = self.task.build_model(self.preprocessor)
        if self.settings.bias_from_prior:
            set_prior_bias(self.task, model, self.examples.take(slice(0, _SAMPLE)))
        return model

    def trainer(
        self,
        *,
        settings: TrainingSettings | None = None,
        steps: int = 0,
        log_every: int = 0,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Trainer:
        """Begin the training anew, in one process, without checkpoints, limits and evaluations.

        Args:
            settings: Instead of the project's.
            steps: At least so many can be taken; the planned schedule is stretched where the plan
                has fewer.
            log_every: Steps between log lines; 0: as the settings have it.
            should_stop: Asked after each step.
        """
        settings = settings or self.settings
        planned = total_steps(settings, samples=self.train_rows)
        share = max(planned, steps + 1) * settings.batch_size / len(self.feed)
        changed = settings.model_copy(
            update={
                "epochs": share,
                "evaluate_every": NEVER,
                "log_every": log_every or settings.log_every,
                "stopping": StoppingSettings(),
                "distillation": DistillationSettings(),  # asked before the first step, not in it
            }
        )
        device = choose_device(settings.device)
        strategy: SingleProcess | CanonicalMicrobatches = SingleProcess(device)
        if settings.deterministic == "topology":
            assert isinstance(strategy, SingleProcess)
            strategy = CanonicalMicrobatches(
                strategy, parts=settings.canonical_microbatches, seed=settings.seed
            )
        return Trainer(
            task=self.task,
            model=self.model(),
            train=self.feed,
            validation=self.validation,
            settings=changed,
            strategy=strategy,
            should_stop=should_stop,
        )


def take_steps(trainer: Trainer, steps: int, *, after: Callable[[int], bool | None]) -> None:
    """Take steps in this thread; what is trained by many processes is one of them here.

    Args:
        trainer: Not begun yet; its `should_stop` is replaced.
        steps: At most so many.
        after: Called with the steps taken so far after each of them, once; True ends it there.
    """
    seen, ended = 0, False

    def asked() -> bool:
        nonlocal seen, ended
        if trainer.outcome.steps != seen:  # the loop may ask twice
            seen = trainer.outcome.steps
            ended = bool(after(seen)) or seen >= steps
        return ended

    trainer.should_stop = asked
    trainer.fit()
