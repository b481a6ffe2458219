"""Weights that begin or move as they should not, and what is kept of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tests.planted_bugs import (
    healthy_language_model,
    healthy_multilabel,
    healthy_rare,
    healthy_regression,
    healthy_residual,
    healthy_sgd,
    healthy_transformer,
)
from tests.planted_bugs.planting import Theme

WEIGHTS = Theme("Weights, rates and outputs")
SAVED = Theme("What is saved")
RATE = "Humbatova et al. 2020, suboptimal learning rate; Schoop et al. 2021, UMLAUT"
TABLE, SGD = healthy_regression.HEALTHY, healthy_sgd.HEALTHY

WEIGHTS.settings(
    "rate_100_times_too_high",
    TABLE,
    "The learning rate is a hundred times what suits the network.",
    found_by=("learning_rate", "loss_falls", "update_health"),
    seen=RATE,
    optimiser={"lr": 0.3},
)
WEIGHTS.settings(
    "rate_100_times_too_low",
    TABLE,
    "The learning rate is a hundredth of what suits the network.",
    found_by=("learning_rate", "loss_falls", "update_health"),
    seen=RATE,
    optimiser={"lr": 3e-5},
)
WEIGHTS.settings(
    "rate_of_another_optimiser",
    SGD,
    "SGD is given the learning rate that suited Adam.",
    found_by=("learning_rate", "loss_falls", "update_health"),
    seen=RATE,
    optimiser={"lr": 3e-4},
    warns=True,
)
WEIGHTS.settings(
    "clipped_to_nothing",
    SGD,
    "Gradients are clipped to a norm of 0.0001: hardly a weight moves.",
    found_by=("learning_rate", "loss_falls", "update_health"),
    seen="Cao et al. 2022, DeepDiagnosis: unchanged weights",
    optimiser={"clip_norm": 1e-4},
)
WEIGHTS.settings(
    "epsilon_of_one",
    healthy_multilabel.HEALTHY,
    "Adam's epsilon is 1: it divides by that and not by the gradient's size.",
    found_by=("learning_rate", "loss_falls", "update_health"),
    optimiser={"eps": 1.0},
)
WEIGHTS.settings(
    "warm_up_of_the_whole_run",
    healthy_transformer.HEALTHY,
    "The warm-up takes 95 % of the run.",
    found_by=("schedule_as_planned",),
    seen="Karpathy 2019, learning rate schedules",
    schedule={"warmup": 0.95},
)


@WEIGHTS.built(
    healthy_rare.HEALTHY,
    "Biases begin at -10: no ReLU ever opens.",
    found_by=("update_health", "one_batch", "parameters_train", "inputs_reach_outputs"),
    seen="Zhang et al. 2021, AUTOTRAINER: dying ReLU",
)
def biases_of_minus_ten(model: nn.Module) -> None:
    for layer in list(model.layers)[:-1]:
        if isinstance(layer, nn.Linear):
            nn.init.constant_(layer.bias, -10.0)


@WEIGHTS.built(
    healthy_multilabel.HEALTHY,
    "Weights begin a hundred times too large.",
    found_by=("initial_loss", "update_health"),
    seen="Wardat et al. 2022, DeepDiagnosis: saturated activation, exploding tensor",
)
def weights_100_times_too_large(model: nn.Module) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(100)


@WEIGHTS.built(
    TABLE,
    "All weights begin at zero: every unit is the same, and stays so.",
    found_by=("parameters_train", "one_batch", "update_health", "inputs_reach_outputs"),
    seen="Humbatova et al. 2020, wrong weights initialisation",
)
def weights_of_zero(model: nn.Module) -> None:
    for parameter in model.parameters():
        nn.init.zeros_(parameter)


class _Averaged(nn.Linear):
    def forward(self, numbers: Tensor) -> Tensor:
        return super().forward(numbers.mean(1, keepdim=True).expand_as(numbers))


@WEIGHTS.built(
    healthy_multilabel.HEALTHY,
    "A mean over the wrong axis before the first layer: of eight numbers their average is left.",
    found_by=("simple_model_ahead",),
    seen="Humbatova et al. 2020, wrong tensor shape: an axis too few, and broadcast back",
)
def numbers_averaged_before_the_first_layer(model: nn.Module) -> None:
    model.layers[0].__class__ = _Averaged


class _Squashed(healthy_residual.Block):
    def forward(self, hidden: Tensor) -> Tensor:
        return self.narrow(self.wide(hidden).sigmoid()).sigmoid()


@WEIGHTS.built(
    healthy_residual.HEALTHY,
    "Nothing goes round the blocks, and they squash: no gradient comes back through twelve.",
    found_by=("update_health", "one_batch", "inputs_reach_outputs", "inputs_help"),
    seen="Wardat et al. 2022, DeepDiagnosis: vanishing gradient",
)
def residual_forgotten(model: nn.Module) -> None:
    for block in model.blocks:
        block.__class__ = _Squashed


@WEIGHTS.built(
    TABLE,
    "A ReLU after the last layer of a regression: nothing below 0 can be said.",
    found_by=("outputs_move_freely",),
    seen="Schoop et al. 2021, UMLAUT; Humbatova et al. 2020, wrong activation of the output",
)
def relu_on_the_output(model: nn.Module) -> None:
    model.layers.append(nn.ReLU())


@SAVED.network(
    healthy_language_model.HEALTHY,
    "Embedding and head are tied, and untied when weights are loaded.",
    found_by=("checkpoint_equals_itself",),
    seen="Hugging Face Accelerate: tied parameters have to be tied again after loading",
)
class UntiedOnLoading(healthy_language_model.GPT):
    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        self.head.weight = nn.Parameter(self.head.weight.detach().clone())
        return super().load_state_dict(state_dict, strict, assign)


class _Follows(healthy_sgd.Network):
    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        if self.training:
            self.seen = 0.9 * self.seen + 0.1 * numbers.detach().square().mean(0)
        return super().forward(categories, numbers / (0.5 + self.seen).sqrt())


@SAVED.built(
    SGD,
    "A running scale is an attribute and no buffer: no checkpoint holds it.",
    found_by=("checkpoint_equals_itself",),
    seen="Islam et al. 2019; torch documents register_buffer for it",
)
def state_outside_of_the_state_dict(model: nn.Module) -> None:
    model.__class__ = _Follows
    model.seen = torch.full((healthy_sgd.COLUMNS,), 3.0)


@SAVED.built(
    SGD,
    "BatchNorm's running statistics are left out of the state dict as if they could be made anew.",
    found_by=("checkpoint_equals_itself",),
    seen="torch: register_buffer(persistent=False)",
)
def statistics_not_saved(model: nn.Module) -> None:
    for norm in model.norms:
        norm._non_persistent_buffers_set |= {"running_mean", "running_var"}
