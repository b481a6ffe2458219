"""What a step spends its time on, phase by phase: clocks put around the loop's own parts.

The loop itself is not changed, and pays nothing where nobody looks: the parts of one trainer are
wrapped from outside. The times are the host's: on a GPU they say what the host was busy with, and
the device's own come from torch's profiler.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.profiler import record_function

from training_core.examples import Examples
from training_core.feeds.batches import Feed, Sharing, StepBatch
from training_core.loop import Trainer

Phase = Literal["input", "augmentation", "copy", "forward", "loss", "backward", "optimiser", "loop"]
PHASES: tuple[Phase, ...] = get_args(Phase)
WAITS: tuple[Phase, ...] = ("input", "augmentation", "copy")


class Phases:
    """The phases of a trainer's steps.

    Args:
        trainer: Not begun yet; used for nothing else afterwards.
        named: Whether each phase is a range in torch's profiler.

    Attributes:
        now: The phase that is under way.
        steps: Of each step, its seconds by phase as the host saw them.
        computing: Of each step, the CPU time of this thread in the phases that are no waiting.
    """

    def __init__(self, trainer: Trainer, *, named: bool = False) -> None:
        self.now: Phase = "loop"
        self.steps: list[dict[Phase, float]] = []
        self._named, self._range = named, None  # type: tuple[bool, record_function | None]
        self._spent: dict[Phase, float] = dict.fromkeys(PHASES, 0.0)
        self.computing: list[float] = []
        self._last, self._last_cpu, self._cpu = time.perf_counter(), time.thread_time(), 0.0
        self._wrap(trainer)

    def enter(self, phase: Phase) -> None:
        """Say what the time from now on is spent on."""
        now, cpu = time.perf_counter(), time.thread_time()
        self._spent[self.now] += now - self._last
        if self.now not in WAITS:
            self._cpu += cpu - self._last_cpu
        self.now, self._last, self._last_cpu = phase, now, cpu
        if self._named:
            self.close()
            self._range = record_function(f"evertrain: {phase}")
            self._range.__enter__()  # type: ignore[no-untyped-call]

    def step(self) -> None:
        """A step is over."""
        self.enter("loop")
        self.steps.append(self._spent)
        self.computing.append(self._cpu)
        self._spent, self._cpu = dict.fromkeys(PHASES, 0.0), 0.0

    def close(self) -> None:
        """End the range that is open in torch's profiler."""
        if self._range is not None:
            self._range.__exit__(None, None, None)
            self._range = None

    def _wrap(self, trainer: Trainer) -> None:
        trainer.feed = _Feed(trainer.feed, self)
        trainer.augment = _Augment(trainer.augment, self)
        trainer.model.register_forward_pre_hook(lambda module, inputs: self.enter("forward"))
        trainer.task = _Objective(trainer.task, self)
        trainer.update.step = self._around(trainer.update.step)  # type: ignore[method-assign]

    def _around(self, step: Callable[..., None]) -> Callable[..., None]:
        def taken(**measure: bool) -> None:
            self.enter("optimiser")
            step(**measure)
            self.enter("loop")

        return taken


class _Feed:
    """A feed whose every step is timed."""

    def __init__(self, feed: Feed, phases: Phases) -> None:
        self._feed, self._phases = feed, phases

    def __len__(self) -> int:
        return len(self._feed)

    def steps(self, sharing: Sharing, *, samples: int) -> Generator[StepBatch, None, None]:
        inner = self._feed.steps(sharing, samples=samples)
        try:
            while True:
                self._phases.enter("input")
                step = next(inner, None)
                self._phases.enter("loop")
                if step is None:
                    return
                yield step
        finally:
            inner.close()


class _Augment:
    def __init__(self, augment: Any, phases: Phases) -> None:
        self._augment, self._phases = augment, phases

    def __call__(self, examples: Examples, *, sample: int, part: int) -> Examples:
        self._phases.enter("augmentation")
        augmented: Examples = self._augment(examples, sample=sample, part=part)
        self._phases.enter("copy")
        return augmented


class _Objective:
    """A task whose loss is timed; what comes after it is backward."""

    def __init__(self, task: Any, phases: Phases) -> None:
        self._task, self._phases = task, phases

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        self._phases.enter("loss")
        losses: Tensor = self._task.loss(outputs, target)
        self._phases.enter("backward")
        return losses

    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        found: dict[str, Tensor] = self._task.metrics(outputs, target)
        return found


def wait_for(device: torch.device) -> None:
    """Wait until a GPU has done what it was asked."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
