"""Which point is tried next, and which trial ends early: Optuna's samplers and pruners."""

from __future__ import annotations

import warnings

import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner, MedianPruner, NopPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, GPSampler, QMCSampler, TPESampler
from optuna.trial import FrozenTrial

from components.common.tune_settings import TuneSettings


class QuasiRandom(QMCSampler):
    """One point of those that are spread evenly.

    Optuna's own takes the space from the first trial, which it draws at random, and counts points
    in the study before they are used: a kill in between would leave a hole in the sequence.

    Args:
        space: All dimensions.
        settings: Sequence and seed.
        place: Of the point in the sequence, from 0.
    """

    def __init__(
        self, space: dict[str, BaseDistribution], settings: TuneSettings, *, place: int
    ) -> None:
        super().__init__(qmc_type=settings.sequence, scramble=True, seed=settings.seed)
        self._space, self._place = space, place

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return all dimensions."""
        return self._space

    def _find_sample_id(
        self, study: optuna.Study, search_space: dict[str, BaseDistribution]
    ) -> int:
        return self._place


def sampler_of(
    settings: TuneSettings, space: dict[str, BaseDistribution], *, spread: int, number: int
) -> tuple[BaseSampler, str]:
    """Return what proposes the next trial, and its name.

    Args:
        settings: Of the search.
        space: All dimensions.
        spread: Points that were spread evenly so far.
        number: Of trials that have their settings: the later samplers' seed follows it, so that a
            search that goes on after a kill proposes what it would have proposed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what Optuna calls experimental
        if spread < round(settings.quasi_random * settings.trials):
            return QuasiRandom(space, settings, place=spread), "quasi_random"
        seed = (settings.seed * 65_537 + number) % 2**32
        if settings.bayesian == "gp":
            return GPSampler(seed=seed, n_startup_trials=1), "bayesian"
        return TPESampler(seed=seed, n_startup_trials=1, multivariate=True), "bayesian"


def pruner_of(settings: TuneSettings) -> BasePruner:
    """Return what ends trials early, by evaluations that are counted from 1."""
    if settings.pruning == "median":
        return MedianPruner(n_startup_trials=settings.unpruned, n_warmup_steps=settings.spared + 1)
    if settings.pruning == "halving":
        return SuccessiveHalvingPruner(min_resource=max(settings.spared, 1), reduction_factor=4)
    return NopPruner()
