"""Whether columns still say of the label what they said: told apart from a shift of the label.

The label's mean in each bin is taken as a distance from the mean of all rows, in log odds to first
order: z = (p - r) / (r (1 - r)). A label that is more frequent everywhere moves no z; labels that
are shuffled among the rows make every z 0; labels that are flipped change every sign.
"""

from __future__ import annotations

import numpy as np

from components.validate_data.profile import Floats

_PRIOR = 20.0  # labelled rows at the mean rate that each bin is given: few rows say little


def effects(labelled: Floats) -> tuple[Floats, Floats, Floats]:
    """Each bin's z, its share of the labelled rows, and r (1 - r) of all.

    Args:
        labelled: float64 [..., bins, 2]: labelled rows, and those of them labelled 1.
    """
    rows, yes = labelled[..., 0], labelled[..., 1]
    total = np.maximum(rows.sum(axis=-1, keepdims=True), 1)
    rate = yes.sum(axis=-1, keepdims=True) / total
    spread = np.maximum(rate * (1 - rate), 1e-9)
    mean = (yes + _PRIOR * rate) / (rows + _PRIOR)
    return (mean - rate) / spread, rows / total, spread[..., 0]


def compared(now: Floats, before: Floats) -> Floats:
    """Effects now beside those before [..., 3].

    The first two, summed over columns, are the numerator and the denominator of the common slope
    of effects now on those before (`slope`). The third is the share of the label's variance by
    which this column's effects have changed.
    """
    z, weight, spread = effects(now)
    z_before, _, _ = effects(before)
    z_before = z_before - (weight * z_before).sum(axis=-1, keepdims=True)
    difference = z - z_before
    difference -= (weight * difference).sum(axis=-1, keepdims=True)
    parts = [z * z_before, z_before**2, difference**2]
    return np.stack([(weight * part).sum(axis=-1) * spread for part in parts], axis=-1)


def slope(sums: Floats) -> Floats:
    """The common slope, from sums over columns [..., 3]: 1 as before, 0 nothing left, -1 opposite.

    Where there was no effect to lose it is 1.
    """
    common, alone = sums[..., 0], sums[..., 1]
    found: Floats = np.where(alone > 1e-6, common / np.maximum(alone, 1e-6), 1.0)
    return found
