"""Where the time of a step goes, measured in one step of each log interval.

    meter = Meter(device, watched=model.parameters() if world_size > 1 else ())
    ...
    if step == measured:
        meter.begin()
    batch = next(batches)
    if meter.measuring:
        meter.mark("data")              # the time since begin() was spent on data
    ...                                 # "forward", "backward", "optimiser", as often as needed
    if meter.measuring:
        meter.end()
    ...
    point = Point(..., **meter.read())  # at the log interval, which waits for the device anyway

Steps that are not measured pay one look at a boolean. On a GPU the marks are events in its stream,
so a phase is what it adds to the stream's own time line: data that is fetched while the GPU works
costs nothing, and reading them is the only wait. Measure the last step of an interval: after the
wait at a log interval the first steps find an empty queue, which is not how the others run.

Exposed communication is the time from the last gradient of this rank being ready to the end of
backward: until then gradients are exchanged while others are still computed. Sharded parameters
have no such moment (each layer's gradients are exchanged as they arise), so there it is not known.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Literal, Protocol

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

Phase = Literal["data", "forward", "backward", "optimiser", "communication"]
PHASES: tuple[Phase, ...] = ("data", "forward", "backward", "optimiser", "communication")


class Meter:
    """Measures the phases of one step, and adds up the time that checkpoints kept training waiting.

    Args:
        device: Where this process computes.
        watched: Parameters whose gradients are exchanged while backward runs; none where nothing
            is, or where the loop marks `communication` itself.

    Attributes:
        measuring: Whether this step is measured.
    """

    def __init__(self, device: torch.device, watched: Iterable[Tensor] = ()) -> None:
        self.measuring = False
        self._clock: _Clock = _EventClock() if device.type == "cuda" else _HostClock()
        self._watched = [p for p in watched if p.requires_grad]
        self._sharded = any(hasattr(p, "device_mesh") for p in self._watched)  # DTensors
        self._hooks: list[RemovableHandle] = []
        self._marks: list[tuple[Phase, int]] = []
        self._ready = -1  # instant at which the last gradient so far was ready
        self._stall = 0.0
        self._whole = False

    def begin(self) -> None:
        """Measure from here to `end`."""
        self.measuring, self._whole = True, False
        self._clock.restart()
        self._marks, self._ready = [], -1
        if not self._sharded:
            self._hooks = [
                p.register_post_accumulate_grad_hook(self._gradient)  # type: ignore[no-untyped-call]
                for p in self._watched
            ]

    def mark(self, phase: Phase) -> None:
        """Say what the time since the last mark was spent on."""
        self._marks.append((phase, self._clock.now()))

    def end(self) -> None:
        """The measured step is over."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        self.measuring, self._whole = False, True

    def stalled(self, seconds: float) -> None:
        """Count time that a checkpoint kept training waiting."""
        self._stall += seconds

    def read(self) -> dict[str, float | None]:
        """Return `Point`'s times, and begin the next interval; waits for a GPU.

        A step that was begun and not ended, or was never begun, has no times.
        """
        stall, self._stall = self._stall, 0.0
        known = self._whole
        self._whole = False
        spent = self._spent() if known else {}
        times = {f"seconds_{phase}": spent.get(phase, 0.0) if known else None for phase in PHASES}
        if self._sharded:
            times["seconds_communication"] = None
        return {**times, "checkpoint_stall": stall}

    def _spent(self) -> dict[Phase, float]:
        seconds = self._clock.seconds()
        spent = dict.fromkeys(PHASES, 0.0)
        for (phase, now), before in zip(self._marks, self._before(), strict=True):
            if phase == "backward" and before < self._ready <= now:  # the last one: it exchanges
                spent["communication"] += seconds[now] - seconds[self._ready]
                now = self._ready
            spent[phase] += seconds[now] - seconds[before]
        return spent

    def _before(self) -> Iterator[int]:
        yield 0
        yield from (instant for _, instant in self._marks[:-1])

    def _gradient(self, _: Tensor) -> None:
        self._ready = self._clock.now(again=self._ready)


class _Clock(Protocol):
    """Instants by number; the first one, 0, is the restart."""

    def restart(self) -> None: ...

    def now(self, *, again: int = -1) -> int:
        """Note an instant; `again`: the last one noted may be moved if it is this."""

    def seconds(self) -> list[float]:
        """Return all instants since the first."""


class _HostClock:
    """A CPU computes when it is told to."""

    def restart(self) -> None:
        self._instants = [time.perf_counter()]

    def now(self, *, again: int = -1) -> int:
        if 0 <= again == len(self._instants) - 1:
            self._instants.pop()
        self._instants.append(time.perf_counter())
        return len(self._instants) - 1

    def seconds(self) -> list[float]:
        return [instant - self._instants[0] for instant in self._instants]


class _EventClock:
    """A GPU computes later: events in its stream tell when."""

    def restart(self) -> None:
        self._events: list[torch.cuda.Event] = []
        self.now()

    def now(self, *, again: int = -1) -> int:
        if 0 <= again == len(self._events) - 1:
            event = self._events[again]  # recorded again, it tells the later instant
        else:
            event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            self._events.append(event)
        event.record()
        return len(self._events) - 1

    def seconds(self) -> list[float]:
        self._events[-1].synchronize()
        first = self._events[0]
        return [first.elapsed_time(event) / 1000 for event in self._events]
