"""Whether tags stand at the tokens that tell them, where the network cannot look ahead."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch

from training_core.checks.data.problem import Problem
from training_core.checks.graph.calling import change, outputs_of
from training_core.checks.subject import Subject
from training_core.task import PADDING

_ROWS = 2_000
_LEAST = 200  # positions on either side of the division into two halves
_AHEAD = (1, 2)  # positions
_BETTER = 0.1  # share of tags
_COPIED = 0.99  # of the targets are the tokens ahead, in whatever numbers: a language model

Codes = npt.NDArray[np.int64]


def of_alignment(subject: Subject) -> Iterator[Problem]:
    """Tags that the token one or two places ahead tells far better than the token at their own.

    A mark put before the tokens and not before the tags shifts all of them. A network that reads
    both ways learns that as well; one that reads from left to right answers before it has read.
    """
    if subject.task.kind != "sequence":
        return
    examples = subject.batch(_ROWS, seed=15)
    target = examples.target.numpy()
    for name, array in examples.arrays.items():
        if array.is_floating_point() or array.shape != examples.target.shape:
            continue
        tokens = array.numpy()
        own = _told(tokens, target, ahead=0)
        told = {ahead: _told(tokens, target, ahead=ahead) for ahead in _AHEAD}
        best = max(told, key=lambda ahead: told[ahead])
        if told[best] - own <= _BETTER or _is_copied(tokens, target, ahead=best):
            continue
        if _looks_ahead(subject, name):
            continue
        yield Problem(
            fails=True,
            message=f"{name!r} tells {told[best]:.0%} of the targets that stand {best} before it, "
            f"and {own:.0%} of those at its own place, and the network does not look ahead",
            advice="shift tags as tokens are: put a mark before both, or before neither",
            measured=told[best] - own, limit=_BETTER,
        )  # fmt: skip


def _told(tokens: Codes, target: Codes, *, ahead: int) -> float:
    """Return the share of targets that are their token's usual one, learned on other rows."""
    length = tokens.shape[1] - ahead
    if length < 1:
        return 0.0
    before, of = tokens[:, ahead:], target[:, :length]
    half = len(tokens) // 2
    pairs = [
        (before[rows].ravel()[counts], of[rows].ravel()[counts])
        for rows in (slice(0, half), slice(half, None))
        for counts in [of[rows].ravel() != PADDING]
    ]
    (known, tags), (judged, truth) = pairs
    if min(len(tags), len(truth)) < _LEAST:
        return 0.0
    names, codes = np.unique(known, return_inverse=True)
    kinds, labels = np.unique(tags, return_inverse=True)
    counts = np.zeros((len(names), len(kinds)))
    np.add.at(counts, (codes, labels), 1)
    usual = kinds[counts.argmax(axis=1)]
    places = np.searchsorted(names, judged).clip(max=len(names) - 1)
    said = np.where(names[places] == judged, usual[places], kinds[counts.sum(axis=0).argmax()])
    return float((said == truth).mean())


def _is_copied(tokens: Codes, target: Codes, *, ahead: int) -> bool:
    """Say whether each token ahead has a target of its own: so it is the token."""
    of = target[:, : target.shape[1] - ahead]
    counts = of != PADDING
    pairs = np.stack([tokens[:, ahead:][counts], of[counts]], axis=1)
    kinds, shares = np.unique(pairs, axis=0, return_counts=True)
    first = {int(target): int(token) for token, target in kinds[np.argsort(shares)]}
    usual = np.array([first[int(target)] for target in pairs[:, 1]])
    return bool((usual == pairs[:, 0]).mean() >= _COPIED)


@torch.no_grad()
def _looks_ahead(subject: Subject, name: str) -> bool:
    """Say whether outputs change with the tokens that stand behind them."""
    model = subject.build().eval()
    rows = subject.batch(32, seed=15)
    before = outputs_of(model, rows)
    changed = rows.clone()
    middle = rows.arrays[name].shape[1] // 2
    order = torch.arange(len(rows)).roll(1)
    changed.arrays[name][:, middle:] = rows.arrays[name][order, middle:]
    moved = change(before, outputs_of(model, changed))[:, :middle]
    return bool((moved > 1e-6).any())
