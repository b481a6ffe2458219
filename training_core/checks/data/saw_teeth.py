"""Numbers that begin again and again: a saw-tooth, as of a type that does not hold them."""

from __future__ import annotations

import math

import numpy as np

from training_core.checks.data.arrays import Numbers

_JUMPS = (256, 65_536, 2**32)  # where whole numbers of 8, 16 and 32 bits begin again
# Of hours, days and weeks in several units, angles, shares of a hundred.
_CYCLES = (
    *(7, 12, 24, 28, 30, 31, 52, 60, 90, 100, 168, 180, 360, 365, 365.25, 366, 1_000, 1_440),
    *(3_600, 10_000, 10_080, 86_400, 604_800, math.pi, math.tau),
)
_NEAR = 3e-3  # a period is known to, from rounded numbers
_COARSE = 0.01  # of the jump: in a type of 8 bits, to round moves a number by 0.4 % of it
_FEW = 3  # values beyond the jump; fewer are marks such as 999 for what is not known
_LEAST = 12  # values that a tooth is seen in


def period_of(raw: Numbers, answer: Numbers) -> float | None:
    """Return the period of a saw-tooth, in units of `raw`.

    Linear in `raw` but for jumps of one size that no value passes, exactly or within the rounding
    of a type of 8 bits. None: monotone, smooth, or too few values.

    Args:
        raw: Rising.
        answer: What becomes of each.
    """
    if len(raw) < _LEAST or not np.isfinite(answer).all():
        return None
    return _exact(raw, answer) or _coarse(raw, answer)


def is_of_a_type(period: float) -> bool:
    """Say whether a period is that of a type of 8, 16 or 32 bits, of the number or ten of it."""
    tens = [10.0**power for power in range(-3, 7)]
    return any(abs(period * ten / jump - 1) < _NEAR for ten in tens for jump in _JUMPS)


def is_cycle(period: float) -> bool:
    """Say whether numbers are meant to begin again: the minute of an hour, an angle."""
    return any(abs(period / cycle - 1) < _NEAR for cycle in _CYCLES)


def is_round(period: float) -> bool:
    """Say whether somebody may have written it down: it has two digits."""
    return abs(period / float(f"{period:.2g}") - 1) < _NEAR


def _exact(raw: Numbers, answer: Numbers) -> float | None:
    """However many jumps: the slope is that between the closest values."""
    run, rise = np.diff(raw), np.diff(answer)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = rise / run
    # The slope between neighbours: at least a third of all steps have it.
    shortest = slopes[np.argsort(run, kind="stable")[: max(6, len(run) // 3)]]
    slope = float(np.median(shortest))
    if slope == 0:
        return None
    left = np.sort(answer - slope * raw)
    # A slope between neighbours is known to float32 alone, and reaches over the whole range.
    rounding = 5e-7 * float(np.abs(answer).max()) * float(np.ptp(raw) / run.min())
    gaps = np.diff(left)
    jumps = gaps[gaps > 4 * rounding]
    falls = bool((np.sign(rise) == -np.sign(slope)).any())
    if not len(jumps) or not falls or len(jumps) > 0.75 * len(gaps):
        return None
    # Every value lies on one of few parallel lines, a jump apart, and none goes beyond the jump.
    for part in (4, 3, 2, 1):
        jump = float(jumps.min()) / part
        whole = np.abs(jumps - jump * np.round(jumps / jump)) <= 8 * rounding
        if whole.all() and jump > 20 * rounding and jump >= 0.99 * np.ptp(answer):
            tooth = np.round((answer - slope * raw) / jump)
            return abs(jump / slope) if _come_back(tooth, answer) else None
    return None


def _coarse(raw: Numbers, answer: Numbers) -> float | None:
    """Few jumps, of rounded numbers: the slope is that of most of the steps that are not tiny."""
    raw, answer = _apart(raw, answer)
    if len(raw) < _LEAST:
        return None
    run, rise = np.diff(raw), np.diff(answer)
    slope = float(np.median(rise / run))
    against = np.sign(rise) == -np.sign(slope)
    if slope == 0 or not against.any():
        return None
    jump = float(np.median((slope * run - rise)[against]))
    for _ in range(3):  # the slope is better known once the jumps are taken out
        away = slope * raw - answer
        tooth = np.round((away - np.median(away)) / jump)
        known = np.stack([raw, tooth, np.ones_like(raw)], axis=1)
        (slope, drop, centre), *_ = np.linalg.lstsq(known, answer, rcond=None)
        jump = -float(drop)
        if slope == 0 or jump == 0 or np.sign(jump) != np.sign(slope):
            return None
    off = np.abs(slope * raw - jump * tooth + centre - answer).max()
    fits = off <= _COARSE * abs(jump) and np.ptp(answer) <= (1 + _COARSE) * abs(jump)
    return abs(jump / float(slope)) if fits and _come_back(tooth, answer) else None


def _apart(raw: Numbers, answer: Numbers) -> tuple[Numbers, Numbers]:
    """Leave out values nearer to the one before than a 200th of the range."""
    least, kept = float(np.ptp(raw)) / 200, [0]
    for place, value in enumerate(raw):
        if value - raw[kept[-1]] >= least > 0:
            kept.append(place)
    return raw[kept], answer[kept]


def _come_back(tooth: Numbers, answer: Numbers) -> bool:
    """Say whether values beyond a jump rise again, and are no one mark for what is not known."""
    teeth, counts = np.unique(tooth, return_counts=True)
    beyond = answer[tooth != teeth[counts.argmax()]]
    return len(np.unique(beyond)) >= _FEW
