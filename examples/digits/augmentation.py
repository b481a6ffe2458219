"""Turns, zooms and shifts images, each by its own draw from the generator that is given.

Written out, and not torchvision's `RandomAffine`: that one draws from torch's global generator, so
a resumed run could not repeat it, and one draw serves a whole batch.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 (the field's name for it)
from torch import Tensor


def moved(
    images: Tensor, generator: torch.Generator, *, turn: float, zoom: float, shift: float
) -> Tensor:
    """Return each image moved a little; what comes in from outside has its darkest value.

    Args:
        images: float32 [N, channels, height, width].
        generator: The only source of chance.
        turn: Degrees, either way, at most.
        zoom: Share by which an image becomes larger or smaller, at most.
        shift: Pixels, up, down, left and right, at most.
    """
    count, _, height, width = images.shape
    drawn = torch.rand(4, count, generator=generator) * 2 - 1
    angle = drawn[0] * math.radians(turn)
    scale = 1 + drawn[1] * zoom
    cosine, sine = torch.cos(angle) * scale, torch.sin(angle) * scale
    # From places in the result to places in the source; both reach from -1 to 1.
    across, down = drawn[2] * 2 * shift / width, drawn[3] * 2 * shift / height
    places = torch.stack(
        [
            torch.stack([cosine, -sine * height / width, across], dim=1),
            torch.stack([sine * width / height, cosine, down], dim=1),
        ],
        dim=1,
    ).to(images)
    grid = F.affine_grid(places, list(images.shape), align_corners=False)
    # Outside is 0, so the background has to be 0 meanwhile.
    background = images.amin(dim=(2, 3), keepdim=True)
    sampled = F.grid_sample(images - background, grid, align_corners=False)
    return sampled + background
