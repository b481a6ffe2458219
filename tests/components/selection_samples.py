"""What the tests of select_checkpoint share: losses of candidates, scored."""

from __future__ import annotations

from typing import Any

import numpy as np

from components.common.resampling import Draws
from components.select_checkpoint.choosing import Place, Scored


def scored(
    losses: Any,
    *,
    places: list[Place] | None = None,
    units: Any = None,
    clusters: Any = None,
    resamples: int = 500,
    seed: int = 0,
) -> Scored:
    """Candidates by their losses [K, N]; places are steps 10, 20, … unless given."""
    values = np.asarray(losses, dtype=np.float64)
    count = values.shape[1]
    weights = np.ones(count) if units is None else np.asarray(units, dtype=np.float64)
    draws = Draws.of(
        np.arange(count) if clusters is None else clusters, resamples=resamples, seed=seed
    )
    return Scored(
        places=places or [Place(10 * (k + 1)) for k in range(len(values))],
        totals=draws.totals(values.T),
        units=draws.totals(weights[:, None])[:, 0],
        draws=draws,
    )
