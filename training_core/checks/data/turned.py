"""Labels that regularly go with the inputs of other labels: what turning inputs alone leads to."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from training_core.task import Kind

_ERRORS = 4.0  # standard errors beyond which a share is no chance
_LEAST = 6  # examples of a label, before it is said where they went
_PAIRS = 20
_MOST = 0.6  # share of a label's examples that go to one other label


def turned(kind: Kind, own: Tensor, found: Tensor, everyone: Tensor) -> str:
    """Say which labels change places; empty: none do.

    A ring of labels is asked for, each of which goes to the next: inputs that are only hard to
    recognise, as with noise, may all look like one label, but never turn in a ring.

    Args:
        own: Targets that augmented examples have.
        found: Those that their inputs look like.
        everyone: Targets of all raw examples.
    """
    if kind == "regression":
        if len(own) < _PAIRS or own.ndim > 1:
            return ""
        both = torch.corrcoef(torch.stack([own.double(), found.double()]))[0, 1]
        if float(both) < -_ERRORS / math.sqrt(len(own)):
            return f"lie where targets are turned round (correlation {float(both):.2f})"
        return ""
    if own.ndim == 1:
        return _ring(own, found, everyone)
    labels = (_ring(own[:, i], found[:, i], everyone[:, i]) for i in range(own.shape[1]))
    return next((said for said in labels if said), "") or _columns(own, found)


def _ring(own: Tensor, found: Tensor, everyone: Tensor) -> str:
    """Say which classes change places among `own` and `found`."""
    own, found, everyone = own.round(), found.round(), everyone.round()
    goes: dict[float, float] = {}
    for label in sorted(set(own.tolist())):
        there = found[own == label]
        if len(there) < _LEAST:
            continue
        most = float(there.mode().values)
        share = float((there == most).double().mean())
        usual = float((everyone == most).double().mean())
        error = math.sqrt(max(usual * (1 - usual), 1e-12) / len(there))
        if most != label and share >= _MOST and share > usual + _ERRORS / 2 * error:
            goes[label] = most
    for first in goes:
        ring = [first]
        while (following := goes.get(ring[-1])) is not None and following not in ring:
            ring.append(following)
        if following == first:
            return f"look like another label: {' and '.join(f'{i:g}' for i in ring)} change places"
    return ""


def _columns(own: Tensor, found: Tensor) -> str:
    """Say which two of several labels change places: the left one and the right one."""
    if len(own) < _PAIRS:
        return ""
    columns = own.shape[1]
    both = torch.corrcoef(torch.cat([own.double(), found.double()], 1).T)[:columns, columns:]
    known = torch.nan_to_num(both)
    limit = _ERRORS / math.sqrt(len(own))
    for i in range(columns):
        for j in range(i):
            here = max(float(known[i, i]), float(known[j, j]))
            there = min(float(known[i, j]), float(known[j, i]))
            if there > max(here + limit, _MOST):
                return f"have the inputs of another label: labels {j} and {i} change places"
    return ""
