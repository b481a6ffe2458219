"""What a profile, a sweep and the batch sizes mean, in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from components.report_run.formats import number, percent, plain, plural, size
from components.report_run.formats import seconds as duration

if TYPE_CHECKING:
    from training_core.checks.dynamics.rates import Probe
    from training_core.profiling.advice import Bar
    from training_core.profiling.batch_sizes import BatchSizes
    from training_core.profiling.estimate import Estimate
    from training_core.profiling.learning_rate import Sweep
    from training_core.profiling.noise_scale import NoiseScale
    from training_core.profiling.result import HotLine, Profile, Sync
    from training_core.profiling.trying import Tried

_BOUNDS = {
    "input": "The step waits for its data",
    "compute": "The step is bound by compute",
    "memory": "The step is bound by memory bandwidth",
    "overhead": "The step is bound by overhead (Python and the calling of operations)",
}
LIMITS = {
    "input": "waiting for data",
    "compute": "computing",
    "memory": "moving bytes",
    "overhead": "Python and calls",
}


def brief(value: float) -> str:
    """Seconds as milliseconds or microseconds where they are few."""
    if value < 1e-3:
        return f"{number(1e6 * value)} µs"
    return f"{number(1e3 * value)} ms" if value < 1 else duration(value)


def headline(found: Profile) -> str:
    """What bounds the step, and how much of it."""
    return f"{_BOUNDS[found.bound]}, {percent(found.limits[found.bound])} of it"


def steps(found: Profile) -> str:
    low, high = found.spread
    return (
        f"A step of {plural(found.batch_size, 'example')} takes {brief(found.seconds)} (the middle "
        f"half of {found.steps}: {brief(low)} to {brief(high)}): "
        f"{found.examples_per_second:,.0f} examples a second on {found.machine.device} in "
        f"{found.machine.precision}."
    )


def roofline(found: Profile) -> str:
    """The machine's two roofs, and where the step is under them."""
    machine = found.machine
    ridge = machine.flops / machine.bandwidth
    side = "left of" if found.intensity < ridge else "right of"
    said = (
        f"This machine was measured at {number(machine.flops / 1e9)} GFLOP/s and "
        f"{number(machine.bandwidth / 1e9)} GB/s; a call takes {brief(machine.call)}. "
        f"The step does {number(found.intensity)} FLOPs a byte, {side} the ridge at {number(ridge)}"
    )
    if found.mfu is None:
        return f"{said}; its FLOPs could not be counted, so there is no MFU."
    peak = "the published peak" if machine.published else "the measured peak"
    return f"{said}, and reaches {percent(found.mfu)} of {peak} (MFU)."


def memory(found: Profile) -> str:
    held = found.memory
    return (
        f"Weights {size(held.weights)}, gradients {size(held.gradients)}, optimiser "
        f"{size(held.optimiser)}; forward keeps {size(held.activations)} for backward. The process "
        f"has held {size(held.peak)} at most, of {size(held.whole)}."
    )


def wait(sync: Sync) -> str:
    times = "once a step" if sync.times == 1 else f"{plain(sync.times)} times a step"
    return f"{sync.kind} {times} at {sync.place}: {sync.place.code}"


def line(hot: HotLine) -> str:
    return f"{percent(hot.share)} of the step at {hot.place} ({hot.phase}): {hot.place.code}"


def bar(each: Bar) -> str:
    return f"{each.name}, {percent(each.share)} ({brief(each.seconds)}): {each.words}"


def gap(found: Profile) -> str:
    """The time in which no operation runs."""
    share = found.traced.idle / found.traced.seconds if found.traced.seconds else 0.0
    said = (
        f"Under the profiler, which slows the host down, {percent(share)} of the time no operation "
        f"ran, between {number(found.traced.kernels)} of them a step"
    )
    if not found.traced.gaps:
        return f"{said}."
    longest = found.traced.gaps[0]
    return (
        f"{said}; the longest gap was {brief(longest.seconds)}, in {longest.phase}, between "
        f"{longest.after} and {longest.before}."
    )


def run(planned: Estimate) -> list[str]:
    """What the whole planned run will take."""
    cost = f", at a cost of {number(planned.cost)}" if planned.cost is not None else ""
    said = [
        f"{plural(planned.steps, 'step')} and their evaluations take about "
        f"{duration(planned.seconds)}{cost}, on this machine, with nothing beside."
    ]
    unit = "token" if planned.sequence else "example"
    if planned.flops is not None:
        rule = f"; by 6ND {number(planned.six_n_d)}" if planned.six_n_d is not None else ""
        said.append(f"It computes {number(planned.flops)} FLOPs as counted{rule}.")
    ratio = planned.units_a_parameter
    data = (
        f"{number(planned.different)} different {unit}s for {planned.parameters:,} parameters: "
        f"{number(ratio)} a parameter"
    )
    if not planned.sequence:
        return [*said, f"{data}."]
    return [
        *said,
        f"{data}; 20 are what compute spends best when a language model is trained once from "
        "nothing (Hoffmann et al. 2022, on models from 70 million parameters on: for a smaller one "
        "a hint, and none for fine-tuning).",
    ]


def tried(each: Tried) -> str:
    if each.failed:
        return f"{each.change}: not possible: {each.failed}"
    return (
        f"{each.change}: {plain(each.ratio)} times as many examples a second "
        f"({plain(each.low)} to {plain(each.high)} in {each.rounds} rounds): {each.verdict}"
    )


