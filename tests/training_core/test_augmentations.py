"""The helpers for Task.augment: what they change, and that a generator repeats it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from training_core.augmentations import erase, flip, shift, token_dropout, transformed

IMAGES = torch.arange(200 * 2 * 6 * 5, dtype=torch.float32).view(200, 2, 6, 5) + 1
TOKENS = torch.arange(3).repeat(200, 20)


def jittered(image: Tensor) -> Tensor:
    """Draws as torchvision's transforms do: from torch's own random state."""
    return image + torch.rand(())


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    "change",
    [
        lambda g: flip(IMAGES, g),
        lambda g: shift(IMAGES, g, pixels=2),
        lambda g: erase(IMAGES, g),
        lambda g: token_dropout(TOKENS, g, probability=0.1, replacement=9),
        lambda g: transformed(IMAGES, g, jittered),
    ],
)
def test_the_generator_repeats_what_is_drawn_and_nothing_else_is_touched(
    change: Callable[[torch.Generator], Tensor],
) -> None:
    images, tokens, state = IMAGES.clone(), TOKENS.clone(), torch.get_rng_state()
    found = change(generator())
    assert torch.equal(change(generator()), found)
    assert not torch.equal(change(generator(1)), found)
    assert torch.equal(IMAGES, images)
    assert torch.equal(TOKENS, tokens)
    assert torch.equal(torch.get_rng_state(), state)


def test_half_of_the_images_are_mirrored() -> None:
    found = flip(IMAGES, generator())
    mirrored = (found == IMAGES.flip(-1)).flatten(1).all(1)
    assert bool((mirrored | (found == IMAGES).flatten(1).all(1)).all())
    assert 0.4 < float(mirrored.float().mean()) < 0.6


def test_images_are_moved_by_whole_pixels_and_what_comes_in_is_zero() -> None:
    found = shift(IMAGES, generator(), pixels=1)
    padded = torch.nn.functional.pad(IMAGES, (1, 1, 1, 1))
    places = set()
    for row in range(len(IMAGES)):
        (place,) = [
            (y, x) for y in range(3) for x in range(3)
            if torch.equal(found[row], padded[row, :, y : y + 6, x : x + 5])
        ]  # fmt: skip
        places.add(place)
    assert len(places) == 9


def test_a_square_of_some_images_is_filled() -> None:
    found = erase(IMAGES, generator(), probability=0.5, share=0.5, value=-1.0)
    gone = found == -1
    assert torch.equal(found[~gone], IMAGES[~gone])
    assert torch.equal(gone[:, 0], gone[:, 1])
    assert 0.4 < float(gone.flatten(1).any(1).float().mean()) < 0.6
    assert int(gone[:, 0].flatten(1).sum(1).max()) <= 3 * 2


def test_tokens_are_dropped_but_for_those_that_are_kept() -> None:
    found = token_dropout(TOKENS, generator(), probability=0.25, replacement=9, keep=[0])
    assert torch.equal(found[TOKENS == 0], TOKENS[TOKENS == 0])
    dropped = (found != TOKENS)[TOKENS != 0]
    assert float(dropped.float().mean()) == pytest.approx(0.25, abs=0.02)
    assert set(found[found != TOKENS].tolist()) == {9}


def test_each_image_gets_a_draw_of_its_own() -> None:
    moved = (transformed(IMAGES, generator(), jittered) - IMAGES).flatten(1)
    assert torch.allclose(moved.amin(1), moved.amax(1), atol=1e-2)
    assert float(moved.mean(1).std()) > 0.2
