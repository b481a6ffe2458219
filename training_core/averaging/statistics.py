"""Statistics of normalising layers, collected anew for weights that no batch has gone through."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from training_core.examples import Examples
from training_core.parallel.statistics import is_held

# Statistics of a batch: many enough to be steady, few enough for the memory of wide networks.
_BATCH = 256


def has_statistics(network: nn.Module, *, still: Collection[str] = ()) -> bool:
    """Say whether a layer normalises by statistics that were collected in training (BatchNorm)."""
    return bool(collecting(network, still=still))


@torch.no_grad()
def estimate_statistics(
    network: nn.Module,
    examples: Examples,
    *,
    still: Collection[str] = (),
    autocast: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> None:
    """Collect the statistics of normalising layers anew, on examples of the train split.

    Those of a mean of networks are not the mean of theirs. As `torch.optim.swa_utils.update_bn`:
    the plain mean over batches; but only these layers are in training mode, so that dropout, which
    changes the variance of what it leaves, is off as it will be (Li et al. 2019, arXiv:1801.05134).

    Args:
        network: Left in eval mode.
        examples: Two or more.
        still: Names of layers that keep theirs.
        autocast: What the network is called in.
    """
    assert len(examples) > 1
    layers = collecting(network, still=still)
    momenta = [layer.momentum for layer in layers]
    device = next(network.buffers()).device
    network.eval()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # torch: the plain mean
        layer.train()
    try:
        pieces = max(1, len(examples) // _BATCH)  # equal ones: none is of a single example
        for rows in torch.arange(len(examples)).tensor_split(pieces):
            with autocast():
                network(**examples.take(rows).to(device).arrays)
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
        network.eval()


def collecting(network: nn.Module, *, still: Collection[str] = ()) -> list[_NormBase]:
    """Return the layers that collect statistics in training: not those held, or still by name."""
    named = [(name, m) for name, m in network.named_modules() if isinstance(m, _NormBase)]
    return [
        layer
        for name, layer in named
        if layer.running_mean is not None and name not in still and not is_held(layer)
    ]
