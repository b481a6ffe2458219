"""Some steps of the planned training, taken apart.

Several short trainings from the same start, since whoever looks closely slows down what he looks
at: one is timed (`timing.py`), one has its operations and waits watched and one its memory weighed
(`watching.py`), one runs under torch's profiler (`trace.py`). With training.compile the operations
are told apart without it, for compiled they are fused.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from training_core.precision import choose_precision
from training_core.profiling.apportioning import apportion
from training_core.profiling.calibration import calibrate
from training_core.profiling.planned import Planned
from training_core.profiling.result import Profile
from training_core.profiling.timing import time_steps
from training_core.profiling.trace import trace
from training_core.profiling.watching import watch, weigh
from training_core.telemetry.flops import flops_per_example

_TRACED = 12  # steps


def profile(planned: Planned, *, trace_file: Path | None = None, steps: int = 0) -> Profile:
    """Take some steps of a training apart.

    Args:
        planned: The training.
        trace_file: Where the trace for Perfetto goes (`.json.gz`).
        steps: To time; 0: as many as a few seconds allow.
    """
    device, settings = planned.device, planned.settings
    machine = calibrate(device, choose_precision(settings.precision, device))
    timed = time_steps(planned, steps=steps)
    told_apart = replace(planned, settings=settings.model_copy(update={"compile": False}))
    work, syncs = watch(told_apart, machine)
    traced = trace(told_apart, steps=_TRACED, names=work, file=trace_file)
    bars, limits = apportion(timed, work, traced, on_gpu=device.type == "cuda")
    sample, model = planned.examples.take(slice(0, 8)), planned.model()
    flops = flops_per_example(model, planned.task, sample)
    if flops is None:  # the network or the loss looks into its data: as they were counted, then
        counted = sum(each.flops for each in work.values()) / settings.batch_size
        flops = counted or None
    rate = settings.batch_size / timed.seconds
    return Profile(
        steps=timed.steps,
        seconds=timed.seconds,
        spread=timed.spread,
        phases=timed.phases,
        batch_size=settings.batch_size,
        parameters=sum(p.numel() for p in model.parameters()),
        units=1.0 if sample.units is None else float(sample.units.mean()),
        flops=flops,
        mfu=None if flops is None else flops * rate / (machine.published or machine.flops),
        machine=machine,
        work=work,
        traced=traced,
        bars=bars,
        limits=limits,
        memory=weigh(told_apart),
        evaluation_seconds=timed.evaluation_seconds,
        compiled=settings.compile,
        syncs=syncs,
        hot=timed.hot,
    )
