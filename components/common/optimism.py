"""What the holdout is expected to show of a choice that was made on the validation split."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from components.common.decision_figures import Optimism
from components.common.resampling import Draws


def measured_optimism(
    optimism: Optimism,
    *,
    validation_loss: float,
    holdout_losses: npt.NDArray[np.floating],
    holdout_units: npt.NDArray[np.floating] | None = None,
    draws: Draws,
    confidence: float,
) -> Optimism:
    """Return the optimism with what was measured, and where that was to lie.

    What lies outside has another cause than luck: rows that changed in between, as they do with
    time, or a validation split that training has seen.

    Args:
        optimism: As expected when the choice was made.
        validation_loss: Of the chosen candidate, the mean over units.
        holdout_losses: Of the same one, float [N]; each summed over its example's units.
        holdout_units: float [N]; None: one each.
        draws: Of the holdout's clusters.
        confidence: For example 0.95.
    """
    units = np.ones(len(holdout_losses)) if holdout_units is None else holdout_units
    totals = draws.totals(np.stack([holdout_losses, units], axis=1).astype(np.float64))
    loss, weight = totals.sum(axis=0)
    clusters = Draws.effective_of(totals[:, 1])
    measured = float(loss / weight) - validation_loss
    if clusters < 1.5:
        return optimism.model_copy(update={"measured": measured, "low": None, "high": None})
    drawn = draws.drawn(totals)
    drawn = drawn[drawn[:, 1] > 0]
    error = float((drawn[:, 0] / drawn[:, 1]).std(ddof=1)) * math.sqrt(clusters / (clusters - 1))
    low, high = predicted_range(optimism, error, confidence, holdout_clusters=clusters)
    return optimism.model_copy(update={"measured": measured, "low": low, "high": high})


def predicted_range(
    optimism: Optimism,
    holdout_error: float,
    confidence: float,
    *,
    holdout_clusters: float = math.inf,
) -> tuple[float, float]:
    """Return where holdout loss minus validation loss of the chosen candidate is to lie.

    Both splits are samples: their errors add up. With few clusters they are themselves uncertain,
    so it is a t interval, its degrees of freedom after Welch and Satterthwaite.

    Args:
        optimism: Expected value and deviation.
        holdout_error: Standard error of the loss on the holdout.
        confidence: For example 0.95.
        holdout_clusters: What that error was estimated from.
    """
    from scipy.special import stdtrit  # scipy.stats takes a second to import, this 0.3

    validation_clusters = math.inf if optimism.clusters is None else optimism.clusters
    squares = [optimism.deviation**2, holdout_error**2]
    spread = math.sqrt(sum(squares))
    doubt = sum(
        square**2 / (clusters - 1)
        for square, clusters in zip(squares, (validation_clusters, holdout_clusters), strict=True)
    )
    freedom = min(sum(squares) ** 2 / doubt, 1e9) if doubt else 1e9
    reach = float(stdtrit(freedom, (1 + confidence) / 2)) * spread
    return optimism.expected - reach, optimism.expected + reach
