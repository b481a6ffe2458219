"""Gradients of parameters against what outputs really do: a part that is detached is found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from training_core.checks.graph.calling import copy_of
from training_core.checks.subject import Subject
from training_core.determinism import seed_everything
from training_core.examples import Examples

ROWS = 16
MOST = 24  # parameters looked at, spread over the network
STEPS = (1e-4, 1e-5)  # shares of a parameter's size, in double precision
AGREE = 1e-2  # the two steps must give the same slope: else there is an edge between
EDGE = 0.1  # and the two sides of each
APART = 0.2  # share by which a gradient may be off before it is another one's
WEIGHTY = 1e-3  # of the largest slope: less is not worth a word


@dataclass(frozen=True)
class Slope:
    """Of one parameter, along its own gradient.

    Attributes:
        name: The parameter.
        said: By backward(): the length of the gradient.
        measured: By moving the parameter both ways and looking at the outputs.
    """

    name: str
    said: float
    measured: float

    @property
    def wrong(self) -> bool:
        """Whether they are apart by more than numbers and edges of ReLUs make them."""
        return abs(self.measured - self.said) > APART * max(abs(self.said), abs(self.measured))


def wrong_slopes(subject: Subject, model: nn.Module) -> list[Slope]:
    """Return the parameters whose gradient is not the slope of the outputs.

    The outputs of a few rows, weighted at random, are one number. Its slope along each gradient is
    taken twice, by backward() and by central differences in double precision; a state that is
    detached between steps, or a branch under no_grad(), hides a part of it from the first. A
    parameter that has no gradient at all is left to those who look for that. Where moving one that
    has a gradient moves nothing, gradients are passed straight through steps on purpose.

    Sources: Baydin et al. 2018, section 2.1, on numerical and automatic differentiation; Bengio et
    al. 2013, on straight-through estimators.

    Args:
        subject: What is checked.
        model: In eval mode; left as it is.
    """
    with _doubles():
        network = copy_of(subject, model).double().eval()
        rows = subject.batch(ROWS)
        batch = Examples(
            {n: a.double() if a.is_floating_point() else a for n, a in rows.arrays.items()},
            rows.target,
            rows.units,
        )
        try:
            return _compare(network, batch)
        except (RuntimeError, TypeError):  # it has dtypes of its own: there is no telling
            return []


def _compare(network: nn.Module, batch: Examples) -> list[Slope]:
    weights: list[Tensor] = []

    def value() -> Tensor:
        seed_everything(0)
        outputs = network(**batch.clone().arrays)
        if not weights:
            generator = torch.Generator().manual_seed(1)
            weights.append(torch.randn(outputs.shape, generator=generator, dtype=torch.float64))
        total: Tensor = (outputs.double() * weights[0]).sum()
        return total

    trained = {n: p for n, p in network.named_parameters() if p.requires_grad and p.numel()}
    if not trained or not value().isfinite():
        return []
    gradients = torch.autograd.grad(value(), [*trained.values()], allow_unused=True)
    found = []
    for name, gradient in _spread(list(zip(trained, gradients, strict=True))):
        length = 0.0 if gradient is None else float(gradient.norm())
        if gradient is None or not 0 < length < float("inf"):
            continue
        each = [_measured(value, trained[name], gradient / length, step) for step in STEPS]
        if all(math.isclose(slope, each[1], rel_tol=AGREE) for slope in each):
            found.append(Slope(name, length, each[1]))
    if any(abs(s.measured) < WEIGHTY * s.said for s in found):
        return []
    top = max((max(s.said, abs(s.measured)) for s in found), default=0.0)
    return [s for s in found if s.wrong and max(s.said, abs(s.measured)) > WEIGHTY * top]


@torch.no_grad()
def _measured(
    value: Callable[[], Tensor], parameter: Tensor, direction: Tensor, share: float
) -> float:
    """Return the slope by central differences; NaN at an edge, where the two sides differ."""
    step = share * max(float(parameter.norm()), 1e-3)
    original = parameter.clone()
    here = float(value())
    sides = []
    for sign in (1, -1):
        parameter.copy_(original + sign * step * direction)
        sides.append(sign * (float(value()) - here) / step)
    parameter.copy_(original)
    close = math.isclose(*sides, rel_tol=EDGE)
    return sum(sides) / 2 if close else math.nan


def _spread(every: list[tuple[str, Tensor | None]]) -> list[tuple[str, Tensor | None]]:
    if len(every) <= MOST:
        return every
    return [every[round(k * (len(every) - 1) / (MOST - 1))] for k in range(MOST)]


@contextmanager
def _doubles() -> Iterator[None]:
    """What the network makes in passing is of double precision too."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
