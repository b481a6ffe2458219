"""Find the module in which two calls of a model part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from training_core.checks.graph.calling import outputs_of
from training_core.examples import Examples


@dataclass(frozen=True)
class Call:
    """What went into a module and came out of it."""

    name: str
    inputs: list[Tensor]
    outputs: list[Tensor]


def calls_of(model: nn.Module, examples: Examples, *, seed: int | None = 0) -> list[Call]:
    """Return the calls of all modules in the order in which they ended: inner ones first."""
    calls: list[Call] = []
    with _hooked(model, calls):
        outputs_of(model, examples, seed=seed)
    return calls


def first_to_part(
    before: list[Call], after: list[Call], *, alike: Callable[[Tensor, Tensor], bool]
) -> str | None:
    """Return the name of the first module with inputs that are alike and outputs that are not.

    "" is the model itself. None: there is none, or the model did not make the same calls.
    """
    if [call.name for call in before] != [call.name for call in after]:
        return None
    for one, other in zip(before, after, strict=True):
        given = zip(one.inputs, other.inputs, strict=False)
        came = zip(one.outputs, other.outputs, strict=False)
        if all(alike(a, b) for a, b in given) and not all(alike(a, b) for a, b in came):
            return one.name
    return None


@contextmanager
def _hooked(model: nn.Module, calls: list[Call]) -> Iterator[None]:
    def hook_of(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, kwargs: Any, outputs: Any) -> None:
            given = [*_tensors(args), *_tensors(kwargs)]
            calls.append(Call(name, given, _tensors(outputs)))

        return hook

    hooks = [
        module.register_forward_hook(hook_of(name), with_kwargs=True)
        for name, module in model.named_modules()
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _tensors(value: Any) -> list[Tensor]:
    """Return copies of all tensors in nested tuples, lists and dictionaries."""
    if isinstance(value, Tensor):
        return [value.detach().clone()]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [tensor for each in value for tensor in _tensors(each)]
    return []
