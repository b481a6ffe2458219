"""What flows through a network: activations and their gradients by layer, and stuck units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (the field's name for it)
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from training_core.checks.subject import Subject
from training_core.examples import Examples

# Of the rows: those that pass from one end of a tanh to the other are in between.
_NEARLY_ALL = 0.98
_RELU = (F.relu, torch.relu, torch.relu_, Tensor.relu, Tensor.relu_)
# Where a unit is stuck: (lowest, highest) output, and how near to it counts.
_ENDS: dict[Any, tuple[str, tuple[float, ...], float]] = {
    **dict.fromkeys(_RELU, ("relu", (0.0,), 0.0)),
    F.relu6: ("relu6", (0.0, 6.0), 0.0),
    **dict.fromkeys((F.gelu,), ("gelu", (0.0,), 1e-4)),
    **dict.fromkeys((F.silu,), ("silu", (0.0,), 1e-4)),
    **dict.fromkeys((torch.tanh, Tensor.tanh, Tensor.tanh_, F.tanh), ("tanh", (-1.0, 1.0), 0.01)),
    **dict.fromkeys(
        (torch.sigmoid, Tensor.sigmoid, Tensor.sigmoid_, F.sigmoid), ("sigmoid", (0.0, 1.0), 0.01)
    ),
}


@dataclass(frozen=True)
class Scale:
    """Root mean square of a layer's outputs, and of the loss's gradient by them."""

    layer: str
    outputs: float
    gradient: float


@dataclass(frozen=True)
class Stuck:
    """Units of an activation that are at an end of its range, for (nearly) all rows.

    Attributes:
        where: The module in which it is called, and which function.
        units: How many there are.
        share: How many of them are stuck, from 0 to 1.
    """

    where: str
    units: int
    share: float


def flow(subject: Subject, model: nn.Module, examples: Examples) -> tuple[list[Scale], list[Stuck]]:
    """Send examples through a network in eval mode and back; return both in order of execution.

    The model is left with gradients of zero size: pass a copy.
    """
    model.eval()
    outputs: dict[str, Tensor] = {}
    inside: list[str] = []
    hooks = []

    def entering(name: str) -> Callable[..., None]:
        return lambda module, arguments: inside.append(name)

    def leaving(name: str, keep: bool) -> Callable[..., None]:
        def hook(module: nn.Module, arguments: Any, output: Any) -> None:
            inside.pop()
            if keep and isinstance(output, Tensor) and output.requires_grad:
                output.retain_grad()
                outputs.setdefault(name, output)

        return hook

    for name, module in model.named_modules():
        layer = isinstance(getattr(module, "weight", None), Tensor)
        hooks.append(module.register_forward_pre_hook(entering(name or "the network")))
        hooks.append(module.register_forward_hook(leaving(name or "the network", layer)))
    watching = _Activations(inside)
    try:
        with torch.enable_grad(), watching:
            result = model(**examples.arrays)
        loss = subject.loss(result.float(), examples)
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
    finally:
        for hook in hooks:
            hook.remove()
    scales = [
        Scale(name, _size(output), 0.0 if output.grad is None else _size(output.grad))
        for name, output in outputs.items()
    ]
    return scales, watching.stuck_beside(result)


def _size(values: Tensor) -> float:
    """Root mean square."""
    return float(values.detach().double().square().mean().sqrt())


class _Activations(TorchFunctionMode):
    """Notes every call of an activation function, be it a module or not."""

    def __init__(self, inside: list[str]) -> None:
        super().__init__()
        self._inside = inside
        self._noted: list[tuple[Stuck, int]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        # what does not depend on parameters, such as clipped inputs, is no unit
        known = func in _ENDS and isinstance(result, Tensor) and result.requires_grad
        if known and result.dim() >= 2 and result.numel():
            self._note(func, result)
        return result

    def stuck_beside(self, output: Tensor) -> list[Stuck]:
        """Return what was noted, but for the network's output: it may be at an end by right."""
        last = output.untyped_storage().data_ptr()
        return [stuck for stuck, place in self._noted if place != last]

    def _note(self, func: Any, result: Tensor) -> None:
        name, ends, near = _ENDS[func]
        # [N, C, H, W]: a channel is a unit; [N, T, C]: so is a column
        units = 1 if result.dim() >= 4 else result.dim() - 1
        flat = result.detach().movedim(units, -1).reshape(-1, result.shape[units])
        at_end = torch.zeros(flat.shape, dtype=torch.bool)
        for end in ends:
            at_end |= (flat - end).abs() <= near
        shares = at_end.double().mean(0)
        share = float((shares >= (_NEARLY_ALL if len(ends) > 1 else 1.0)).double().mean())
        where = f"{self._inside[-1] if self._inside else 'the network'} ({name})"
        place = result.untyped_storage().data_ptr()
        self._noted.append((Stuck(where, flat.shape[1], share), place))
