"""What the curves of a trial show, each finding with what to try."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise

from components.common.tune_figures import CurveFinding, TrialFigures

_FEWEST = 5  # evaluations, or points of the training loss, below which nothing is said
_ADVICE = {
    "overfitting": "regularise (dropout, weight decay, augmentation), train for less, or bring "
    "more data",
    "late instability": "a lower peak learning rate, a longer warm-up or a decay to 0, clipping",
    "saturated early": "the rest of the training brought nothing: fewer epochs, or a larger model",
    "still improving": "more epochs: it had not come to its best when it ended",
    "high step variance": "a larger batch, a lower learning rate, clipping",
    "training loss rising": "look for a bug first (evertrain check PROJECT), then a lower learning "
    "rate: a training loss that rises is not a matter of tuning",
}


def diagnosed(trial: TrialFigures, *, noise: float, maximise: bool) -> list[CurveFinding]:
    """Return what a trial's curves show; nothing: all is well, or too little is known.

    Args:
        trial: With its evaluations and its training loss.
        noise: Standard deviation of the metric between seeds.
        maximise: Whether a larger metric is better.
    """
    sign = -1.0 if maximise else 1.0
    evaluated = [sign * value for _, value in trial.evaluations]
    trained = [value for _, value in trial.curve if value is not None]
    found = {**_of_evaluations(evaluated, trained, noise), **_of_training(trained)}
    return [
        CurveFinding(trial=trial.number, finding=name, words=words, advice=_ADVICE[name])
        for name, words in found.items()
    ]


def _of_evaluations(
    values: Sequence[float], trained: Sequence[float], noise: float
) -> dict[str, str]:
    if len(values) < _FEWEST:
        return {}
    best, last, first = min(values), values[-1], values[0]
    gained = first - best
    at = values.index(best)
    found: dict[str, str] = {}
    floor = max(noise, 0.01 * gained)
    falls = _falls(trained)
    if at < 0.75 * (len(values) - 1) and last - best > 2 * floor and falls:
        found["overfitting"] = (
            f"validation was best at evaluation {at + 1} of {len(values)} and is "
            f"{last - best:.4f} worse at the end, while the training loss falls on"
        )
    third = max(2, len(values) // 3)
    late = [b - a for a, b in pairwise(values[-third - 1 :])]
    jump = max(late)
    if jump > max(3 * floor, 0.1 * gained) and "overfitting" not in found:
        found["late instability"] = (
            f"validation got worse by {jump:.4f} between two evaluations of the last third"
        )
    early = min(values[: max(1, round(0.4 * len(values)))])
    done = early - best <= min(floor, 0.03 * gained) and at <= 0.6 * (len(values) - 1)
    if not found and gained > 0 and done:
        found["saturated early"] = (
            f"after two fifths of the training validation was within {early - best:.4f} of its best"
        )
    fifth = max(1, len(values) // 5)
    rest = values[-1 - fifth] - last
    if not found and at == len(values) - 1 and rest > max(floor, 0.03 * gained):
        found["still improving"] = (
            f"the last fifth of the training brought {rest:.4f}, and the best is the last"
        )
    return found


def _of_training(values: Sequence[float]) -> dict[str, str]:
    if len(values) < 3 * _FEWEST:
        return {}
    third = len(values) // 3
    middle, late = values[third : 2 * third], values[-third:]
    found: dict[str, str] = {}
    rise = statistics.fmean(late) - statistics.fmean(middle)
    error = (statistics.variance(late) / third + statistics.variance(middle) / third) ** 0.5
    if rise > 3 * error and rise > 0.005 * abs(statistics.fmean(middle)):
        found["training loss rising"] = (
            f"the training loss of the last third is {rise:.4f} above that of the middle one"
        )
    steps = [b - a for a, b in pairwise(late)]
    scatter = statistics.stdev(steps) / 2**0.5  # without the trend
    if scatter > 0.1 * abs(statistics.fmean(late)):
        share = scatter / abs(statistics.fmean(late))
        found["high step variance"] = (
            f"the logged training loss scatters by {share:.0%} of itself in the last third"
        )
    return found


def _falls(values: Sequence[float]) -> bool:
    half = len(values) // 2
    if half < 2:
        return True  # not known: validation alone speaks
    return statistics.fmean(values[half:]) < statistics.fmean(values[:half])
