"""How much better a chosen candidate looks on the rows that chose it than it is.

The best of several is partly the luckiest. Drawing the rows again (by cluster, as everywhere),
choosing anew by the same rule on each draw, and looking at how good that choice really is, shows
how much of its lead was luck: Efron and Tibshirani 1993, "An Introduction to the Bootstrap",
chapter 17.
"""

from __future__ import annotations

import math

import numpy as np

from components.common.decision_figures import Optimism
from components.common.decision_settings import Rule
from components.common.resampling import Floats
from components.select_checkpoint.choosing import Scored, as_good, chosen_by


def expected_optimism(scored: Scored, rule: Rule, *, confidence: float) -> Optimism | None:
    """Return the optimism to expect; None where there is but one cluster, which says nothing.

    The optimism of a draw is how good the chosen one really is minus its loss on the drawn rows.
    """
    if scored.clusters < 1.5:
        return None
    reach = scored.reach(confidence=confidence)
    moved = scored.drawn - scored.means  # what drawing did to each candidate
    drawn = _settled(scored, moved, reach) + moved
    chosen = chosen_by(rule, drawn, places=scored.places, reach=reach)
    seen = moved[np.arange(len(chosen)), chosen]
    # What drawing does to one fixed candidate is 0 in the mean: taken off, it spares the noise
    # that the draws have in common.
    fixed = moved[:, scored.means.argmin()]
    return Optimism(
        expected=float((fixed - seen).mean()),
        deviation=float(seen.std(ddof=1)) * math.sqrt(_small(scored)),
        clusters=scored.clusters,
    )


def _settled(scored: Scored, moved: Floats, reach: Floats) -> Floats:
    """Return how good the candidates really are, as far as that can be told; float64 [K].

    Their means on all rows already lie apart by chance, and a draw adds as much chance again: with
    twice the spread it seldom chooses another one, and ten equal candidates showed 0.62 of their
    optimism. So those that cannot be told from the best are drawn together until they lie apart by
    as much as is left when the variance of chance is taken off (then 0.85 of it).
    """
    good = as_good(scored.means[None, :], reach)[0]
    settled = scored.means.copy()
    if good.sum() > 1:
        apart = moved[:, good] - moved[:, good].mean(axis=1, keepdims=True)
        chance = (apart**2).mean(axis=0).sum() / (good.sum() - 1) * _small(scored)
        spread = float(settled[good].var(ddof=1))
        kept = math.sqrt(max(0.0, 1 - chance / spread)) if spread else 0.0
        centre = settled[good].mean()
        settled[good] = centre + kept * (settled[good] - centre)
    return settled


def _small(scored: Scored) -> float:
    """What the variance of draws of few clusters lacks."""
    return scored.clusters / (scored.clusters - 1)
