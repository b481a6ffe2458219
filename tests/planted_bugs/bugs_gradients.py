"""Gradients that are not the slopes of the outputs, or that are none."""

from __future__ import annotations

from torch import Tensor, nn

from tests.planted_bugs import healthy_gru, healthy_transformer
from tests.planted_bugs.planting import Theme

GRADIENTS = Theme("Gradients")


@GRADIENTS.network(
    healthy_gru.HEALTHY,
    "The state is detached before each step: gradients know of the last step alone.",
    found_by=("parameters_train",),
    seen="Williams & Peng 1990, truncated backpropagation through time, here after one step",
)
class StateDetachedAtEachStep(healthy_gru.Network):
    def forward(self, series: Tensor) -> Tensor:
        state = series.new_zeros(1, len(series), healthy_gru.WIDTH)
        for step in series.split(1, dim=1):
            _, state = self.gru(step, state.detach())
        return self.out(state[0]).squeeze(1)


class _Weighted(healthy_transformer.Network):
    def pooled(self, hidden: Tensor, real: Tensor) -> Tensor:
        weights = self.score(hidden).softmax(2) * real.unsqueeze(2)
        return (hidden * weights).sum(1) / weights.sum(1).clamp_min(1)


@GRADIENTS.built(
    healthy_transformer.HEALTHY,
    "Each word has one score, and the softmax goes over it and not over the words: all weigh 1.",
    found_by=("parameters_train",),
    seen="Karpathy 2018, axes mixed up",
)
def softmax_over_one_score(model: nn.Module) -> None:
    model.score = nn.Linear(healthy_transformer.WIDTH, 1)
    model.__class__ = _Weighted
