"""Tensors of a network that its state_dict does not hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


def outside_state(one: nn.Module, other: nn.Module) -> str:
    """Name what differs between two networks of equal state_dict; empty: nothing was found.

    Args:
        one: A network.
        other: Of the same class; `one`'s state was loaded into it.
    """
    found = dict(_held(other))
    kept = set(one.state_dict())
    for name, value in _held(one):
        if name not in kept and name in found and not _equal(value, found[name]):
            return name
    return ""


def _held(model: nn.Module) -> Iterator[tuple[str, Any]]:
    """Yield tensors, arrays and numbers that modules hold, by name: attributes and buffers."""
    for path, module in model.named_modules():
        held = {**vars(module), **module._buffers}
        for name, value in held.items():
            if name.startswith("_") and name in vars(nn.Module()):
                continue
            items = enumerate(value) if isinstance(value, list | tuple) else [(None, value)]
            for place, item in items:
                if isinstance(item, Tensor | np.ndarray | float | int):
                    part = "" if place is None else f"[{place}]"
                    yield f"{path}.{name}{part}".lstrip("."), item


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return torch.equal(one, other)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    return bool(one == other)
