"""How often each row is drawn in an epoch: a pure function of (seed, epoch), as the order is.

An epoch of N positions has row i `counts[i]` times, N in all; then the order mixes them as it mixes
rows that are all drawn once. So a position is found as before, by any number of ranks, in memory
and on disk.

Rows are drawn by stratified sampling: the N points (k + u_k) / N, one in each of N equal strata,
fall into the rows' shares of all weight. A row's count is off from its expected number by less than
two, where independent draws would leave a third of the rows out by chance alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from training_core.errors import ConfigurationError
from training_core.feeds.order import Integers, mixed_seed
from training_core.feeds.sampling_settings import SamplingSettings

Floats = NDArray[np.float64]

_STREAM = 2  # of random numbers, beside those of the order
_DAY = 86_400.0


class Sampling:
    """Which rows an epoch draws, and how often.

    Args:
        count: Rows, N.
        weights: How often each is drawn, in proportion, float [N]; None: all alike.
        difficulty: Of each, float [N]; easy ones come first. NaN is hardest.
        pacing: Share of the rows, the easiest ones, that an epoch draws from; None: all of them.
        by_loss: The difficulty is `losses`, which a training measures; none in the first epoch.

    Attributes:
        losses: Of each row at the end of the epoch before, float [N].

    Raises:
        ConfigurationError: A weight is negative or not finite, or all are 0.
    """

    def __init__(
        self,
        count: int,
        *,
        weights: NDArray[Any] | None = None,
        difficulty: NDArray[Any] | None = None,
        pacing: Callable[[int], float] | None = None,
        by_loss: bool = False,
    ) -> None:
        self.count, self.by_loss, self.pacing = count, by_loss, pacing
        self.losses: NDArray[Any] | None = None
        self._weights = None if weights is None else np.asarray(weights, np.float64)
        self._difficulty = difficulty
        if self._weights is not None:
            wrong = ~(np.isfinite(self._weights) & (self._weights >= 0))
            if wrong.any() or not self._weights.sum() > 0:
                raise ConfigurationError(
                    f"{int(wrong.sum())} of {count} weights of the train split are negative or not "
                    "finite"
                    if wrong.any()
                    else "all weights of the train split are 0",
                    hint="look at the column that training.sampling names",
                )

    def counts(self, *, seed: int, epoch: int) -> Integers | None:
        """Return how often an epoch draws each row, int64 [N], N in all; None: once each."""
        weights = self._weights
        share = 1.0 if self.pacing is None else self.pacing(epoch)
        difficulty = self._difficulty
        if self.by_loss:  # the weights that an epoch began with say nothing before the first
            difficulty = self.losses if epoch else None
        if share < 1 and difficulty is not None:
            easiest = np.argsort(difficulty, kind="stable")[: max(1, math.ceil(share * self.count))]
            drawn = np.zeros(self.count)
            drawn[easiest] = 1.0 if weights is None else weights[easiest]
            if not drawn.any():
                raise ConfigurationError(
                    f"the easiest {share:.0%} of the train split all have a weight of 0",
                    hint="raise training.sampling.start_share",
                )
            weights = drawn
        return None if weights is None else stratified(weights, seed=seed, epoch=epoch)

    def needs_losses(self, epoch: int) -> bool:
        """Say whether an epoch is ordered by the losses at its beginning."""
        return self.by_loss and epoch > 0 and self.pacing is not None and self.pacing(epoch) < 1


def stratified(weights: Floats, *, seed: int, epoch: int) -> Integers:
    """Draw as many rows as there are weights, in proportion to them; return each row's count."""
    count = len(weights)
    until = np.cumsum(weights)
    random = np.random.default_rng(mixed_seed(seed, epoch, _STREAM))
    points = (np.arange(count) + random.random(count)) * (until[-1] / count)
    rows = np.searchsorted(until, points, side="right")
    last = int(np.flatnonzero(weights)[-1])  # a point may be rounded up to the very end
    found: Integers = np.bincount(np.minimum(rows, last), minlength=count)
    return found


