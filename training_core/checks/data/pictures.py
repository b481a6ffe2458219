"""Rows for people: raw beside what the network gets, images as pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from training_core.checks.contract import Sample
from training_core.checks.data.arrays import column_names
from training_core.checks.subject import Subject
from training_core.examples import Examples

SHOWN = 6
_TEXT = 160  # characters of a value
_COLUMNS = 24  # of a table's row
_PIXELS = 32  # at most, a side


def samples_of(subject: Subject, rows: list[int]) -> list[Sample]:
    """Show rows of the train split, raw and as the network gets them."""
    found = []
    for row in rows[:SHOWN]:
        raw = subject.train.iloc[row]
        found.append(
            Sample(
                raw={str(k): _short(raw[k]) for k in list(raw.index)[:_COLUMNS]},
                network=network_of(subject, subject.examples, row),
                images={
                    name: picture(array[row])
                    for name, array in subject.examples.arrays.items()
                    if is_picture(array)
                },
            )
        )
    return found


def network_of(subject: Subject, examples: Examples, row: int) -> dict[str, str]:
    """Show one example's arrays and target as text."""
    words = {}
    for name, array in examples.arrays.items():
        if is_picture(array):
            low, high = float(array[row].float().min()), float(array[row].float().max())
            words[name] = f"{list(array.shape[1:])}, {low:.3g} to {high:.3g}"
            continue
        names = column_names(subject.preprocessor, name, tuple(array.shape))
        values = _values(array[row])
        pairs = zip(names, values, strict=False) if names else None
        words[name] = _short(", ".join(f"{n} {v}" for n, v in pairs) if pairs else " ".join(values))
    words["target"] = _short(" ".join(_values(examples.target[row])))
    return words


def is_picture(array: Tensor) -> bool:
    """Say whether an array [N, …] holds images: [C, H, W] or [H, W], four pixels a side or more."""
    sides = array.shape[-2:]
    channels = array.shape[1] if array.ndim == 4 else 1
    return array.ndim in (3, 4) and min(sides) >= 4 and channels in (1, 2, 3, 4)


def picture(image: Tensor) -> list[list[str]]:
    """Return an image [C, H, W] or [H, W] as rows of "#rrggbb", scaled to its own range."""
    pixels = image.detach().double()
    pixels = pixels.unsqueeze(0) if pixels.ndim == 2 else pixels
    pixels = torch.nan_to_num(pixels)
    if max(pixels.shape[1:]) > _PIXELS:
        scale = _PIXELS / max(pixels.shape[1:])
        size = [max(1, int(side * scale)) for side in pixels.shape[1:]]
        pixels = interpolate(pixels.unsqueeze(0), size=size, mode="area").squeeze(0)
    colours = pixels[:3] if len(pixels) >= 3 else pixels[:1].expand(3, -1, -1)
    low, high = colours.min(), colours.max()
    spread = float(high - low) or 1.0
    whole = ((colours - low) / spread * 255).round().to(torch.uint8).permute(1, 2, 0).tolist()
    return [[f"#{r:02x}{g:02x}{b:02x}" for r, g, b in line] for line in whole]


def _values(array: Tensor) -> list[str]:
    return [f"{value:.4g}" for value in array.flatten()[:_TEXT].double().tolist()]


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        value = f"{list(value.shape)}: {' '.join(f'{v}' for v in value.ravel()[:24])}"
    text = str(value)
    return text if len(text) <= _TEXT else text[: _TEXT - 1] + "…"
