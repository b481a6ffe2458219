"""Steps that are timed, with nothing but clocks around their phases, and the lines that take it."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from statistics import fmean, median, quantiles

import torch

from training_core.evaluation import evaluate
from training_core.loop import Trainer
from training_core.profiling.phases import PHASES, WAITS, Phase, Phases, wait_for
from training_core.profiling.places import Place
from training_core.profiling.planned import Planned, take_steps
from training_core.profiling.result import HotLine
from training_core.profiling.sampling import Sampler

_WARM_UP = 5
_FEWEST, _MOST = 20, 400
_SECONDS = 4.0  # that timing takes, and looking at the stacks after it
_BURSTS: tuple[Phase, ...] = ("input", "loop")  # a feed cuts many batches at once, now and then
_BLOCKS = 5  # of steps whose means are taken
_EVALUATED = 2048  # rows
_LEAST_SHARE = 0.03  # of a step, from which on a line is named
_LINES = 6


@dataclass(frozen=True)
class Timed:
    """What the clocks said.

    Attributes:
        steps: How many.
        seconds: Of a step.
        spread: Quartiles of the steps.
        phases: Of a step; they add up to `seconds`.
        quick: What the phases that are no waiting take undisturbed: one thread's CPU time, or, of
            several threads, the least of each phase.
        hot: Lines of the user's.
        evaluation_seconds: Of evaluating the whole validation split once.
    """

    steps: int
    seconds: float
    spread: tuple[float, float]
    phases: dict[Phase, float]
    quick: float
    hot: list[HotLine]
    evaluation_seconds: float


def time_steps(planned: Planned, *, steps: int = 0) -> Timed:
    """Time some steps of a training; 0: as many as a few seconds allow."""
    trainer = planned.trainer(steps=_WARM_UP + 2 * _MOST)
    phases, device = Phases(trainer), planned.device
    most, deadline, began, ended = steps or _MOST, 0.0, 0.0, 0.0
    sampler = Sampler(lambda: phases.now)
    timed = 0

    def after(step: int) -> bool:
        """Warm up, then time, then do as many steps again while the sampler looks."""
        nonlocal began, ended, deadline, timed
        phases.step()
        now = time.perf_counter()
        if step == _WARM_UP:
            wait_for(device)
            phases.steps.clear()
            phases.computing.clear()
            began, deadline = time.perf_counter(), now + _SECONDS
        elif not timed:
            taken = step - _WARM_UP
            enough = taken >= (steps or _FEWEST) and (now > deadline or taken >= most)
            if taken > 0 and enough:
                wait_for(device)
                ended, timed = time.perf_counter(), len(phases.steps)
                deadline = now + _SECONDS
                sampler.__enter__()
        else:
            return now > deadline or len(phases.steps) >= 2 * timed
        return False

    try:
        take_steps(trainer, _WARM_UP + 2 * _MOST + 2 * steps, after=after)
    finally:
        if timed:
            sampler.__exit__(None, None, None)
    counted = phases.steps[:timed]
    spent: dict[Phase, float] = {
        phase: (_mean if phase in _BURSTS else median)([step[phase] for step in counted])
        for phase in PHASES
    }
    whole = sum(spent.values())
    if device.type == "cuda":  # the host runs ahead of the device
        wall = (ended - began) / timed
        spent["loop"] += wall - whole
        whole = wall
    totals = [sum(step.values()) for step in counted]
    first, _, third = quantiles(totals, n=4)
    return Timed(
        steps=timed,
        seconds=whole,
        spread=(first, third),
        phases=spent,
        quick=_undisturbed(phases, timed),
        hot=_hot(sampler.seen),
        evaluation_seconds=_evaluation(planned, trainer),
    )


def _undisturbed(phases: Phases, timed: int) -> float:
    if torch.get_num_threads() == 1:
        return median(phases.computing[:timed])
    counted = phases.steps[:timed]
    return sum(min(step[phase] for step in counted) for phase in PHASES if phase not in WAITS)


def _mean(seconds: list[float]) -> float:
    """The median of a few means, which forgives another process that had the core for a while."""
    size = -(-len(seconds) // _BLOCKS)
    return median([fmean(seconds[i : i + size]) for i in range(0, len(seconds), size)])


def _hot(seen: Counter[tuple[Phase, Place | None]]) -> list[HotLine]:
    whole = sum(seen.values())
    lines = [
        HotLine(place, phase, seconds / whole)
        for (phase, place), seconds in seen.most_common()
        if place is not None and seconds > _LEAST_SHARE * whole
    ]
    return lines[:_LINES]


def _evaluation(planned: Planned, trainer: Trainer) -> float:
    """Seconds of one evaluation, by some rows of it."""
    some = planned.validation.take(slice(0, _EVALUATED))
    rows = planned.settings.evaluation_rows or planned.validation_rows or len(planned.validation)
    began = time.perf_counter()
    evaluate(
        planned.task,
        trainer.module,
        some,
        strategy=trainer.strategy,
        autocast=trainer.precision.autocast,
    )
    wait_for(planned.device)
    return (time.perf_counter() - began) * rows / max(1, len(some))
