"""What the trials say of the space: boundaries, isolation, importance, and whether they suffice."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise

from components.common.project import Project, open_project
from components.common.tune_figures import (
    DimensionFigures,
    IsolationFigures,
    IsolationPiece,
    TrialFigures,
    TuneFigures,
)
from components.common.tune_settings import Value
from components.tune.curves import diagnosed
from components.tune.outcomes import best_of
from components.tune.space import Dimension, Space, override, rounded, told
from training_core.errors import ConfigurationError

_OUTER = 0.2  # of a range, at either end: the best points gather there by chance so often
_CHANCE = 0.05  # that as many of the best lie there, were the setting without effect
_PIECES = 5
_CURVES = 3  # of the best trials that are looked at
_FEW = 10  # whole trials below which nothing is said of the space


def analysed(
    figures: TuneFigures, space: Space, project: Project, importances: Mapping[str, float]
) -> TuneFigures:
    """Return the figures with everything that the trials say."""
    settings = project.settings.tune
    ranked = best_of(figures.trials, settings)
    noise = noise_of(figures)
    maximise = settings.direction == "maximise"
    return figures.model_copy(
        update={
            "dimensions": [
                _dimension(each, ranked, importances.get(each.path), project)
                for each in space.dimensions
            ],
            "isolation": [isolation(each, ranked) for each in space.dimensions],
            "enough": enough(ranked, figures.trials, noise, maximise=maximise),
            "curves": [
                found
                for trial in ranked[:_CURVES]
                for found in diagnosed(trial, noise=noise or 0.0, maximise=maximise)
            ],
        }
    )


def noise_of(figures: TuneFigures) -> float | None:
    """Return the standard deviation between seeds, as the repeats showed it."""
    compared = figures.comparison
    if compared is None:
        return None
    both = [statistics.variance(compared.winner), statistics.variance(compared.present)]
    return math.sqrt(statistics.fmean(both))


def boundary(dimension: Dimension, ranked: Sequence[TrialFigures]) -> str:
    """Say at which end of a range the best trials gather: low, high, or nothing.

    The best fifth of the whole trials, four at least, is looked at. As many of them in the outer
    fifth of the range come about by chance in one of twenty searches, were the setting without
    effect (binomial).
    """
    best = ranked[: max(4, len(ranked) // 5)]
    if dimension.choices or len(ranked) < _FEW:
        return ""
    places = [dimension.place(each.values[dimension.path]) for each in best]
    for end, count in (
        ("low", sum(place <= _OUTER for place in places)),
        ("high", sum(place >= 1 - _OUTER for place in places)),
    ):
        if _at_least(count, len(best), _OUTER) < _CHANCE:
            return end
    return ""


def widened(dimension: Dimension, end: str, project: Project) -> tuple[float, str]:
    """Return how far a range should reach at an end, and the words; the same end: it cannot."""
    low, high = dimension.low, dimension.high
    if dimension.log:
        reach = math.sqrt(high / low)
        new = low / reach if end == "low" else high * reach
    else:
        reach = (high - low) / 2
        new = low - reach if end == "low" else high + reach
    new = float(math.floor(new) if dimension.whole else rounded(new))
    old = low if end == "low" else high
    nearer = [end for end in (0.0, 1.0) if new < end < old]  # where many settings' own limits are
    for value in (new, *nearer):
        asked: Value = int(value) if dimension.whole else value
        try:
            opened = open_project(
                project.folder, overrides=[*project.overrides, override(dimension.path, asked)]
            )
            opened.task()
        except ConfigurationError:
            continue
        if value != old:
            sign = "down" if end == "low" else "up"
            return value, f"widen it {sign} to {told(asked)}, and search on"
    return old, f"the setting allows no more than {told(rounded(old))}: leave it there"


def isolation(dimension: Dimension, ranked: Sequence[TrialFigures]) -> IsolationFigures:
    """Return the best trial of each piece of a range: the others are optimised away."""
    if dimension.choices:
        names = [told(choice) for choice in dimension.choices]
        where = [dimension.choices.index(each.values[dimension.path]) for each in ranked]
    else:
        edges = [_at(dimension, i / _PIECES) for i in range(_PIECES + 1)]
        names = [f"{told(rounded(a))} to {told(rounded(b))}" for a, b in pairwise(edges)]
        where = [
            min(_PIECES - 1, int(dimension.place(each.values[dimension.path]) * _PIECES))
            for each in ranked
        ]
    pieces = []
    for index, name in enumerate(names):
        inside = [each for each, at in zip(ranked, where, strict=True) if at == index]
        pieces.append(
            IsolationPiece(
                words=name,
                middle=(index + 0.5) / len(names),
                trials=len(inside),
                best=inside[0].value if inside else None,
                number=inside[0].number if inside else None,
            )
        )
    return IsolationFigures(path=dimension.path, pieces=pieces)


def enough(
    ranked: Sequence[TrialFigures],
    trials: Sequence[TrialFigures],
    noise: float | None,
    *,
    maximise: bool,
) -> str:
    """Say whether more trials are likely to find better ones.

    Half of the evenly spread trials would have found a best of so and so much in the mean (exact,
    over all halves). What the other half brought beyond that is compared with what seeds differ by.
    """
    spread = {each.number for each in trials if each.sampler == "quasi_random"}
    sign = -1.0 if maximise else 1.0
    values = sorted(sign * (each.value or 0.0) for each in ranked if each.number in spread)
    if len(values) < _FEW:
        return (
            f"too few to say: {len(values)} evenly spread trials are whole, of {_FEW} at least; "
            "more trials, a larger tune.quasi_random, or less pruning"
        )
    half = len(values) // 2
    expected = _expected_best(values, half)
    gain = expected - values[0]
    said = (
        f"half of the {len(values)} evenly spread trials would have found "
        f"{sign * expected:.4f} in the mean, all of them found {sign * values[0]:.4f}"
    )
    if noise is None:
        return f"{said}; what seeds differ by was not measured"
    if gain <= noise:
        return f"{said}: less apart than seeds ({noise:.4f}); more points would bring little"
    return f"{said}: more apart than seeds ({noise:.4f}); more points are likely to bring more"


def _dimension(
    each: Dimension, ranked: Sequence[TrialFigures], importance: float | None, project: Project
) -> DimensionFigures:
    end, advice = boundary(each, ranked), ""
    if end:
        words = widened(each, end, project)[1]
        advice = f"the best trials gather at its {end} end: {words}"
    return DimensionFigures(
        path=each.path, role=each.role, present=each.present, range=each.words(), log=each.log,
        low=None if each.choices else each.low, high=None if each.choices else each.high,
        choices=list(each.choices), importance=importance,
        boundary=end, advice=advice,
    )  # fmt: skip


def _at(dimension: Dimension, share: float) -> float:
    if dimension.log:
        return float(dimension.low * (dimension.high / dimension.low) ** share)
    return dimension.low + share * (dimension.high - dimension.low)


def _at_least(count: int, of: int, chance: float) -> float:
    """Probability of at least so many."""
    ways = [math.comb(of, k) * chance**k * (1 - chance) ** (of - k) for k in range(count, of + 1)]
    return float(math.fsum(ways))


def _expected_best(values: Sequence[float], drawn: int) -> float:
    """Mean of the smallest of so many drawn without replacement; values rise."""
    total = math.comb(len(values), drawn)
    return sum(
        value * math.comb(len(values) - index - 1, drawn - 1) / total
        for index, value in enumerate(values)
        if len(values) - index - 1 >= drawn - 1
    )
