"""What a plan of training says that cannot be meant: arithmetic of the settings, nothing measured.

The plan may be kept to the letter and still not train. Each function returns what is odd, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from training_core.checks.machinery.plain_schedule import planned_rate, warmup_steps
from training_core.settings import TrainingSettings

_FEW = 10  # steps: no schedule has room in fewer
_DOZENS = 50  # steps of whole-batch training that hardly move weights, at usual rates
LATE, _TOO_LATE = 0.5, 0.9  # share of the run at which the peak is reached
# Mean rate over the peak: cosine, linear and one_cycle 0.5, inverse_sqrt 0.35, triangular2 0.23.
_LOW = 0.05
_LOOKED_AT = 1000  # steps


@dataclass(frozen=True)
class Odd:
    """What is odd about a plan.

    Attributes:
        broken: It cannot be meant; else it could.
    """

    message: str
    advice: str
    broken: bool = False
    measured: float | None = None
    limit: float | None = None


def odd_of(training: TrainingSettings, *, steps: int, rows: int) -> Odd | None:
    """Return the worst of what is odd about a plan of so many steps on so many train rows."""
    looked: tuple[Callable[[], Odd | None], ...] = (
        lambda: _few_steps(training, steps=steps, rows=rows),
        lambda: _late_peak(training, steps=steps),
        lambda: _low_rate(training, steps=steps),
        lambda: _rule_without_room(training, steps=steps),
    )
    found = [odd for look in looked if (odd := look()) is not None]
    return min(found, key=lambda odd: not odd.broken, default=None)


def evaluations_of(training: TrainingSettings, *, steps: int) -> tuple[int, int]:
    """Return how many evaluations a run has, and the steps between two of them."""
    every = training.evaluate_every or max(1, steps // 10)
    return -(-steps // every), every


def mean_share(training: TrainingSettings, *, steps: int, after: int = 0) -> float:
    """Return the mean rate from a step on, as a share of `optimiser.lr`, by the plan's words."""
    stride = max(1, (steps - after) // _LOOKED_AT)
    places = range(min(after, steps - 1), steps, stride)
    rates = [
        planned_rate(training.schedule, training.optimiser, steps=steps, step=place)
        for place in places
    ]
    return sum(rates) / len(rates) / training.optimiser.lr


def _few_steps(training: TrainingSettings, *, steps: int, rows: int) -> Odd | None:
    if training.batch_size > rows and steps < _DOZENS:
        return Odd(
            f"training.batch_size {training.batch_size} is more than the {rows} rows of train: an "
            f"epoch is one step, and all {training.epochs:g} epochs are {steps}",
            "lower training.batch_size (32 to 256 is usual for so few rows), or take many more "
            "training.epochs",
            measured=float(training.batch_size),
            limit=float(rows),
        )
    if steps < _FEW:
        return Odd(
            f"the plan has {steps} steps: no schedule has room in so few",
            "raise training.epochs, or lower training.batch_size",
            measured=float(steps),
            limit=float(_FEW),
        )
    return None


def _late_peak(training: TrainingSettings, *, steps: int) -> Odd | None:
    peak = warmup_steps(training.schedule, steps=steps) / steps
    if peak <= LATE:
        return None
    said = f"the rate rises until {peak:.0%} of the run ({training.schedule.shape}, {steps} steps)"
    advice = "lower training.schedule.warmup (one_cycle: rising), a share of all steps"
    if peak > _TOO_LATE:
        said += ", which ends before it has fallen"
    return Odd(said, advice, broken=peak > _TOO_LATE, measured=peak, limit=LATE)


def _low_rate(training: TrainingSettings, *, steps: int) -> Odd | None:
    """A rate that is named and hardly ever used, or falls before it has risen."""
    schedule, lr = training.schedule, training.optimiser.lr
    warmup = warmup_steps(schedule, steps=steps)
    share = mean_share(training, steps=steps, after=warmup)
    milestones = schedule.milestones if schedule.shape == "step" else ()
    early = [each for each in milestones if round(each * steps) < warmup]
    if early:
        return Odd(
            f"milestones {', '.join(f'{each:g}' for each in early)} lie within the warm-up of "
            f"{schedule.warmup:g}: the rate falls where it should rise, and is {share:.2g} of "
            f"training.optimiser.lr ({lr:g}) on the mean after it",
            "give training.schedule.milestones as shares of all steps, later than the warm-up",
            broken=share < _LOW,
            measured=share,
            limit=_LOW,
        )
    if share < _LOW and steps >= _FEW:
        return Odd(
            f"the mean rate of the run after the warm-up is {share:.2g} of training.optimiser.lr "
            f"({lr:g}): the {schedule.shape} schedule leaves it almost at once",
            "look at training.schedule: milestones are shares of all steps, and inverse_sqrt falls "
            "from the end of the warm-up on",
            measured=share,
            limit=_LOW,
        )
    return None


def _rule_without_room(training: TrainingSettings, *, steps: int) -> Odd | None:
    """A rule that counts evaluations or log intervals of which the run has too few."""
    evaluations, every = evaluations_of(training, steps=steps)
    stopping, schedule = training.stopping, training.schedule
    advice = "lower it, or training.evaluate_every, or take it away"
    if schedule.shape == "plateau" and schedule.plateau_patience >= evaluations:
        return Odd(
            f"training.schedule.plateau_patience {schedule.plateau_patience} is not shorter than "
            f"the {evaluations} evaluations of the run: the rate never falls",
            advice,
        )
    if 0 < evaluations <= stopping.patience:
        return Odd(
            f"training.stopping.patience {stopping.patience} is not shorter than the "
            f"{evaluations} evaluations of the run: it never stops one",
            advice,
        )
    warmup = warmup_steps(schedule, steps=steps)
    if 0 < stopping.patience * every < warmup:
        return Odd(
            f"training.stopping.patience {stopping.patience} is {stopping.patience * every} steps, "
            f"and the warm-up takes {warmup}: it may stop the run before the rate has risen",
            "raise training.stopping.patience or training.evaluate_every",
        )
    intervals = steps // training.log_every
    if stopping.plateau and stopping.plateau >= intervals:
        return Odd(
            f"training.stopping.plateau {stopping.plateau} is not shorter than the {intervals} log "
            "intervals of the run: it never stops one",
            "lower it or training.log_every, or take it away",
        )
    return None
