"""What a start changes of the model before a strategy takes it: frozen parts, adapters."""

from __future__ import annotations

from torch import nn

from training_core.parallel.statistics import is_held
from training_core.transfer.freezing import freeze, normalising
from training_core.transfer.lora import adapt
from training_core.transfer.settings import StartSettings
from training_core.transfer.weights import refuse_forgotten_start


def shape(model: nn.Module, settings: StartSettings) -> None:
    """Freeze, or adapt, a model that has the weights it starts from.

    Raises:
        ConfigurationError: It has not; or settings do not fit it.
    """
    refuse_forgotten_start(model, settings)
    _shape(model, settings)


def still_layers(model: nn.Module, settings: StartSettings) -> frozenset[str]:
    """Return the names of the normalising layers whose statistics training keeps as they are.

    Args:
        model: One of its kind, which is changed: of no further use.
        settings: Of the training.
    """
    _shape(model, settings)
    return frozenset(name for name, layer in normalising(model) if is_held(layer))


def _shape(model: nn.Module, settings: StartSettings) -> None:
    if settings.lora.rank:
        adapt(model, settings.lora, replace=settings.replace)
    elif settings.freeze:
        freeze(model, settings.freeze)
