"""Whether what augmentation does to an example depends on its label, and tells it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from training_core.augmentation import Augmentation, augmentation_of
from training_core.checks.data.arrays import Numbers, column_name, flat
from training_core.checks.data.harm import Harm
from training_core.checks.data.telling import rates_well
from training_core.checks.subject import Subject
from training_core.examples import Examples

_ROWS = 2_000
_COLUMNS = 512  # of an array, spread over it
_CLASSES = 32
_BINS = 8
_CHANGED = 0.02  # of the examples, that another target augments otherwise
_TELLS = 0.1  # of the target's variance, more than the raw column tells


def tell_tale(subject: Subject) -> Harm | None:
    """Exchange targets under the same chance; None: examples are augmented as before.

    If only positives are cut, what a cut leaves behind says positive; in raw rows nothing does.
    Examples mixed with others of their label are nearer to its mean, which is no trace.
    """
    if subject.task.kind == "sequence":
        return None
    raw = subject.batch(_ROWS, seed=11)
    augment = augmentation_of(subject.task, seed=0)
    moved = torch.randperm(len(raw), generator=torch.Generator().manual_seed(0))
    exchanged = Examples(raw.arrays, raw.target[moved], raw.units)
    own = augment(raw, sample=0, part=0)
    other = augment(exchanged, sample=0, part=0)
    share = float(_differs(own, other).mean())
    if share <= _CHANGED or _mixes(augment, raw, own):
        return None
    targets = _targets(subject, own)
    column, before, after = "", 0.0, 0.0
    for name, array in own.arrays.items():
        before_and_after = [flat(raw.arrays[name]), flat(array)]
        width = before_and_after[0].shape[1]
        for place in np.unique(np.linspace(0, width - 1, min(width, _COLUMNS)).astype(int)):
            tells = [_told(columns[:, place], targets) for columns in before_and_after]
            if tells[1] - tells[0] > after - before:
                column = column_name(subject.preprocessor, name, tuple(array.shape), int(place))
                before, after = tells
    told = (
        f"{column}, which alone explains {before:.0%} of the target, explains {after:.0%} of it "
        "once it is augmented"
    )
    broken = after - before > _TELLS
    return Harm(
        said=f"{share:.0%} of the examples are augmented otherwise where they have another's "
        f"target: {told if broken else 'what this leaves behind may tell the label'}",
        advice="augment examples of all labels alike",
        measured=after - before,
        limit=_TELLS,
        broken=broken,
    )


def _differs(one: Examples, other: Examples) -> npt.NDArray[np.bool_]:
    """Say which examples have other inputs, bool [N]."""
    found = np.zeros(len(one), dtype=bool)
    for name, array in one.arrays.items():
        a, b = flat(array), flat(other.arrays[name])
        found |= ((a != b) & ~(np.isnan(a) & np.isnan(b))).any(axis=1)
    return found


def _mixes(augment: Augmentation, raw: Examples, own: Examples) -> bool:
    """Say whether the inputs of other rows have a part in an example."""
    half = torch.arange(len(raw)) % 2 == 0
    rows = torch.where(half, torch.arange(len(raw)).roll(2), torch.arange(len(raw)))
    arrays = {name: array[rows] for name, array in raw.arrays.items()}
    after = augment(Examples(arrays, raw.target, raw.units), sample=0, part=0)
    return float(_differs(own, after)[~half.numpy()].mean()) > _CHANGED


def _targets(subject: Subject, examples: Examples) -> Numbers:
    target = flat(examples.target)
    if subject.task.kind == "multiclass":
        classes = np.unique(target)[:_CLASSES]
        return np.asarray(target == classes, dtype=np.float64)
    return target[:, :_CLASSES]


def _told(column: Numbers, targets: Numbers) -> float:
    """Return what a column's value, roughly, explains of the target's variance."""
    edges = np.unique(np.quantile(column, np.linspace(0, 1, _BINS + 1)[1:-1]))
    # a frequent value is one of its own: it may be what is left of something cut
    codes = np.searchsorted(edges, column) * 2 + np.isin(column, edges)
    return max(0.0, rates_well(codes.astype(np.float64), targets))
