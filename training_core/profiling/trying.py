"""Tries changes of settings on the planned training: interleaved, so that a busy machine is fair.

All trainings are begun before anything is timed. Then they take turns, a few steps each, round
after round; compared is what lay side by side in time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from training_core.errors import EvertrainError
from training_core.profiling.advice import Change
from training_core.profiling.phases import wait_for
from training_core.profiling.planned import Planned
from training_core.settings import TrainingSettings

_WARM_UP = 5
_ROUNDS = 9
_SECONDS = 0.2  # of a turn


@dataclass(frozen=True)
class Tried:
    """What a change brought.

    Attributes:
        change: What was changed.
        ratio: Examples a second with it over those without, the median of the rounds.
        low, high: An interval for the median: the second least and the second most of nine.
        rounds: How many.
        failed: Why it could not be tried; empty: it could.
    """

    change: Change
    ratio: float = 0.0
    low: float = 0.0
    high: float = 0.0
    rounds: int = 0
    failed: str = ""

    @property
    def verdict(self) -> str:
        """In a word."""
        if self.failed:
            return "not possible"
        if self.low > 1.0:
            return "faster"
        return "slower" if self.high < 1.0 else "no difference shown"


def changed(settings: TrainingSettings, change: Change) -> TrainingSettings:
    """Return the settings with a change, checked as a project's are."""
    return TrainingSettings.model_validate(
        {**settings.model_dump(), change.setting.removeprefix("training."): change.value}
    )


def try_changes(
    planned: Planned,
    changes: Sequence[Change],
    *,
    rounds: int = _ROUNDS,
    on_round: Callable[[int], None] = lambda done: None,
) -> list[Tried]:
    """Try each change by itself against the settings as they are.

    Args:
        planned: The training.
        changes: To try.
        rounds: Turns of each.
        on_round: Called with the rounds that are done.
    """
    runners: list[_Runner] = []
    failed: dict[int, str] = {}
    base = _Runner(planned, planned.settings)
    try:
        base.take(_WARM_UP)
        steps = max(2, round(_SECONDS / base.seconds_a_step(3)))
        for index, change in enumerate(changes):
            try:
                runner = _Runner(planned, changed(planned.settings, change))
                runners.append(runner)
                runner.take(_WARM_UP)
            except (EvertrainError, RuntimeError, ValueError) as error:
                failed[index] = str(error).splitlines()[0][:200]
                if len(runners) <= index:
                    runners.append(base)
        ratios: list[list[float]] = [[] for _ in changes]
        for done in range(rounds):
            for index, runner in enumerate(runners):
                if index not in failed:
                    before = base.rate(steps)
                    ratios[index].append(runner.rate(max(2, steps // runner.larger)) / before)
            on_round(done + 1)
    finally:
        for runner in (base, *runners):
            runner.close()
    return [
        Tried(change, failed=failed[i])
        if i in failed
        else Tried(change, median(ratios[i]), *_interval(ratios[i]), rounds)
        for i, change in enumerate(changes)
    ]


def _interval(ratios: Sequence[float]) -> tuple[float, float]:
    """An interval for the median that needs no assumption: the second least to the second most.

    Of nine rounds it holds the median in 96 of 100 cases (the sign test's).
    """
    ordered, cut = sorted(ratios), int(len(ratios) > 6)
    return ordered[cut], ordered[-1 - cut]


class _Runner:
    """A training in a thread of its own that takes steps when it is told to, and else waits.

    Attributes:
        larger: How many times the planned batch its own is, at least 1.
    """

    def __init__(self, planned: Planned, settings: TrainingSettings) -> None:
        self.larger = max(1, settings.batch_size // planned.settings.batch_size)
        self._batch = settings.batch_size
        self._threads = settings.threads or torch.get_num_threads()
        self._trainer = planned.trainer(settings=settings, steps=100_000, should_stop=self._asked)
        self._device = planned.device
        self._go, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._seen = self._until = 0
        self._closing = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="evertrain-try", daemon=True)
        self._thread.start()

    def take(self, steps: int) -> float:
        """Take steps; return the seconds."""
        self._until += steps
        began = time.perf_counter()
        self._go.release()
        self._done.acquire()
        wait_for(self._device)
        if self._error is not None:
            raise self._error
        return time.perf_counter() - began

    def seconds_a_step(self, steps: int) -> float:
        return self.take(steps) / steps

    def rate(self, steps: int) -> float:
        """Examples a second over some steps."""
        return steps * self._batch / self.take(steps)

    def close(self) -> None:
        """End the thread."""
        self._closing = True
        self._go.release()
        self._thread.join()

    def _asked(self) -> bool:
        if self._trainer.outcome.steps != self._seen:
            self._seen = self._trainer.outcome.steps
            if self._seen >= self._until:
                self._done.release()
                self._wait()
        return self._closing

    def _wait(self) -> None:
        self._go.acquire()
        if not self._closing:
            torch.set_num_threads(self._threads)

    def _run(self) -> None:
        try:
            self._wait()
            if not self._closing:
                self._trainer.fit()
        except BaseException as error:  # noqa: BLE001 (raised again where it is waited for)
            self._error = error
            self._done.release()
