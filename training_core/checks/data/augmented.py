"""Augmented examples: what form they must have, how they are drawn again, how they are shown."""

from __future__ import annotations

import torch
from torch import Tensor

from training_core.checks.contract import Sample
from training_core.checks.data.mixing import Draw
from training_core.checks.data.pictures import SHOWN, is_picture, network_of, picture
from training_core.checks.subject import Subject
from training_core.examples import Examples
from training_core.task import Task


def same_draw(task: Task) -> Draw:
    """Augment with the same chance each time, and tell how much of it was drawn."""

    def draw(examples: Examples) -> tuple[Examples, Tensor]:
        generator = torch.Generator().manual_seed(0)
        arrays = {name: array.clone() for name, array in examples.arrays.items()}
        arrays, target = task.augment(arrays, examples.target.clone(), generator)
        return Examples(arrays, target, examples.units), generator.get_state()

    return draw


def form_of(raw: Examples, augmented: Examples) -> str:
    """Say what an augmented batch lacks that a batch must have; empty: nothing."""
    if raw.arrays.keys() != augmented.arrays.keys():
        return f"augment returns the arrays {', '.join(augmented.arrays)}"
    pairs = {name: (raw.arrays[name], augmented.arrays[name]) for name in raw.arrays}
    for name, (before, after) in {**pairs, "target": (raw.target, augmented.target)}.items():
        if before.shape != after.shape or before.dtype != after.dtype:
            was = f"{before.dtype} {list(before.shape)}".removeprefix("torch.")
            now = f"{after.dtype} {list(after.shape)}".removeprefix("torch.")
            return f"augment makes {now} of {name!r}, which was {was}"
        finite = bool(torch.isfinite(before).all()) if before.is_floating_point() else False
        if finite and not bool(torch.isfinite(after).all()):
            return f"augment makes numbers of {name!r} that are not finite"
    return ""


def equal(one: Examples, other: Examples) -> bool:
    """Return whether arrays and targets are equal, value by value."""
    same = all(torch.equal(one.arrays[name], other.arrays[name]) for name in one.arrays)
    return same and torch.equal(one.target, other.target)


def pairs_of(subject: Subject, raw: Examples, augmented: Examples) -> list[Sample]:
    """Show raw examples beside augmented ones."""
    found = []
    for row in range(min(SHOWN, len(raw))):
        images = {}
        for name in raw.arrays:
            if is_picture(raw.arrays[name]):
                images[f"{name}, raw"] = picture(raw.arrays[name][row])
                images[f"{name}, augmented"] = picture(augmented.arrays[name][row])
        found.append(
            Sample(
                raw=network_of(subject, raw, row),
                network=network_of(subject, augmented, row),
                images=images,
            )
        )
    return found
