"""The mean of several checkpoints' weights: one more candidate.

Checkpoints of one training lie around the same minimum, and their mean is often nearer to it than
each of them: Izmailov et al. 2018, arXiv:1803.05407.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from training_core.examples import Examples

State = dict[str, Tensor]

# Statistics of a batch: many enough to be steady, few enough for the memory of wide networks.
_BATCH = 256


def averaged(states: Iterable[State]) -> State:
    """Return the mean of weights, added up in float64 and given the type of the first's.

    What is no number with a fraction (counters, masks), and what has another shape in one of them,
    is taken from the first, which should be the best.

    Args:
        states: One or more, taken one at a time.
    """
    count, first, sums = 0, State(), State()
    for state in states:
        count += 1
        if count == 1:
            first = state
            sums = {n: _wide(t) for n, t in state.items() if _has_fraction(t)}
            continue
        for name in list(sums):
            other = state.get(name)
            if other is None or other.shape != sums[name].shape:
                del sums[name]
            else:
                sums[name] += _wide(other)
    means = {name: (total / count).to(first[name].dtype) for name, total in sums.items()}
    return {name: means.get(name, tensor) for name, tensor in first.items()}


def has_statistics(network: nn.Module, *, still: Collection[str] = ()) -> bool:
    """Say whether a layer normalises by statistics that were collected in training (BatchNorm)."""
    return bool(_collecting(network, still))


@torch.no_grad()
def estimate_statistics(
    network: nn.Module, examples: Examples, *, still: Collection[str] = ()
) -> None:
    """Collect the statistics of normalising layers anew, on examples of the train split.

    Those of a mean of networks are not the mean of theirs. As `torch.optim.swa_utils.update_bn`:
    the plain mean over batches; but only these layers are in training mode, so that dropout, which
    changes the variance of what it leaves, is off as it will be (Li et al. 2019, arXiv:1801.05134).

    Args:
        network: Left in eval mode.
        examples: Two or more.
        still: Names of layers that keep theirs.
    """
    assert len(examples) > 1
    layers = _collecting(network, still)
    momenta = [layer.momentum for layer in layers]
    network.eval()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # torch: the plain mean
        layer.train()
    try:
        pieces = max(1, len(examples) // _BATCH)  # equal ones: none is of a single example
        for rows in torch.arange(len(examples)).tensor_split(pieces):
            network(**examples.take(rows).arrays)
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
        network.eval()


def _collecting(network: nn.Module, still: Collection[str]) -> list[_NormBase]:
    named = [(name, m) for name, m in network.named_modules() if isinstance(m, _NormBase)]
    return [layer for name, layer in named if layer.running_mean is not None and name not in still]


def _has_fraction(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _wide(tensor: Tensor) -> Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64, copy=True)
