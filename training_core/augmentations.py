"""Helpers for `Task.augment`: images, texts, and transforms of a library, on one generator.

    def augment(self, arrays, target, generator):
        arrays["image"] = shift(flip(arrays["image"], generator), generator, pixels=2)
        return arrays, target

All take a batch, first dimension N, and return a new one; what they draw comes from the generator
alone, so that a run that goes on draws the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def flip(images: Tensor, generator: torch.Generator, *, probability: float = 0.5) -> Tensor:
    """Mirror some images [N, …, H, W] left to right."""
    chosen = _chosen(len(images), generator, probability)
    return torch.where(_beside(chosen, images), images.flip(-1), images)


def shift(images: Tensor, generator: torch.Generator, *, pixels: int) -> Tensor:
    """Move each image [N, …, H, W] by up to so many pixels; what comes in is zero.

    As padding and a random crop: He et al. 2016, arXiv:1512.03385, section 4.2.
    """
    height, width = images.shape[-2:]
    padded = torch.nn.functional.pad(images, (pixels,) * 4)
    moves = torch.randint(0, 2 * pixels + 1, (2, len(images)), generator=generator)
    rows = (moves[0][:, None] + torch.arange(height))[:, :, None]
    columns = (moves[1][:, None] + torch.arange(width))[:, None, :]
    each = torch.arange(len(images))[:, None, None]
    moved = padded.movedim((-2, -1), (1, 2))[each, rows, columns]
    return moved.movedim((1, 2), (-2, -1)).contiguous()


def erase(
    images: Tensor,
    generator: torch.Generator,
    *,
    probability: float = 0.5,
    share: float = 0.25,
    value: float = 0.0,
) -> Tensor:
    """Fill a square of some images [N, …, H, W] (Cutout: DeVries & Taylor 2017, arXiv:1708.04552).

    Args:
        images: As of all.
        generator: As of all.
        probability: Of each image.
        share: The square's side, as a share of the image's.
        value: What it is filled with.
    """
    inside = _beside(_chosen(len(images), generator, probability), images)
    for dimension in (-2, -1):
        size = images.shape[dimension]
        side = max(1, round(size * share))
        first = torch.randint(1 - side, size, (len(images), 1), generator=generator)
        place = torch.arange(size)[None]
        line = (place >= first) & (place < first + side)
        shape = [len(images)] + [1] * (images.ndim - 1)
        shape[dimension] = size
        inside = inside & line.view(shape)
    return images.masked_fill(inside, value)


def token_dropout(
    tokens: Tensor,
    generator: torch.Generator,
    *,
    probability: float,
    replacement: int,
    keep: Sequence[int] = (),
) -> Tensor:
    """Replace some tokens [N, T] of the input by one that says nothing (word dropout).

    Iyyer et al. 2015, "Deep Unordered Composition Rivals Syntactic Methods".

    Args:
        tokens: As of all.
        generator: As of all.
        probability: Of each token.
        replacement: Such as the number of an unknown word.
        keep: Tokens that stay: padding, beginning and end.
    """
    dropped = torch.rand(tokens.shape, generator=generator) < probability
    for token in keep:
        dropped &= tokens != token
    return tokens.masked_fill(dropped, replacement)


def transformed(
    images: Tensor, generator: torch.Generator, transform: Callable[[Tensor], Tensor]
) -> Tensor:
    """Apply a library's random transform to each image, on this generator's draws.

    Those of torchvision (`transforms.v2`), kornia and others draw from torch's own random state,
    which is put back afterwards.

    Args:
        images: [N, …].
        generator: Gives each image a seed.
        transform: Takes and gives one image of a fixed shape.
    """
    seeds = torch.randint(0, 2**62, (len(images),), generator=generator).tolist()
    with torch.random.fork_rng(devices=()):
        found = []
        for image, seed in zip(images, seeds, strict=True):
            torch.manual_seed(seed)
            found.append(transform(image))
    return torch.stack(found)


def _chosen(count: int, generator: torch.Generator, probability: float) -> Tensor:
    return torch.rand(count, generator=generator) < probability


def _beside(values: Tensor, images: Tensor) -> Tensor:
    return values.view(-1, *[1] * (images.ndim - 1))
