"""Mixup and CutMix: examples that are part of one and part of another, and so is their loss.

- Mixup: Zhang et al. 2018, arXiv:1710.09412.
- CutMix: Yun et al. 2019, arXiv:1905.04899; for tables, cell by cell: Somepalli et al. 2021
  (SAINT), arXiv:2106.01342.

Shares are drawn for each example, as timm's `elem` mode does. The label is never mixed: the loss is
the mix of two losses, which for cross-entropy is the loss of the mixed label, and for squares has
the gradient of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from training_core.errors import ConfigurationError
from training_core.evaluation import Objective
from training_core.examples import Examples
from training_core.regularisation.settings import RegularisationSettings

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class Mixed(Examples):
    """Examples of which each is part of another one.

    Attributes:
        other: Targets of those others.
        share: float32 [N], how much of each example is its own.
    """

    other: Tensor
    share: Tensor

    def _each(self, change: Callable[[Tensor], Tensor]) -> Mixed:
        same = super()._each(change)
        return Mixed(
            same.arrays,
            same.target,
            same.units,
            other=change(self.other),
            share=change(self.share),
        )


def mixed_loss(
    loss: Loss, task: Objective, settings: RegularisationSettings
) -> Callable[[Tensor, Examples], Tensor]:
    """Return the loss of mixed examples.

    Raises:
        ConfigurationError: The task's examples cannot be mixed.
    """
    kind = getattr(task, "kind", None)
    if kind == "sequence" or (kind == "regression" and settings.cutmix):
        name = "mixup" if settings.mixup and not settings.cutmix else "cutmix"
        raise ConfigurationError(
            f"training.regularisation.{name} is set, and this is a {kind} task",
            hint="drop tokens in Task.augment (training_core.augmentations.token_dropout)"
            if kind == "sequence"
            else "use mixup: what lies between two numbers is a number",
        )

    def of_both(outputs: Tensor, examples: Examples) -> Tensor:
        own = loss(outputs, examples.target)
        if not isinstance(examples, Mixed):
            return own
        return torch.lerp(loss(outputs, examples.other), own, examples.share.to(own.dtype))

    return of_both


def mixed(examples: Examples, random: np.random.Generator, by: RegularisationSettings) -> Mixed:
    """Mix each example with another one of the same microbatch.

    Args:
        examples: N of them, left as they are.
        random: The only source of chance.
        by: Which way, and how much.

    Raises:
        ConfigurationError: There are arrays that cannot be mixed this way.
    """
    count = len(examples)
    cuts = bool(by.cutmix) and (not by.mixup or random.random() < 0.5)
    alpha = by.cutmix if cuts else by.mixup
    shares = random.beta(alpha, alpha, count)
    shares[random.random(count) >= by.mix_probability] = 1.0
    partners = torch.from_numpy(random.permutation(count))
    if cuts:
        arrays, shares = _cut(examples.arrays, partners, shares, random)
    else:
        arrays = _blended(examples.arrays, partners, shares)
    return Mixed(
        arrays,
        examples.target,
        examples.units,
        other=examples.target[partners],
        share=torch.from_numpy(shares.astype(np.float32)),
    )


def _blended(
    arrays: dict[str, Tensor], partners: Tensor, shares: NDArray[np.float64]
) -> dict[str, Tensor]:
    weights = torch.from_numpy(shares)
    for name, array in arrays.items():
        if not array.is_floating_point():
            raise ConfigurationError(
                f"training.regularisation.mixup is set, and the array {name!r} is "
                f"{str(array.dtype).removeprefix('torch.')}: there is nothing between two of its "
                "values",
                hint="use training.regularisation.cutmix, which takes each cell from one of two "
                "rows",
            )
    return {
        name: torch.lerp(array[partners], array, _beside(weights, array).to(array.dtype))
        for name, array in arrays.items()
    }


def _cut(
    arrays: dict[str, Tensor],
    partners: Tensor,
    shares: NDArray[np.float64],
    random: np.random.Generator,
) -> tuple[dict[str, Tensor], NDArray[np.float64]]:
    """Return arrays, and the shares that are left once boxes and cells are whole ones."""
    images = [array.ndim > 2 for array in arrays.values()]
    if any(images) and (not all(images) or len({a.shape[-2:] for a in arrays.values()}) > 1):
        raise ConfigurationError(
            "training.regularisation.cutmix is set, and the network gets arrays of different "
            f"kinds: {', '.join(f'{n} {list(a.shape[1:])}' for n, a in arrays.items())}",
            hint="use mixup, or mix in Task.augment",
        )
    if any(images):
        height, width = next(iter(arrays.values())).shape[-2:]
        inside = _boxes(shares, height, width, random)
        shares = 1 - inside.mean(axis=(1, 2))
        box = torch.from_numpy(inside)
        return {
            name: torch.where(
                box.view(len(box), *[1] * (array.ndim - 3), height, width), array[partners], array
            )
            for name, array in arrays.items()
        }, shares
    found, cells = {}, [array[0].numel() for array in arrays.values()]
    taken = random.random((len(shares), sum(cells))) >= shares[:, None]
    for (name, array), part in zip(
        arrays.items(), np.split(taken, np.cumsum(cells)[:-1], axis=1), strict=True
    ):
        found[name] = torch.where(torch.from_numpy(part).view(array.shape), array[partners], array)
    return found, 1 - taken.mean(axis=1)


def _boxes(
    shares: NDArray[np.float64], height: int, width: int, random: np.random.Generator
) -> NDArray[np.bool_]:
    """Return which pixels lie in a box of about 1 - share of the image, bool [N, H, W]."""
    sides = np.sqrt(1 - shares)
    lines = []
    for size in (height, width):
        centre = random.integers(0, size, len(shares))
        half = (size * sides / 2)[:, None]
        place = np.arange(size)[None] + 0.5
        middle = centre[:, None] + 0.5
        lines.append((place >= middle - half) & (place < middle + half))
    inside: NDArray[np.bool_] = lines[0][:, :, None] & lines[1][:, None, :]
    return inside


def _beside(weights: Tensor, array: Tensor) -> Tensor:
    return weights.view(-1, *[1] * (array.ndim - 1))
