"""Trainings for the tests of profiling: a sound one, and one with stalls planted on purpose."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from pathlib import Path

import torch
from torch import Tensor

from tests.training_core.training_samples import Sales, rows
from training_core.examples import Examples
from training_core.feeds.batches import Feed, Sharing, StepBatch
from training_core.feeds.memory import MemoryFeed
from training_core.profiling.planned import Planned
from training_core.settings import TrainingSettings

HERE = Path(__file__)
SLEEP = 0.004


class Stalling(Sales):
    """Sleeps in its augmentation; reads a value, prints, and picks rows in its loss."""

    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> tuple[dict[str, Tensor], Tensor]:
        time.sleep(SLEEP)  # planted: augmentation
        return arrays, target

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        losses = super().loss(outputs, target)
        if losses.mean().item() > 1e9:  # planted: item
            raise AssertionError
        print("a word", file=sys.stderr)  # planted: print
        outputs[target > 0].sum()  # planted: mask
        losses.detach().cpu()  # planted: cpu
        return losses


class SleepingFeed:
    """A feed that takes its time for each step."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed

    def __len__(self) -> int:
        return len(self.feed)

    def steps(self, sharing: Sharing, *, samples: int) -> Generator[StepBatch, None, None]:
        for step in self.feed.steps(sharing, samples=samples):
            time.sleep(SLEEP)  # planted: feed
            yield step


def line_of(word: str) -> int:
    """Number of the line above that plants something."""
    lines = HERE.read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.endswith(f"# planted: {word}"))


def planned(
    task: Sales | None = None, *, count: int = 2000, sleeping: bool = False, **settings: object
) -> Planned:
    """The training of some sales."""
    task, frame = task or Sales(), rows(count)
    preprocessor = task.preprocessor().fit(frame)
    examples = Examples.from_frame(task, preprocessor, frame)
    feed: Feed = MemoryFeed(examples)
    given = {"batch_size": 128, "threads": 1, "device": "cpu", **settings}
    return Planned(
        task=task,
        preprocessor=preprocessor,
        feed=SleepingFeed(feed) if sleeping else feed,
        examples=examples,
        validation=examples.take(slice(0, 200)),
        settings=TrainingSettings.model_validate(given),
    )