def proposal(found: Sweep, verdict: str) -> str:
    """What a range test proposes, and the trainings that were held against it."""
    if found.steepest is None:
        return (
            "The loss fell nowhere in the sweep, so no rate can be proposed; look at the loss and "
            "the inputs first (evertrain check)"
        )
    assert found.proposed is not None
    if verdict != "yes":
        how = "no better" if verdict == "unclear" else "worse"
        return (
            f"Keep training.optimiser.lr {plain(found.planned)}: the {plain(found.proposed, 2)} of "
            f"the range test trains {how}"
        )
    return f"Proposed: training.optimiser.lr {plain(found.proposed, 2)}"


def swept(found: Sweep) -> list[str]:
    """What was seen in a range test."""
    said = [
        f"{plural(len(found.rates), 'step')} from {plain(found.rates[0])} to "
        f"{plain(found.rates[-1])}; the smoothed loss fell by {percent(max(0.0, found.fell))}."
    ]
    if found.steepest is not None:
        said.append(f"It falls fastest at {plain(found.steepest)}.")
    if found.diverged is None:
        said.append("It did not diverge, so the steepest point alone is gone by.")
    else:
        said.append(
            f"It diverged at {plain(found.diverged)}; a tenth of that is "
            f"{plain(found.diverged / 10)}. The lower of the two is proposed."
        )
    return said


def compared(probes: dict[str, Probe], verdict: str, planned: float) -> str:
    """Whether the proposed rate trained better from the start."""
    if "proposed" not in probes:
        return ""
    ends = [
        f"{name} ({plain(planned * probe.factor, 2)}) "
        + ("diverged" if probe.diverged else number(probe.loss, 4))
        for name, probe in probes.items()
    ]
    word = {
        "yes": "the proposed rate trains better than the planned one",
        "no": "the planned rate trains better",
        "unclear": "the proposed and the planned one cannot be told apart",
    }[verdict]
    return (
        f"Trained for {plural(probes['planned'].steps[-1], 'step')} each from the same start, the "
        f"loss of the same {plural(probes['planned'].losses.shape[1], 'row')} is: "
        f"{', '.join(ends)}; {word}."
    )


def sizes(found: BatchSizes, planned: int) -> list[str]:
    """What fits and what is fast."""
    knee = found.knee
    fits = f"The largest batch that fits is about {found.largest:,}"
    if found.limit == "rows":
        fits = f"Memory is no limit: a batch of all {found.largest:,} rows fits"
    grows = f"{size(round(found.bytes_an_example))} an example" if found.bytes_an_example else ""
    return [
        f"{knee.batch_size:,} is the smallest batch with nine tenths of the best throughput, "
        f"{found.best:,.0f} examples a second; planned is {planned:,}.",
        f"{fits} (the peak grows by {grows}, {size(found.free)} are free)."
        if grows
        else f"{fits}.",
    ]


def noise(found: Sequence[NoiseScale], planned: int) -> list[str]:
    """What the noise scale says of the planned batch."""
    known = [each for each in found if each.known]
    if not known:
        return [
            "The gradient cannot be told from its noise in what was drawn: the noise scale is far "
            "above the planned batch, so larger batches would not waste examples."
        ]
    last = known[-1]
    range_ = f"{plain(last.scale, 2)} ± {plain(last.error, 2)}"
    ratio = planned / last.scale
    said = [
        f"The gradient noise scale is {range_} examples after {plural(last.step, 'step')} (it was "
        f"{plain(known[0].scale, 2)} ± {plain(known[0].error, 2)} after {known[0].step}; it rises "
        "as the loss falls).",
        f"At the planned {planned:,}, training takes about {plain(1 + 1 / ratio, 2)} times the "
        f"fewest steps possible and {plain(1 + ratio, 2)} times the fewest examples.",
    ]
    if not found[-1].known:
        said.append(
            f"After {found[-1].step} steps the gradient could not be told from its noise any more: "
            "the scale is larger there, so larger batches waste fewer examples than that."
        )
    elif ratio < 0.5:
        said.append("Larger batches would save steps at little cost in examples.")
    elif ratio > 2:
        said.append("Examples are wasted: a smaller batch learns as much from fewer of them.")
    else:
        said.append("The planned batch is where steps and examples are in balance.")
    return said


def size_proposal(sizes: BatchSizes, found: Sequence[NoiseScale], planned: int) -> str:
    """What both together propose."""
    fast = sizes.knee.batch_size
    scale = found[-1].scale if found and found[-1].known else math.inf
    current = next((s for s in sizes.speeds if s.batch_size == planned), sizes.knee)
    gain = sizes.best / current.examples_per_second
    if planned >= fast and planned <= 2 * scale:
        return f"Keep training.batch_size {planned}: it is fast, and wastes no examples"
    if planned < fast:
        target = fast if fast <= 2 * scale else max(planned, 1 << round(math.log2(scale)))
        if target > planned:
            return (
                f"Proposed: training.batch_size {target} (up to {plain(gain, 2)} times as many "
                "examples a second); sweep the rate again with evertrain lr"
            )
        return (
            f"Keep training.batch_size {planned}: the machine is faster with {fast}, but the "
            "gradient has no use for so many examples a step"
        )
    target = max(fast, 1 << round(math.log2(scale)))
    if target < planned:
        return (
            f"Proposed: training.batch_size {target}: as fast an epoch, and more is learned from "
            "it; sweep the rate again with evertrain lr"
        )
    return f"Keep training.batch_size {planned}"
