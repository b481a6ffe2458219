"""Bounds that no weights can take outputs beyond, and targets that lie there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import Parameter
from torch.nn.modules.conv import _ConvNd
from torch.utils.hooks import RemovableHandle

from training_core.checks.free_outputs import best_constant, descend
from training_core.checks.graph.calling import copy_of
from training_core.checks.subject import Subject
from training_core.examples import Examples

_LARGE, _HUGE = 100.0, 10_000.0  # times the weights: what grows from one to the other has no bound
_LAST = 3  # layers that are made larger, each by itself, before all parameters are
_GROWTH = 0.01  # of the deviation of the best outputs: no growth
_BEYOND = 0.05  # of that deviation, by which an output is wanted beyond its bound
_LOADED = 0.05  # of what a constant loses beyond the best outputs: its square is lost at the bound
_FEWEST = 16  # examples whose best outputs tell anything

Range = tuple[Tensor, Tensor]  # the smallest and largest value of each output, over examples


@dataclass(frozen=True)
class Beyond:
    """Targets that outputs cannot reach.

    Attributes:
        share: Of the examples, for which the best outputs lie beyond.
        lowest, highest: The bounds; infinite where there is none.
    """

    share: float
    lowest: float
    highest: float


def beyond_bounds(subject: Subject, model: nn.Module, examples: Examples) -> Beyond | None:
    """Say for how many examples of a regression the best outputs lie beyond all that can be said.

    The weights of the last layers are made so large that whatever squashes outputs is at its ends.
    An output that any layer, or all parameters together, take further has no bound. Outputs that
    are more or fewer than targets (a variance beside the mean) may be bounded for good reason.

    Args:
        subject: For its task.
        model: Trained, in eval mode; left as it is.
        examples: Real ones.

    Returns:
        None: There is no bound, or nothing to be said of it.
    """
    task, target = subject.task, examples.target
    with torch.no_grad():
        outputs = model(**examples.arrays).float()
    if task.kind != "regression" or outputs.numel() != target.numel() or len(target) < _FEWEST:
        return None
    best = descend(lambda free: task.loss(free, target), outputs, kind=task.kind)
    deviation = best.std(0, keepdim=True)
    if not bool(torch.isfinite(best).all()) or not bool((deviation > 0).all()):
        return None
    found = _bounds(subject, model, examples, outputs, deviation)
    if found is None:
        return None
    low, high = found
    held = best.clamp(low, high)
    with torch.no_grad():
        free, bound, constant = (
            task.loss(each, target).double()
            for each in (best, held, best_constant(task, outputs, examples))
        )
    lost = bound - free >= _LOADED**2 * (constant - free).mean().clamp(min=1e-12)
    beyond = ((best - held).abs() > _BEYOND * deviation).reshape(len(best), -1).any(1)
    share = float((beyond & lost).double().mean())
    return Beyond(share, float(low.min()), float(high.max()))


def _bounds(
    subject: Subject, model: nn.Module, examples: Examples, outputs: Tensor, deviation: Tensor
) -> Range | None:
    """Return the range that outputs keep whatever their weights; None: they keep none."""
    low = outputs.amin(0, keepdim=True)
    high = outputs.amax(0, keepdim=True)
    for chosen in (*_last_layers(model, examples), None):
        large, huge = (
            _range(subject, model, examples, chosen, factor) for factor in (_LARGE, _HUGE)
        )
        if not all(bool(torch.isfinite(each).all()) for each in (*large, *huge)):
            return None
        grows = _GROWTH * deviation
        low = torch.where(huge[0] < large[0] - grows, -torch.inf, torch.minimum(low, huge[0]))
        high = torch.where(huge[1] > large[1] + grows, torch.inf, torch.maximum(high, huge[1]))
        if bool(torch.isinf(low).all()) and bool(torch.isinf(high).all()):
            return None
    return low, high


@torch.no_grad()
def _range(
    subject: Subject, model: nn.Module, examples: Examples, name: str | None, factor: float
) -> Range:
    """Return the range of outputs with the weights of a layer, or all, times plus and minus it."""
    said = []
    for sign in (1.0, -1.0):
        larger = copy_of(subject, model)
        part = larger if name is None else larger.get_submodule(name)
        _multiply(part.parameters(), sign * factor)
        said.append(larger(**examples.arrays).float())
    both = torch.cat(said)
    return both.amin(0, keepdim=True), both.amax(0, keepdim=True)


def _multiply(parameters: Iterable[Parameter], factor: float) -> None:
    for parameter in parameters:
        if parameter.is_floating_point():
            parameter.mul_(factor)


def _last_layers(model: nn.Module, examples: Examples) -> list[str]:
    """Return the names of the last layers with weights, in the order in which they are called."""
    called: list[str] = []
    handles: list[RemovableHandle] = []
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear | _ConvNd):
            handles.append(module.register_forward_hook(lambda *_, name=name: called.append(name)))
    try:
        with torch.no_grad():
            model(**examples.arrays)
    finally:
        for handle in handles:
            handle.remove()
    return list(dict.fromkeys(reversed(called)))[:_LAST]
