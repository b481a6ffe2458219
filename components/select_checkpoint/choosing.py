"""Choose among candidates that were scored on the same rows.

    scored = Scored(places=[Place(100), Place(200), Place(200, members=(100, 200))],
                    totals=draws.totals(losses.T), units=..., draws=draws)
    choice = choose(scored, "flattest", confidence=0.95)

Only sums by cluster are kept, of losses and of units: a million rows cost no more than their days.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from components.common.decision_settings import Rule
from components.common.resampling import Draws, Floats, Interval

WORDS: dict[Rule, str] = {
    "best": "the smallest mean loss on the whole validation split; on a tie, the earliest",
    "earliest": "the earliest of those that cannot be told from the best on the validation split",
    "latest": "the latest of those that cannot be told from the best on the validation split",
    "flattest": "of those that cannot be told from the best on the validation split, the one whose "
    "own loss and its neighbours' are smallest together",
}


@dataclass(frozen=True, order=True)
class Place:
    """Where a candidate stands in the training.

    Attributes:
        step: The checkpoint's; of a mean, the last that is in it.
        members: Steps that a mean is made of, the best first. It stands right behind its last one,
            for no earlier can it be made.
    """

    step: int
    members: tuple[int, ...] = ()


@dataclass(frozen=True)
class Scored:
    """K candidates on the same rows, added up by cluster.

    Attributes:
        places: Of the candidates, in order.
        totals: float64 [clusters, K], sums of losses; all finite.
        units: float64 [clusters], of what the mean is taken over.
        draws: Of the clusters.
    """

    places: Sequence[Place]
    totals: Floats
    units: Floats
    draws: Draws

    def __post_init__(self) -> None:
        assert list(self.places) == sorted(self.places)
        assert np.isfinite(self.totals).all()

    @cached_property
    def means(self) -> Floats:
        """float64 [K]."""
        return np.asarray(self.totals.sum(axis=0) / self.units.sum())

    @cached_property
    def drawn(self) -> Floats:
        """Means in each draw, float64 [resamples, K]; a draw without a unit is left out."""
        units = self.draws.drawn(self.units[:, None])
        some = units[:, 0] > 0
        return np.asarray(self.draws.drawn(self.totals)[some] / units[some])

    @cached_property
    def clusters(self) -> float:
        """Clusters of equal size that would weigh as unevenly."""
        return Draws.effective_of(self.units)

    def intervals(self, *, confidence: float) -> list[Interval]:
        """Return the interval of each candidate's loss, by itself."""
        return [
            self.draws.interval(float(mean), values, confidence=confidence, effective=self.clusters)
            for mean, values in zip(self.means, self.drawn.T, strict=True)
        ]

    def reach(self, *, confidence: float) -> Floats:
        """Return how far candidate k may lie above candidate j by chance, float64 [K, K] as [k, j].

        A row's K differences, its candidate's minus each other's, hold at once. So, for the one
        that is truly best, none of its differences from the others is above its reach, but for one
        time in twenty at 0.95: among those that lie within reach of the one that looks best is the
        truly best. However many are compared, one row is all that this needs (multiple comparisons
        with the best: Hsu 1984, Annals of Statistics 12, 1136).
        """
        count = len(self.places)
        effective = [self.clusters] * count
        rows = []
        for k in range(count):
            differences = self.drawn[:, [k]] - self.drawn
            points = self.means[k] - self.means
            found = self.draws.together(
                points, differences, confidence=confidence, effective=effective
            )
            rows.append([high - point for (_, high), point in zip(found, points, strict=True)])
        return np.array(rows)


@dataclass(frozen=True)
class Choice:
    """What a rule chose, and among which.

    Attributes:
        chosen, best: Indices of candidates.
        differences: float64 [K], loss minus the best one's.
        reach: float64 [K], either side of the difference.
        as_good: bool [K], not distinguishable from the best.
    """

    chosen: int
    best: int
    differences: Floats
    reach: Floats
    as_good: npt.NDArray[np.bool_]


def choose(scored: Scored, rule: Rule, *, confidence: float) -> Choice:
    """Choose one candidate."""
    reach = scored.reach(confidence=confidence)
    means = scored.means[None, :]
    best = int(means[0].argmin())
    return Choice(
        chosen=int(chosen_by(rule, means, places=scored.places, reach=reach)[0]),
        best=best,
        differences=scored.means - scored.means[best],
        reach=np.where(np.arange(len(means[0])) == best, 0.0, reach[:, best]),
        as_good=as_good(means, reach)[0],
    )


def as_good(means: Floats, reach: Floats) -> npt.NDArray[np.bool_]:
    """Say which candidates cannot be told from the best, bool [R, K].

    Args:
        means: float64 [R, K], of R choices that are made at once.
        reach: As `Scored.reach` gives it.
    """
    best = means.argmin(axis=1)
    found = means - means[np.arange(len(means)), best][:, None] <= reach[:, best].T
    found[np.arange(len(means)), best] = True
    return np.asarray(found)


def chosen_by(
    rule: Rule, means: Floats, *, places: Sequence[Place], reach: Floats
) -> npt.NDArray[np.intp]:
    """Return whom a rule chooses, int [R]; arguments as in `as_good`.

    `flattest` takes the smallest smoothed loss: half a candidate's own and half the mean of its
    neighbours'. A checkpoint's neighbours are the checkpoint before and the one after, of those
    that were kept, averages not counted; the first and the last have one. An average's neighbours
    are its members, for it lies between them: where they are good and it is not, or the other way
    round, the ground is not flat.
    """
    if rule == "best":
        return np.asarray(means.argmin(axis=1))
    good = as_good(means, reach)
    if rule == "earliest":
        return np.asarray(good.argmax(axis=1))
    if rule == "latest":
        return np.asarray(good.shape[1] - 1 - good[:, ::-1].argmax(axis=1))
    smooth = np.where(good, means @ _smoothing(places).T, np.inf)
    return np.asarray(smooth.argmin(axis=1))


def _smoothing(places: Sequence[Place]) -> Floats:
    """Weights of every candidate's loss in each one's smoothed loss, float64 [K, K]."""
    index = {place.step: i for i, place in enumerate(places) if not place.members}
    steps = list(index)
    weights = np.eye(len(places)) / 2
    for i, place in enumerate(places):
        at = steps.index(place.step) if not place.members else 0
        near = place.members or (*steps[max(at - 1, 0) : at], *steps[at + 1 : at + 2])
        for step in near or (place.step,):
            weights[i, index[step]] += 0.5 / max(len(near), 1)
    return weights
