"""Whether augmented numbers have the scale of raw ones: evaluation sees the raw ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from training_core.checks.data.arrays import Numbers, channels_of, flat, is_index
from training_core.examples import Examples

_INNER = 0.02  # of the values on each side, that lie outside the usual range
_VARIED = 0.05  # share of rows that must differ from the most frequent value
_LOUD, _RATHER_LOUD = 3.0, 1.0  # deviations outside, in half of the examples
_GONE, _RATHER_GONE = 20.0, 5.0  # times smaller deviations than raw ones
_SILENT = 0.002  # of the deviation: a grey level and less of a photograph


@dataclass(frozen=True)
class Loudness:
    """Of one array, in deviations of the raw one.

    Attributes:
        outside: How far the values of the median example lie outside of the usual raw range.
        scale: The deviation of all augmented values over that of all raw ones.
        change: How far values moved, root mean square of all.
    """

    outside: float
    scale: float
    change: float


def loudness_of(raw: Examples, augmented: Examples) -> dict[str, Loudness]:
    """Compare each array of numbers with what it was; arrays of indices have no scale."""
    found = {}
    for name, array in raw.arrays.items():
        if is_index(array) or not array.numel() or not array.is_floating_point():
            continue
        before = channels_of(flat(array), array.shape)
        after = channels_of(flat(augmented.arrays[name]), array.shape)
        each = [_of(one, other) for one, other in zip(before, after, strict=True) if _varies(one)]
        if each:  # of columns the median: one odd column is not the array
            figures = np.median(np.array(each), axis=0)
            found[name] = Loudness(*(float(figure) for figure in figures))
    return found


def _varies(values: Numbers) -> bool:
    first = np.median(values)
    return bool((values != first).any(1).mean() > _VARIED and values.std() > 0)


def _of(raw: Numbers, augmented: Numbers) -> tuple[float, float, float]:
    deviation = raw.std()
    low, high = np.quantile(raw, [_INNER, 1 - _INNER])
    beyond = np.maximum(np.maximum(low - augmented, augmented - high), 0.0)
    outside = float(np.median(np.sqrt((beyond**2).mean(1))))
    change = float(np.sqrt(((augmented - raw) ** 2).mean()))
    return outside / deviation, augmented.std() / deviation, change / deviation


def too_loud(found: dict[str, Loudness]) -> tuple[str, str, float] | None:
    """Say which array is of another scale than raw ones: how sure, in words, and how far.

    Noise of the data's own deviation lies 0.3 outside, of 3 deviations 1.8, of 10 deviations 8;
    crops, flips, gaps and exchanged values lie inside. Noise that small is rarely more than one
    deviation, so evaluation meets values of the scale that were trained on.
    """
    worst: tuple[str, str, float] | None = None
    for name, one in found.items():
        far = one.outside
        shrunk = 1 / max(one.scale, 1e-12)
        if far > _LOUD or shrunk > _GONE:
            sure = "fail"
        elif far > _RATHER_LOUD or shrunk > _RATHER_GONE:
            sure = "warn"
        else:
            continue
        said = (
            f"values of {name!r} are changed by {one.change:.3g} of their deviations, and half of "
            f"the examples lie {far:.3g} deviations or more outside of what raw ones are"
            if far > _RATHER_LOUD
            else f"the deviation of {name!r} is {one.scale:.2g} of what it is in raw examples"
        )
        if worst is None or (sure == "fail" and worst[0] == "warn"):
            worst = (sure, said, max(far, shrunk))
    return worst


def hardly_heard(found: dict[str, Loudness], *, arrays: int) -> str:
    """Say how little numbers are changed, where numbers are all there is; empty: enough."""
    if not found or len(found) < arrays or max(one.change for one in found.values()) > _SILENT:
        return ""
    name = max(found, key=lambda each: found[each].change)
    return f"augment changes {name!r} by {found[name].change:.2g} of its deviation: next to nothing"
