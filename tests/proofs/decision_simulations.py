"""Simulations whose truth is known: power and coverage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from components.common.decision_figures import NoiseFigure, SmokeFigures
from components.common.decision_settings import DecisionSettings
from components.common.metrics import drawn, exact, families_of, row_scores
from components.common.resampling import Draws
from components.evaluate_model.comparing import Holdout
from components.evaluate_model.judging import judge

Floats = npt.NDArray[np.float64]
GAINS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05)
SETTINGS = DecisionSettings(retraining_noise=0, must_beat=[], resamples=1000, search_slices=False)
WORKED = SmokeFigures(outcome="pass", message="it works")
ROWS, DAYS = 5000, 14
CONFIDENCE = 0.95


@dataclass(frozen=True)
class World:
    """Rows whose chances are known, and a champion that knows them less well.

    Attributes:
        shift: Deviation of what all rows of a day have in common, in logits: a storm.
        shared: Share of the champion's error that all rows of a day have in common.
    """

    shift: float
    shared: float

    def drawn(
        self, days: npt.NDArray[np.int64], random: np.random.Generator
    ) -> tuple[Floats, Floats, Floats]:
        """Return of each row the challenger's logit, the chance, the champion's error."""
        count = int(days.max()) + 1
        logit = random.normal(-1.55, 1.0, len(days))  # as the flights' are: a log loss of 0.47
        true = logit + random.normal(0, self.shift, count)[days]
        own, common = random.normal(0, 1, len(days)), random.normal(0, 1, count)[days]
        error = np.sqrt(1 - self.shared) * own + np.sqrt(self.shared) * common
        return logit, _chance(true), error

    def width(self, gain: float) -> float:
        """Return how large the error is that makes the champion worse by a share of its loss."""
        if gain == 0:
            return 0.0
        days = np.repeat(np.arange(2000), 100)
        logit, chance, error = self.drawn(days, np.random.default_rng(12345))
        goal = _expected(chance, _chance(logit)) / (1 - gain)
        low, high = 0.0, 4.0
        for _ in range(30):
            middle = (low + high) / 2
            worse = _expected(chance, _chance(logit + middle * error))
            low, high = (middle, high) if worse < goal else (low, middle)
        return high


def power_by_rows(trials: int, *, gain: float, noise: float) -> float:
    """Return how often a truly better challenger is promoted, on independent rows."""
    world = World(shift=0.0, shared=0.0)
    width = world.width(gain)
    promoted = 0
    for trial in range(trials):
        truth, both = _met(world, np.arange(ROWS), width, np.random.default_rng(trial))
        promoted += _promoted(truth, both, np.arange(ROWS), noise=noise)
    return promoted / trials


def power_by_days(trials: int, *, gain: float) -> tuple[float, float]:
    """Return the same of days that move together; and that of a t test on the days' means."""
    world = World(shift=0.6, shared=0.5)
    width = world.width(gain)
    ours = best = 0
    for trial in range(trials):
        random = np.random.default_rng(trial)
        days = np.repeat(np.arange(DAYS), random.poisson(900, DAYS))
        truth, both = _met(world, days, width, random)
        ours += _promoted(truth, both, days, noise=0.0)
        losses = {name: row_scores(truth, each)["log_loss"] for name, each in both.items()}
        means = pd.Series(losses["champion"] - losses["challenger"]).groupby(days).mean()
        found = stats.ttest_1samp(means, 0.0, alternative="greater")
        best += bool(found.pvalue < (1 - CONFIDENCE) / 2)
    return ours / trials, best / trials


def _met(
    world: World, days: npt.NDArray[np.int64], width: float, random: np.random.Generator
) -> tuple[Any, dict[str, Floats]]:
    """Labels, and what both models say."""
    logit, chance, error = world.drawn(days, random)
    truth = (random.random(len(days)) < chance).astype(np.float32)
    other = random.permutation(error) if width == 0 else error  # alike, not the same
    small = 0.02 if width == 0 else 0.0
    return truth, {
        "challenger": _chance(logit + small * error),
        "champion": _chance(logit + (width or small) * other),
    }


def _promoted(truth: Any, both: dict[str, Floats], clusters: Any, *, noise: float) -> bool:
    figures = judge(
        Holdout("binary", truth, clusters, pd.DataFrame(), ["no", "yes"]),
        both,
        settings=SETTINGS,
        noise=NoiseFigure(deviation=noise, source="replicas", freedom=9),
        smoke=WORKED,
    )
    return figures.verdict == "promote"


def coverage(draws: int) -> dict[str, float]:
    """Return how often an interval holds the truth, by what it is of."""
    cases: dict[str, Callable[[np.random.Generator], tuple[float, Any, Any]]] = {
        "a mean of 5,000 rows": lambda r: (0.0, r.normal(0, 1, ROWS), np.arange(ROWS)),
        "a skewed mean of 5,000 rows": lambda r: (1.0, r.exponential(1, ROWS), np.arange(ROWS)),
        "a mean of 14 days": lambda r: _days(r, DAYS),
        "a mean of 30 days of uneven size": lambda r: _days(r, 30, uneven=True),
    }
    found = {}
    for name, case in cases.items():
        held = 0
        for draw in range(draws):
            truth, values, clusters = case(np.random.default_rng(draw))
            low, high = _interval(values, clusters, seed=draw)
            held += low <= truth <= high
        found[name] = held / draws
    for metric in ("auc", "log_loss"):
        found[f"a difference of {metric} over 30 days"] = _difference(metric, draws)
    return found


def _days(random: np.random.Generator, count: int, *, uneven: bool = False) -> Any:
    sizes = random.lognormal(5, 0.5, count).astype(int) if uneven else np.full(count, 200)
    days = np.repeat(np.arange(count), sizes)
    values = random.normal(0, 0.3, count)[days] + random.normal(0, 1, len(days))
    return 0.0, values, days


def _interval(values: Floats, clusters: Any, *, seed: int) -> tuple[float, float]:
    draws = Draws.of(clusters, resamples=1000, seed=seed)
    totals = draws.drawn(draws.totals(np.stack([values, np.ones(len(values))], axis=1)))
    found = draws.interval(float(values.mean()), totals[:, 0] / totals[:, 1], confidence=CONFIDENCE)
    return found.low, found.high


def _difference(metric: str, draws: int) -> float:
    """Two models on days that move together; the truth is the mean over a great many days."""
    truth = np.mean([_both(metric, seed, 300)[0] for seed in range(10_000, 10_020)])
    held = 0
    for draw in range(draws):
        _, low, high = _both(metric, draw, 30)
        held += low <= truth <= high
    return held / draws


def _both(metric: str, seed: int, count: int) -> tuple[float, float, float]:
    random = np.random.default_rng(seed)
    days = np.repeat(np.arange(count), 150)
    truth, both = _met(World(shift=0.4, shared=0.5), days, 0.5, random)
    models = [families_of("binary", truth, each) for each in both.values()]
    point = exact(models[0])[metric] - exact(models[1])[metric]
    if count > 100:
        return point, 0.0, 0.0
    draws = Draws.of(days, resamples=1000, seed=seed)
    values = drawn(models[0], draws)[metric] - drawn(models[1], draws)[metric]
    found = draws.interval(point, values, confidence=CONFIDENCE)
    return point, found.low, found.high


def _chance(logit: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-logit)))


def _expected(chance: Floats, said: Floats) -> float:
    said = np.clip(said, 1e-7, 1 - 1e-7)
    return float(-(chance * np.log(said) + (1 - chance) * np.log1p(-said)).mean())
