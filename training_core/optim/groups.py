"""Which parameters decay, and which are hidden matrices. Tied ones count once, frozen ones not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.nn import Parameter

# Decay would only rescale what a norm puts out: its parameters do not decay, whatever their shape.
NORMS = (
    nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm,
    nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d,
    nn.LayerNorm, nn.GroupNorm, nn.RMSNorm,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part:
    """What parameters that are trained alike have in common.

    Attributes:
        lr_factor: Their learning rate is the schedule's times this.
        level: They rest while training is at a lower level.
    """

    lr_factor: float = 1.0
    level: int = 0


Parts = Mapping[Parameter, Part]
_ALIKE = Part()


def by_decay(model: nn.Module) -> tuple[list[Parameter], list[Parameter]]:
    """Split the trained parameters into those that decay and the rest, both in the model's order.

    Matrices, kernels and embeddings decay; norms, biases and what has less than two dimensions do
    not.
    """
    exempt = {
        id(parameter)
        for module in model.modules()
        for name, parameter in module.named_parameters(recurse=False)
        if isinstance(module, NORMS) or "bias" in name or parameter.ndim < 2
    }
    trained = [p for p in model.parameters() if p.requires_grad]
    return [p for p in trained if id(p) not in exempt], [p for p in trained if id(p) in exempt]


def parameter_groups(
    decaying: list[Parameter],
    others: list[Parameter],
    *,
    weight_decay: float,
    parts: Parts | None = None,
) -> list[dict[str, Any]]:
    """Return groups as torch's optimisers take them, leaving out empty ones."""
    return [
        {"params": members, "weight_decay": weight_decay if decays else 0.0}
        for members, decays in grouped(decaying, others, parts=parts)
    ]


def grouped(
    decaying: list[Parameter], others: list[Parameter], *, parts: Parts | None = None
) -> Iterator[tuple[list[Parameter], bool]]:
    """Give parameters of one part that decay, or do not, group by group; none is empty."""
    for parameters, decays in ((decaying, True), (others, False)):
        by_part: dict[Part, list[Parameter]] = {}
        for parameter in parameters:
            by_part.setdefault(parts[parameter] if parts else _ALIKE, []).append(parameter)
        for members in by_part.values():
            yield members, decays


def hidden_matrices(model: nn.Module) -> list[Parameter]:
    """Return the matrices between input and output: neither embeddings nor the output's.

    A model does not say which layer is its last: the Linear that was registered last counts as the
    output, which holds where layers are listed in the order of their use.
    """
    apart = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, nn.Embedding | nn.EmbeddingBag)
        for parameter in module.parameters()
    }
    linears = [module for module in model.modules() if isinstance(module, nn.Linear)]
    apart |= {id(linear.weight) for linear in linears[-1:]}
    return [p for p in by_decay(model)[0] if p.ndim == 2 and id(p) not in apart]
