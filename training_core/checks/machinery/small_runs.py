"""Short runs of the real trainer, and models that can be compared after them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from training_core import loop
from training_core.averaging.settings import AveragingSettings
from training_core.checks.machinery.noting import ROW
from training_core.checks.subject import Subject
from training_core.determinism import seed_everything
from training_core.evaluation import Objective
from training_core.examples import Examples
from training_core.feeds.batches import Feed
from training_core.feeds.sampling_settings import SamplingSettings
from training_core.parallel.settings import ParallelSettings
from training_core.parallel.single import SingleProcess
from training_core.regularisation.settings import RegularisationSettings
from training_core.settings import TrainingSettings
from training_core.stopping.settings import RecoverySettings, StoppingSettings


class WithoutAugmentation:
    """A task without its augmentation: what trainer and evaluation need of it."""

    def __init__(self, task: Objective) -> None:
        self.loss: Callable[[Tensor, Tensor], Tensor] = task.loss
        self.metrics: Callable[[Tensor, Tensor], dict[str, Tensor]] = task.metrics


def short(training: TrainingSettings, *, steps: int, **changes: Any) -> TrainingSettings:
    """Return the settings of a run of `steps` steps on one CPU process in fp32.

    Optimiser, schedule, seed and determinism stay as planned; rules that could end the run or
    turn it back are off, and so is what makes another loss of the task's, or of its weights.
    """
    settings = {
        "epochs": float(steps),
        "accumulation": 1,
        "processes": 1,
        "nodes": 1,
        "threads": 0,
        "device": "cpu",
        "precision": "fp32",
        "deterministic": "off" if training.deterministic == "off" else "ranks",
        "compile": False,
        "activation_checkpointing": False,
        "channels_last": False,
        "evaluate_every": steps,
        "evaluation_rows": 0,
        "log_every": 1,
        "max_skipped": 1_000_000,
        "parallel": ParallelSettings(),
        "stopping": StoppingSettings(max_steps=steps),
        "recovery": RecoverySettings(attempts=0, spike=0),
        "sampling": SamplingSettings(),
        "regularisation": RegularisationSettings(),
        "averaging": AveragingSettings(),
    }
    return training.model_copy(update={**settings, **changes})


def trainer(
    task: Objective,
    model: nn.Module,
    train: Examples | Feed,
    *,
    settings: TrainingSettings,
    validation: Examples | None = None,
    **more: Any,
) -> loop.Trainer:
    """Return the real trainer, looked up when this is called, on one process of the CPU."""
    more = {"strategy": SingleProcess(torch.device("cpu")), **more}
    if validation is None:
        assert isinstance(train, Examples)
        validation = train.take(slice(0, 8))
    return loop.Trainer(
        task=task,
        model=model,
        train=train,
        validation=validation,
        settings=settings,
        **more,
    )


def twins(subject: Subject, count: int) -> list[nn.Module]:
    """Return models that share nothing and are equal, even where building one is not repeatable."""
    first, *others = models = [subject.build() for _ in range(count)]
    for other in others:
        other.load_state_dict(first.state_dict())
    return models


def trained_copy(subject: Subject) -> nn.Module:
    """Return a copy of the network after its short training."""
    model = subject.trained.model
    try:
        return copy.deepcopy(model)
    except RuntimeError:  # a tensor computed from others lies in it, as weight_norm has it
        other = subject.build()
        other.load_state_dict(model.state_dict())
        return other.train(model.training)


def chance_by_call(model: nn.Module) -> None:
    """Seed all generators before each call in train mode with its number.

    So two loops draw the same, whatever else they draw between calls.
    """
    calls = iter(range(1_000_000))

    def seed(module: nn.Module, inputs: Any) -> None:
        if module.training:
            seed_everything(next(calls))

    model.register_forward_pre_hook(seed)


def weight_norm(model: nn.Module) -> float:
    """Return the 2-norm of all weights; 1 where it is 0."""
    return _norm(model.parameters()) or 1.0


def gradient_norm(subject: Subject, model: nn.Module, batch: Examples) -> float:
    """Return that of the gradient of a batch's mean loss; 1 where it is 0 or not finite.

    The model's gradients are none afterwards; its statistics have seen the batch.
    """
    subject.loss(model.train()(**_own(batch).arrays).float(), batch).backward()  # type: ignore[no-untyped-call]
    found = _norm(p.grad for p in model.parameters() if p.grad is not None)
    model.zero_grad()
    return found if 0 < found < math.inf else 1.0


def _norm(tensors: Iterable[Tensor]) -> float:
    return math.sqrt(sum(float(each.detach().double().square().sum()) for each in tensors))


def _own(batch: Examples) -> Examples:
    """Return examples with the task's own arrays only."""
    arrays = {name: array for name, array in batch.arrays.items() if name != ROW}
    return Examples(arrays, batch.target, batch.units)


def state_of(model: nn.Module) -> dict[str, Tensor]:
    """Return copies of all parameters and buffers by name; tied ones under each of their names."""
    named = [
        *model.named_parameters(remove_duplicate=False),
        *model.named_buffers(remove_duplicate=False),
    ]
    return {name: value.detach().clone() for name, value in named}


def ties_of(model: nn.Module) -> list[list[str]]:
    """Return the names of parameters that are the same memory, group by group."""
    groups: dict[tuple[int, int], list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if parameter.numel():
            groups.setdefault((parameter.data_ptr(), parameter.numel()), []).append(name)
    return [names for names in groups.values() if len(names) > 1]
