"""Some steps under torch's profiler: a trace for Perfetto, and what each operation took."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from training_core.profiling.phases import Phases
from training_core.profiling.planned import Planned, take_steps

_WARM_UP = 3
_PREFIX = "evertrain: "
# Phases whose operations are the data's: the clocks have their time already.
_WAITS = {f"{_PREFIX}{phase}" for phase in ("input", "augmentation", "copy")}
_LEAST_GAP = 5e-6  # seconds; less is the profiler's own


@dataclass(frozen=True)
class Gap:
    """A time in which no operation ran.

    Attributes:
        seconds: How long.
        phase: In which phase it lay.
        after, before: The operations around it.
    """

    seconds: float
    phase: str
    after: str
    before: str


@dataclass(frozen=True)
class Traced:
    """What torch's profiler saw, per step.

    Attributes:
        seconds: Of a step, with the profiler's own cost.
        operations: Seconds by operation, on the device that trains, without the data's; on a CPU
            the quickest of each call.
        idle: Seconds in which none ran.
        gaps: The longest of all steps.
        kernels: Operations (on a GPU: kernels) a step.
    """

    seconds: float
    operations: dict[str, float]
    idle: float
    gaps: list[Gap] = field(default_factory=list)
    kernels: float = 0.0


def trace(planned: Planned, *, steps: int, names: Collection[str], file: Path | None) -> Traced:
    """Take steps under torch's profiler.

    Args:
        planned: The training.
        steps: How many are traced, after some to warm up.
        names: Of the operations that time is counted for; what they call belongs to them.
        file: Where the trace goes (`.json.gz`); None: nowhere.
    """
    gpu = planned.device.type == "cuda"
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * gpu
    trainer = planned.trainer(steps=_WARM_UP + steps)
    phases = Phases(trainer, named=True)
    profiler = profile(activities=activities, acc_events=True)

    def after(step: int) -> None:
        phases.step()
        if step == _WARM_UP:
            phases.close()
            if gpu:
                torch.cuda.synchronize()
            profiler.start()
        elif step == _WARM_UP + steps:
            phases.close()
            if gpu:
                torch.cuda.synchronize()
            profiler.stop()

    take_steps(trainer, _WARM_UP + steps, after=after)
    if file is not None:
        profiler.export_chrome_trace(str(file))
    events = list(profiler.events() or [])  # type: ignore[no-untyped-call]
    return _on_gpu(events, steps) if gpu else _on_cpu(events, steps, set(names))


def _on_cpu(events: Sequence[Any], steps: int, names: set[str]) -> Traced:
    """Time of each operation is that of the outermost event with its name."""
    busy: list[tuple[float, float, str]] = []
    ranges = [e for e in events if e.name.startswith(_PREFIX)]
    begins = sorted(e.time_range.start / 1e6 for e in ranges if e.name == f"{_PREFIX}input")
    spent: dict[str, list[list[float]]] = defaultdict(lambda: [[] for _ in range(len(begins) + 1)])
    for event in events:
        if event.name in names:
            within = _above(event)
            if not names.isdisjoint(within):
                continue  # a part of another operation
            start, end = event.time_range.start / 1e6, event.time_range.end / 1e6
            busy.append((start, end, event.name))
            if _WAITS.isdisjoint(within):
                spent[event.name][bisect_right(begins, start)].append(end - start)
    whole = _extent(ranges)
    return Traced(
        seconds=whole / steps,
        operations={name: _undisturbed(each[1:]) for name, each in spent.items()},
        idle=max(0.0, whole - sum(end - start for start, end, _ in busy)) / steps,
        gaps=_gaps(busy, ranges),
        kernels=len(busy) / steps,
    )


def _on_gpu(events: Sequence[Any], steps: int) -> Traced:
    """A kernel's time goes to the operation that launched it."""
    spent: dict[str, float] = defaultdict(float)
    busy = [
        (e.time_range.start / 1e6, e.time_range.end / 1e6, e.name)
        for e in events
        if e.device_type == DeviceType.CUDA and not e.is_user_annotation
    ]
    for event in events:
        if event.device_type == DeviceType.CPU and event.self_device_time_total:
            spent[event.name] += event.self_device_time_total / 1e6
    ranges = [e for e in events if e.name.startswith(_PREFIX) and e.device_type == DeviceType.CPU]
    whole = _extent(ranges)
    return Traced(
        seconds=whole / steps,
        operations={name: seconds / steps for name, seconds in spent.items()},
        idle=max(0.0, whole - sum(end - start for start, end, _ in busy)) / steps,
        gaps=_gaps(busy, ranges),
        kernels=len(busy) / steps,
    )


def _undisturbed(steps: list[list[float]]) -> float:
    """Seconds of a step's calls: of each the quickest, for in others another process may have had
    the core; where steps call it unequally often, those of the quickest step."""
    if len({len(calls) for calls in steps}) == 1:
        least: list[float] = [min(same) for same in zip(*steps, strict=True)]
        return sum(least)
    return min(sum(calls) for calls in steps)


def _above(event: Any) -> set[str]:
    """Names of what an event is a part of."""
    found, parent = set(), event.cpu_parent
    while parent is not None:
        found.add(parent.name)
        parent = parent.cpu_parent
    return found


def _extent(ranges: Sequence[Any]) -> float:
    starts = [e.time_range.start for e in ranges]
    ends = [e.time_range.end for e in ranges]
    return (max(ends) - min(starts)) / 1e6 if ranges else 0.0


def _gaps(busy: list[tuple[float, float, str]], ranges: Sequence[Any]) -> list[Gap]:
    busy.sort()
    gaps = [
        (after[0] - before[1], before[1], before[2], after[2])
        for before, after in pairwise(busy)
        if after[0] - before[1] > _LEAST_GAP
    ]
    return [
        Gap(seconds, _phase_at(start + seconds / 2, ranges), one, other)
        for seconds, start, one, other in sorted(gaps, reverse=True)[:5]
    ]


def _phase_at(instant: float, ranges: Sequence[Any]) -> str:
    within = (
        e.name.removeprefix(_PREFIX)
        for e in ranges
        if e.time_range.start / 1e6 <= instant <= e.time_range.end / 1e6
    )
    return next(within, "loop")
