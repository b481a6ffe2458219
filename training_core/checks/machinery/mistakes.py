"""Which mistake of a training loop explains the weights it got to."""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor, nn

from training_core.checks.machinery.plain_loop import NONE, Mistake, plain_training
from training_core.checks.machinery.small_runs import (
    WithoutAugmentation,
    chance_by_call,
    state_of,
)
from training_core.checks.subject import Subject
from training_core.examples import Examples
from training_core.settings import TrainingSettings

_LEFT = 0.1  # of the distance: the mistake explains the rest


def likeliest(
    subject: Subject,
    training: TrainingSettings,
    examples: Examples,
    *,
    found: Mapping[str, Tensor],
    before: Mapping[str, Tensor],
    steps: int,
) -> str:
    """Make each mistake in plain code; say which one leads to where the trainer got, if one does.

    Args:
        subject: Builds the network.
        training, examples, steps: Of the trainer's run.
        found: State after it.
        before: State before it.

    Returns:
        ", as if …", or nothing.
    """

    def distance(mistake: Mistake) -> float:
        model = _set(subject.build(), before)
        chance_by_call(model)
        task = WithoutAugmentation(subject.task)
        try:
            plain_training(task, model, examples, training, steps=steps, mistake=mistake)
        except RuntimeError:  # such as a network that has no gradient in eval mode
            return math.inf
        squares = [
            float((found[name] - value).double().square().sum())
            for name, value in state_of(model).items()
        ]
        left = math.sqrt(sum(squares))
        return left if math.isfinite(left) else math.inf

    whole = distance(NONE)
    left = {said: distance(mistake) for said, mistake in _mistakes(training).items()}
    said = min(left, key=left.__getitem__)
    return f", as if {said}" if left[said] < _LEFT * whole else ""


def _mistakes(training: TrainingSettings) -> dict[str, Mistake]:
    """Return the mistakes that these settings leave room for, in words."""
    made = {
        "gradients were not zeroed": Mistake(zeroes=False),
        "gradients were scaled twice (by 2)": Mistake(factor=2.0),
        "gradients were halved": Mistake(factor=0.5),
        "gradients were scaled twice (divided by the batch again)": Mistake(
            factor=1 / training.batch_size
        ),
        "losses were summed and not divided by the batch": Mistake(
            factor=float(training.batch_size)
        ),
        "gradients had the wrong sign": Mistake(factor=-1.0),
        "the rate was that of the step before": Mistake(later=-1),
        "the rate was that of the step after": Mistake(later=1),
        "the rate stayed at its peak, without its schedule": Mistake(rate="peak"),
        "rows came in another order: that of the table": Mistake(order="rows"),
        "rows came in another order: the first epoch's again": Mistake(order="first"),
        "the model was in eval mode": Mistake(evaluating="always"),
        "the model stayed in eval mode after an evaluation": Mistake(evaluating="after evaluation"),
        "the optimiser forgot its state at each step": Mistake(remembers=False),
    }
    if training.accumulation > 1:
        parts = float(training.accumulation)
        del made["gradients were scaled twice (by 2)"]  # the same figure
        made |= {
            "accumulation were not divided by its microbatches": Mistake(factor=parts),
            "accumulation were divided twice": Mistake(factor=1 / parts),
            "only the last microbatch counted": Mistake(only_last=True),
        }
    if training.optimiser.weight_decay:
        made["weight decay were on everything"] = Mistake(decays="everything")
        made["there were no weight decay"] = Mistake(decays="nothing")
    if training.optimiser.clip_norm:
        made["there were no clipping"] = Mistake(clips="nothing")
        made["the loss were clipped instead of the gradient"] = Mistake(clips="losses")
        made["gradients were clipped value by value"] = Mistake(clips="values")
    return made


def _set(model: nn.Module, state: Mapping[str, Tensor]) -> nn.Module:
    """Give a model the parameters and buffers of a state."""
    named = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    for name, value in named.items():
        value.data.copy_(state[name])
    return model
