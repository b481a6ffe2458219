"""The repeated blocks of a model: what is sharded, recomputed or compiled one by one."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def blocks_of(model: nn.Module) -> list[nn.Module]:
    """Return the elements of the outermost `nn.ModuleList`s, in order; no list: no blocks.

    A transformer's layers are such a list. Elements without parameters are left out.
    """
    found: list[nn.Module] = []

    def search(module: nn.Module) -> None:
        for child in module.children():
            if isinstance(child, nn.ModuleList):
                found.extend(item for item in child if next(item.parameters(), None) is not None)
            else:
                search(child)

    search(model)
    return found


def recompute_in_backward(block: nn.Module) -> None:
    """Keep none of a block's activations: backward computes them again, dropout included."""
    forward = block.forward

    def recomputed(*args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        return checkpoint(forward, *args, use_reentrant=False, **kwargs)

    block.forward = recomputed  # names of parameters stay, which a wrapper would change
