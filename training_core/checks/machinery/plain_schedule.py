"""The planned learning rate, written out once more: what the trainer's schedule is held against."""

from __future__ import annotations

import math

from training_core.settings import OptimiserSettings, ScheduleSettings


def planned_rate(
    settings: ScheduleSettings, optimiser: OptimiserSettings, *, steps: int, step: int
) -> float:
    """Return the learning rate of a step as the settings describe it.

    Args:
        settings: Shape, warm-up and end.
        optimiser: Its `lr` is the peak.
        steps: Of the whole run; the last one is `steps - 1`.
        step: Counted from 0. A plateau's rate is that before any evaluation.
    """
    peak, floor = optimiser.lr, optimiser.lr * settings.final
    if settings.shape == "one_cycle":
        share = _one_cycle(settings, steps=steps, step=step)
        return (peak / 25 if step < _top(settings, steps) else floor) * (1 - share) + peak * share
    warmup = warmup_steps(settings, steps=steps)
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    gone = min(1.0, (step - warmup) / max(1, steps - 1 - warmup))  # of the way to the end
    match settings.shape:
        case "linear":
            return peak - gone * (peak - floor)
        case "cosine":
            return floor + (peak - floor) * math.cos(math.pi * gone / 2) ** 2
        case "step":
            fallen = sum(step >= round(share * steps) for share in settings.milestones)
            return max(floor, peak * settings.milestone_factor**fallen)
        case "inverse_sqrt":
            return max(floor, peak * math.sqrt((warmup + 1) / (step + 1)))
        case "triangular" | "triangular2":
            begins_high = warmup > 0 or steps < 2 * settings.cycles
            half = max(1.0, (steps - warmup) / (2 * settings.cycles - begins_high))
            halves = (step - warmup) / half + begins_high
            height = 1 - abs(halves % 2 - 1)
            shrunk = 0.5 ** (halves // 2) if settings.shape == "triangular2" else 1.0
            return floor + (peak - floor) * height * shrunk
        case _:
            return peak


def planned_momentum(
    settings: ScheduleSettings, optimiser: OptimiserSettings, *, steps: int, step: int
) -> float | None:
    """Return what one_cycle sets the momentum (Adam's first beta) to; None: it stays."""
    if settings.shape != "one_cycle" or optimiser.name == "adafactor":
        return None
    high = optimiser.momentum if optimiser.name in ("sgd", "muon") else optimiser.betas[0]
    if not high:
        return None
    low = min(high, settings.lowest_momentum)
    return high - (high - low) * _one_cycle(settings, steps=steps, step=step)


def warmup_steps(settings: ScheduleSettings, *, steps: int) -> int:
    """Return how many steps come before the peak is reached for the first time."""
    if settings.shape == "one_cycle":
        return math.ceil(_top(settings, steps))
    return round(settings.warmup * steps)


def _top(settings: ScheduleSettings, steps: int) -> float:
    return max(0.0, settings.rising * steps - 1)


def _one_cycle(settings: ScheduleSettings, *, steps: int, step: int) -> float:
    """How far up: 0 at the start and the end, 1 at the peak."""
    top = _top(settings, steps)
    if step < top:
        return math.sin(math.pi * step / top / 2) ** 2
    return math.cos(math.pi * min(1.0, (step - top) / max(1.0, steps - 1 - top)) / 2) ** 2
