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


def _held(model: nn.Module, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield tensors, arrays and numbers that modules hold, by name: attributes and buffers.

    Modules in a plain list are among them, though the network does not know of them.
    """
    for place, module in model.named_modules(prefix=path):
        held = {**vars(module), **module._buffers}
        for name, value in held.items():
            if name not in _OF_ALL:
                yield from _within(f"{place}.{name}".lstrip("."), value)


_OF_ALL = frozenset(vars(nn.Module()))


def _within(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from _within(f"{name}[{place}]", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _within(f"{name}[{key!r}]", item)
    elif isinstance(value, nn.Module):
        yield from ((f"{name}.{inner}", item) for inner, item in value.named_parameters())
        yield from _held(value, name)
    elif isinstance(value, Tensor | np.ndarray | float | int):
        yield name, value


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return torch.equal(one, other)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    return bool(one == other)
