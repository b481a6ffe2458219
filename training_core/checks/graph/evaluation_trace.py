"""What an evaluation leaves behind."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from training_core import evaluation, loop
from training_core.checks.chance import state_of
from training_core.checks.graph.calling import listed, outputs_of
from training_core.checks.short_training import mean_loss
from training_core.checks.subject import Subject
from training_core.determinism import seed_everything
from training_core.examples import Examples


def edited_arrays(model: nn.Module, batch: Examples) -> list[str]:
    """Return the names of the arrays that a forward pass writes to, in the mode the model is in."""
    given = batch.clone()
    with torch.no_grad():
        model(**given.arrays)
    return _different(given.arrays, batch.arrays)


def traces_of_evaluation(subject: Subject, batch: Examples) -> tuple[list[str], list[str]]:
    """Evaluate in all ways that the trainer and the checks do, and compare with before.

    Returns what is not as it was, and what is doubtful.
    """
    wrong: dict[str, None] = {}
    doubtful: dict[str, None] = {}
    for how, evaluates in _ways(subject).items():
        model = subject.build()
        model.train()
        outputs_of(model, batch)  # statistics that start with the first batch
        _give_gradients(subject, model, batch)
        before, given = _Whole(model), batch.clone()
        seed_everything(0)
        chance = _chance()
        with _modes_seen(model) as in_train_mode:
            evaluates(model, given)
        if in_train_mode:
            wrong[f"{how} calls in train mode: {listed(in_train_mode)}"] = None
        edited = _different(given.arrays, batch.arrays)
        if not torch.equal(given.target, batch.target):
            edited.append("target")
        if edited:
            wrong[f"{how} changes examples in place: {listed(edited)}"] = None
        wrong |= dict.fromkeys(f"{how} changes {what}" for what in before.compared(_Whole(model)))
        if chance != _chance():
            doubtful[f"({how}) draws random numbers"] = None
    return list(wrong), list(doubtful)


def _ways(subject: Subject) -> dict[str, Callable[[nn.Module, Examples], Any]]:
    # by attribute, so that what the trainer calls is what is looked at
    task = subject.task
    ways: dict[str, Callable[[nn.Module, Examples], Any]] = {
        "evaluate": lambda model, rows: evaluation.evaluate(task, model, rows),
        "outputs_of": lambda model, rows: evaluation.outputs_of(model, rows, device=subject.device),
    }
    trainers: Any = vars(loop)["evaluate"]
    if trainers is not evaluation.evaluate:
        ways["the trainer's evaluate"] = lambda model, rows: trainers(task, model, rows)
    return ways


class _Whole:
    """A model's weights, buffers, gradients, modes and what is trained of it."""

    def __init__(self, model: nn.Module) -> None:
        self.state = state_of(model)
        parameters = dict(model.named_parameters())
        self.gradients = {
            n: None if p.grad is None else p.grad.clone() for n, p in parameters.items()
        }
        self.trained = {name: p.requires_grad for name, p in parameters.items()}
        self.modes = {name: module.training for name, module in model.named_modules()}

    def compared(self, after: _Whole) -> Iterator[str]:
        """Yield what is different afterwards."""
        if changed := _different(after.state, self.state):
            yield f"weights or buffers: {listed(changed)}"
        gradients = [n for n, g in self.gradients.items() if not _equal(g, after.gradients[n])]
        if gradients:
            yield f"gradients: {listed(gradients)}"
        if changed := [n for n, trained in self.trained.items() if after.trained[n] != trained]:
            yield f"requires_grad: {listed(changed)}"
        if changed := [name for name, mode in self.modes.items() if after.modes[name] != mode]:
            yield f"the mode: {listed([name or 'the model' for name in changed])}"


def _give_gradients(subject: Subject, model: nn.Module, batch: Examples) -> None:
    given = batch.clone()
    loss = mean_loss(subject.task, model(**given.arrays), given)
    if loss.requires_grad:
        loss.backward()  # type: ignore[no-untyped-call]


@contextmanager
def _modes_seen(model: nn.Module) -> Iterator[list[str]]:
    """Note which modules are called in train mode, but for those that always are."""
    always = _always_in_train_mode(model)
    seen: list[str] = []

    def note(name: str, module: nn.Module) -> None:
        if module.training and name not in always and (name or "the model") not in seen:
            seen.append(name or "the model")

    hooks = [
        module.register_forward_pre_hook(lambda module, _, name=name: note(name, module))
        for name, module in model.named_modules()
    ]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _always_in_train_mode(model: nn.Module) -> set[str]:
    """Return the modules that stay in train mode after eval(), and put all modes back."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    stay = {name for name, module in model.named_modules() if module.training}
    for module, mode in modes:
        module.training = mode
    return stay


def _chance() -> tuple[Any, ...]:
    numpy: Any = np.random.get_state(legacy=False)
    return (
        random.getstate(),
        numpy["state"]["key"].tolist(),
        numpy["state"]["pos"],
        torch.get_rng_state().tolist(),
    )


def _different(after: dict[str, Tensor], before: dict[str, Tensor]) -> list[str]:
    return [name for name, tensor in before.items() if not _equal(tensor, after[name])]


def _equal(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    same = one.shape == other.shape
    return same and bool(((one == other) | ((one != one) & (other != other))).all())