def paced(settings: SamplingSettings, *, epochs: float) -> Callable[[int], float]:
    """Return the share of the examples that each epoch draws from.

    Linear and root: Platanios et al. 2019, "Competence-based Curriculum Learning"; step: Bengio et
    al. 2009, "Curriculum Learning".

    Args:
        settings: With start, shape and end.
        epochs: Of the whole training.
    """
    first = settings.start_share

    def share(epoch: int) -> float:
        through = min(1.0, epoch / (settings.full_at * epochs))
        if through == 1.0:
            return 1.0
        if settings.pacing == "step":
            return first
        if settings.pacing == "root":
            return math.sqrt(first**2 + through * (1 - first**2))
        return first + through * (1 - first)

    return share


def balanced(target: NDArray[Any], *, strength: float) -> Floats:
    """Return weights that make classes equally frequent, float64 [N], each class's mean alike.

    Raises:
        ConfigurationError: The target has no classes.
    """
    classes = target.astype(np.int64) if target.ndim == 1 else np.empty(0, np.int64)
    if target.ndim != 1 or not np.array_equal(classes, target):
        raise ConfigurationError(
            "training.sampling.class_balance is set, and the task's target is no single class",
            hint="use training.sampling.weight_column",
        )
    _, place, frequency = np.unique(classes, return_inverse=True, return_counts=True)
    found: Floats = (frequency.astype(np.float64) ** -strength)[place]
    return found


def log_odds_shift(target: NDArray[Any], weights: NDArray[Any]) -> float:
    """Return by how much sampling raises the log-odds of a 1, where weights depend on the class.

    A network trained so says the odds of the sampled data; subtract this from its logit for those
    of the split (King & Zeng 2001, "Logistic Regression in Rare Events Data", section 4.1).

    Args:
        target: 0 or 1, [N].
        weights: As they were drawn by, [N].
    """
    ones = target == 1
    drawn = weights[ones].sum() / weights[~ones].sum()
    return float(np.log(drawn) - np.log(ones.sum() / (~ones).sum()))


def sampling_of(
    settings: SamplingSettings,
    *,
    epochs: float,
    target: NDArray[Any],
    units: NDArray[Any] | None = None,
    columns: Mapping[Literal["weight", "age", "difficulty"], NDArray[Any]] | None = None,
) -> Sampling | None:
    """Return what the settings ask for; None: each row once.

    Args:
        settings: Which weights, which curriculum.
        epochs: Of the whole training.
        target: Of each row of the train split, first dimension N.
        units: Of each row, [N]: its length, where it has one.
        columns: Of each row, [N]: weight, age in seconds, difficulty; where settings need them.

    Raises:
        ConfigurationError: Something that the settings need is not there.
    """
    if not settings.active:
        return None
    columns = columns or {}
    weights = None
    if settings.class_balance:
        weights = balanced(target, strength=settings.class_balance)
    if settings.weight_column:
        weights = _times(weights, _needed(columns, "weight", "weight_column"))
    if settings.half_life_days:
        days = _needed(columns, "age", "half_life_days") / _DAY
        weights = _times(weights, 0.5 ** (days / settings.half_life_days))
    if settings.curriculum == "none":
        return Sampling(len(target), weights=weights)
    difficulty = None
    if settings.curriculum == "length" and not settings.difficulty_column:
        if units is None:
            raise ConfigurationError(
                "training.sampling.curriculum is length, and the task's examples have no units",
                hint="name the column whose length counts: training.sampling.difficulty_column",
            )
        difficulty = units
    elif settings.curriculum != "loss":
        difficulty = _needed(columns, "difficulty", "difficulty_column")
    return Sampling(
        len(target),
        weights=weights,
        difficulty=difficulty,
        pacing=paced(settings, epochs=epochs),
        by_loss=settings.curriculum == "loss",
    )


def _needed(columns: Mapping[Any, NDArray[Any]], name: str, setting: str) -> Floats:
    if name not in columns:
        raise ConfigurationError(
            f"training.sampling.{setting} is set, and the trainer was given examples without raw "
            "rows",
            hint="give it a feed with sampling=sampling_of(..., columns=...)",
        )
    return np.asarray(columns[name], np.float64)


def _times(one: Floats | None, other: Floats) -> Floats:
    return other if one is None else one * other
