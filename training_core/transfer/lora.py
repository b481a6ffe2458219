"""Low-rank adapters: W x becomes W x + alpha / rank · B (A x), and only A and B are trained.

Hu et al. 2021, "LoRA", arXiv:2106.09685. An adapter lies in the layer that it belongs to, as
`lora_a` and `lora_b` beside `weight`, so no other name changes; `merged` makes the state of a plain
model of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor, nn
from torch.nn import functional

from training_core.errors import ConfigurationError
from training_core.parallel.statistics import hold_statistics
from training_core.transfer.freezing import normalising
from training_core.transfer.patterns import matching
from training_core.transfer.settings import LoraSettings

A, B = "lora_a", "lora_b"


class AdaptedLinear(nn.Linear):
    """An `nn.Linear` with an adapter; made of one in place, by changing its class."""

    lora_a: nn.Parameter
    lora_b: nn.Parameter
    lora_scale: float
    lora_dropout: float

    def forward(self, input: Tensor) -> Tensor:
        given = functional.dropout(input, self.lora_dropout, self.training)
        low = functional.linear(functional.linear(given, self.lora_a), self.lora_b)
        return super().forward(input) + self.lora_scale * low


def adapt(model: nn.Module, settings: LoraSettings, *, replace: tuple[str, ...] = ()) -> None:
    """Freeze a model but for what `replace` means, and give its layers adapters.

    Args:
        model: With the weights of its start; changed.
        settings: Rank and layers.
        replace: Patterns of parameters that stay trained, whole and without an adapter.

    Raises:
        ConfigurationError: No layer can take one.
    """
    names = [name for name, _ in model.named_parameters()]
    kept = matching(names, replace, setting="training.start.replace")
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in kept)
    for name, layer in normalising(model):
        if not any(f"{name}.{own}" in kept for own, _ in layer.named_parameters(recurse=False)):
            hold_statistics(layer)
    layers = {
        name: module
        for name, module in _callable_linears(model).items()
        if f"{name}.weight".removeprefix(".") not in kept
    }
    if not layers:
        raise ConfigurationError(
            f"training.start.lora: {type(model).__name__} has no nn.Linear for an adapter",
            hint="adapters are for nn.Linear layers; freeze or unfreeze are for any",
        )
    chosen = matching(list(layers), settings.patterns, setting="training.start.lora.patterns")
    for name, linear in layers.items():  # in the model's order: their random starts follow from it
        if name in chosen:
            _give_adapter(linear, settings)


def merged(
    state: Mapping[str, Tensor], base: Mapping[str, Tensor], settings: LoraSettings
) -> dict[str, Tensor]:
    """Return a plain model's state: the base, what was trained of it, and adapters added to it.

    Args:
        state: Of a checkpoint: adapters, and what else is trained or collected.
        base: What training began with, whole.
        settings: Those of the training.
    """
    found = {**base, **{n: v for n, v in state.items() if not n.endswith((f".{A}", f".{B}"))}}
    for name in state:
        if name.endswith(f".{A}"):
            layer = name.removesuffix(f".{A}")
            product = state[f"{layer}.{B}"].double() @ state[name].double()
            weight = found[f"{layer}.weight"]
            change = (settings.alpha / settings.rank) * product
            found[f"{layer}.weight"] = (weight.double() + change).to(weight.dtype)
    return found


def _give_adapter(layer: nn.Linear, settings: LoraSettings) -> None:
    """B begins at 0, so the model begins as it was."""
    weight = layer.weight
    layer.__class__ = AdaptedLinear
    assert isinstance(layer, AdaptedLinear)
    layer.lora_a = nn.Parameter(weight.new_empty(settings.rank, layer.in_features))
    layer.lora_b = nn.Parameter(weight.new_zeros(layer.out_features, settings.rank))
    nn.init.kaiming_uniform_(layer.lora_a, a=math.sqrt(5))
    layer.lora_scale = settings.alpha / settings.rank
    layer.lora_dropout = settings.dropout


def _callable_linears(model: nn.Module) -> dict[str, nn.Linear]:
    """Return the linear layers that are called: nn.MultiheadAttention only reads its weights."""
    inside = {
        id(part)
        for module in model.modules()
        if isinstance(module, nn.MultiheadAttention)
        for part in module.modules()
    }
    return {
        name: module
        for name, module in model.named_modules()
        if type(module) is nn.Linear and id(module) not in inside
    }
