"""Parameters that are not trained: no gradient, no decay, no moments, no statistics collected."""

from __future__ import annotations

from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from training_core.parallel.statistics import hold_statistics
from training_core.transfer.patterns import matches, matching


def freeze(model: nn.Module, patterns: tuple[str, ...]) -> None:
    """Freeze what patterns mean, for good, before the model is given to a strategy.

    A layer that normalises by collected statistics is in eval mode from then on, whatever mode the
    model is put in, if all of its own parameters are frozen or its `running_mean` is meant.

    Raises:
        ConfigurationError: A pattern means no parameter and no buffer.
    """
    names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    names += [name for name, _ in model.named_buffers()]
    frozen = matching(names, patterns, setting="training.start.freeze")
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if name in frozen:
            parameter.requires_grad_(False)
    for name, layer in normalising(model):
        own = list(layer.parameters(recurse=False))
        still = all(not p.requires_grad for p in own) if own else False
        if still or matches(f"{name}.running_mean".removeprefix("."), patterns):
            hold_statistics(layer)


def normalising(model: nn.Module) -> list[tuple[str, _NormBase]]:
    """Return the layers that normalise by collected statistics, by name."""
    return [
        (name, module)
        for name, module in model.named_modules()
        if isinstance(module, _NormBase) and module.running_mean is not None
    ]
