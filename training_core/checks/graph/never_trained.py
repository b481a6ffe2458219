"""Weights that are random and stay so, though outputs depend on them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from training_core.checks.chance import state_of
from training_core.checks.graph.calling import (
    ROUNDING,
    change_by_row,
    copy_of,
    largest,
    outputs_of,
)
from training_core.checks.subject import Subject
from training_core.examples import Examples

ROWS = 32


def differing(one: nn.Module, other: nn.Module, names: list[str]) -> list[str]:
    """Return the tensors of some names that two models of different seeds do not share."""
    first, second = state_of(one), state_of(other)
    return [
        name
        for name in names
        if name in second
        and first[name].is_floating_point()
        and not torch.equal(first[name], second[name])
    ]


@torch.no_grad()
def outputs_depend_on(
    subject: Subject, model: nn.Module, values: dict[str, Tensor], *, training: bool = False
) -> bool:
    """Say whether outputs change when tensors of a model, parameters or buffers, are replaced.

    In eval mode, or in train mode, with chance drawn alike. A weight that is replaced and moves the
    outputs by less than rounding does is not used: it is added where a norm takes it away.
    """
    batch = subject.batch(ROWS)
    original = copy_of(subject, model).train(training)
    replaced = copy_of(subject, model).train(training)
    tensors = {**dict(replaced.named_parameters()), **dict(replaced.named_buffers())}
    for name, value in values.items():
        tensors[name].copy_(value)
    before, after = outputs_of(original, batch), outputs_of(replaced, batch)
    return float(change_by_row(before, after).max()) > ROUNDING * largest(before)


def shaken(model: nn.Module, names: list[str]) -> dict[str, Tensor]:
    """Return values for some parameters that are far from what they are."""
    generator = torch.Generator().manual_seed(1)
    found = {}
    for name in names:
        tensor = model.get_parameter(name).detach()
        scale = float(tensor.std()) if tensor.numel() > 1 else 0.0
        noise = torch.randn(tensor.shape, generator=generator).to(tensor.dtype)
        found[name] = tensor + noise * max(scale, 0.1)
    return found


def called_modules(subject: Subject, model: nn.Module) -> dict[str, set[int]]:
    """Return the modules that take part in a forward pass in train mode, with how many rows."""
    called: dict[str, set[int]] = {}

    def note(name: str, args: tuple[object, ...]) -> None:
        rows = called.setdefault(name, set())
        rows.update(len(each) for each in args if isinstance(each, Tensor) and each.ndim)

    copied = copy_of(subject, model).train()
    for name, module in copied.named_modules():
        module.register_forward_pre_hook(lambda _, args, name=name: note(name, args))
    outputs_of(copied, subject.batch(ROWS))
    return called


def forgotten(model: nn.Module, name: str, called: dict[str, set[int]]) -> bool:
    """Say whether a parameter's layer is never called; an expert without rows is no such layer.

    Layers side by side in a list that get different numbers of rows are experts.
    """
    path = name.split(".")[:-1]
    if not path or ".".join(path) in called:
        return False
    for end in range(1, len(path)):
        around = ".".join(path[:end])
        if isinstance(model.get_submodule(around), nn.ModuleList | nn.ModuleDict):
            inner = [rows for other, rows in called.items() if other.startswith(around + ".")]
            if len(set().union(*inner)) > 1:
                return False
    return True


@torch.no_grad()
def unsaved_state_matters(subject: Subject) -> bool:
    """Say whether two models with the same state dict have different outputs.

    What outputs depend on and no state dict holds is neither trained nor saved: layers in a plain
    list, tensors that are attributes.
    """
    batch: Examples = subject.batch(ROWS)
    one, other = subject.build(0).eval(), subject.build(1).eval()
    other.load_state_dict(one.state_dict(), strict=False)
    before = outputs_of(one, batch)
    moved = float(change_by_row(before, outputs_of(other, batch)).max())
    return moved > ROUNDING * largest(before)


def unregistered(model: nn.Module) -> dict[str, list[Tensor]]:
    """Return tensors that a model holds where torch does not see them, by attribute."""
    found = {}
    for prefix, module in model.named_modules():
        for attribute, value in vars(module).items():
            if attribute.startswith("_"):
                continue
            tensors = [t for each in _items(value) for t in _weights(each)]
            if tensors:
                found[f"{prefix}.{attribute}" if prefix else attribute] = tensors
    return found


def _items(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else [value]


def _weights(value: object) -> list[Tensor]:
    if isinstance(value, nn.Module):
        return [*value.parameters(), *value.buffers()]
    return [value] if isinstance(value, Tensor) else []
