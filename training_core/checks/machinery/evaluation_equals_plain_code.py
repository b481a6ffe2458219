"""Evaluation against a plain recomputation, by itself and between the steps of a training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from training_core import evaluation, loop
from training_core.checks.contract import Check, Finding
from training_core.checks.machinery.small_runs import (
    short,
    state_of,
    trained_copy,
    trainer,
)
from training_core.checks.subject import Subject
from training_core.determinism import seed_everything
from training_core.evaluation import Objective
from training_core.examples import Examples

_ROWS = 2_048  # of the held-back ones
_SIZE = 97  # rows at once; evaluation itself uses others
_TOLERANCE = 1e-4  # of a metric's mean size; sums in another order differ by some 1e-7
_STEPS = 4


@dataclass(frozen=True)
class _Mean:
    """A metric's mean over all examples.

    Attributes:
        value: Over units.
        limit: How far another computation of it may be.
        values: Of each example, float64 [N].
    """

    value: float
    limit: float
    values: Tensor


class EvaluationEqualsPlainCode(Check):
    """Looks at the values, and at what evaluation leaves behind in the model."""

    name = "evaluation_equals_plain_code"
    looks_at = "evaluation gives the plain means in eval mode, and leaves no trace in the model"
    costs = "training"

    def look(self, subject: Subject) -> Finding:
        task, examples = subject.task, subject.held_back.take(slice(0, _ROWS))
        model = trained_copy(subject).train()
        misshapen = _misshapen(task, model, examples)
        if misshapen:
            return self.failed(misshapen, advice="return one value for each example: float [N]")
        again = plain_means(task, model, examples, rows=_SIZE, seed=1)
        expected = plain_means(task, model, examples, rows=_SIZE)
        few = max(1, min(32, len(examples) // 3))
        random = _apart({name: mean.value for name, mean in again.items()}, expected)
        if random:
            return self.failed(
                f"in eval mode the same rows give other values each time: {random} with another "
                "seed",
                advice="draw nothing at random in eval mode: give F.dropout training=self.training",
            )
        apart = _mixed(expected, plain_means(task, model, examples, rows=few))
        if apart:
            return self.failed(
                f"an example's value depends on which others are in its batch: {apart}, in "
                f"batches of {_SIZE} and of {few} rows",
                advice="let network, loss and metrics treat each example of a batch by itself in "
                "eval mode",
            )
        before, modes = state_of(model), _modes(model)
        found = evaluation.evaluate(task, model, examples)
        left = _left_behind(model, before, modes)
        wrong = _apart(found, expected)
        if left or wrong:
            return self._wrong(left, wrong, "on the held-back rows")
        return self._between_steps(subject, examples) or self.passed(
            f"{len(found)} means over {len(examples)} held-back rows are those of plain code, by "
            f"themselves and between training steps; loss {found['loss']:.4g}",
            measured=found["loss"],
        )

    def _wrong(self, left: str, wrong: str, where: str) -> Finding:
        return self.failed(
            f"{where} {' and '.join(each for each in (wrong, left) if each)}",
            advice="call model.eval() before evaluation and model.train() after it, evaluate "
            "without augmentation, and divide by the units of all examples",
        )

    def _between_steps(self, subject: Subject, examples: Examples) -> Finding | None:
        """Train a few steps, and look on while the trainer evaluates."""
        onlooker = _Onlooker(subject.task, examples)
        rows = min(32, len(subject.examples))
        run: loop.Trainer = trainer(
            subject.task,
            subject.build(),
            subject.batch(rows),
            validation=examples,
            settings=short(
                subject.training, steps=_STEPS, batch_size=rows, evaluate_every=_STEPS // 2
            ),
            should_stop=lambda: onlooker.after_step(run.module),
            on_evaluation=lambda step, metrics: onlooker.evaluated(run.module, step, metrics),
        )
        onlooker.modes = _modes(run.module.train())
        run.fit()
        if onlooker.left or onlooker.wrong:
            return self._wrong(onlooker.left, onlooker.wrong, "in the trainer's evaluation")
        return None


class _Onlooker:
    """Looks at the model after each step and after each evaluation.

    Attributes:
        modes: Which modules are to be in train mode.
        left: What an evaluation has left behind; empty: nothing.
        wrong: Which metric is not what plain code gets; empty: none.
    """

    def __init__(self, task: Objective, examples: Examples) -> None:
        self.task, self.examples = task, examples
        self.modes: dict[str, bool] = {}
        self.left = self.wrong = ""
        self._before: dict[str, Tensor] = {}

    def after_step(self, model: nn.Module) -> bool:
        """Remember the state; never asks to stop."""
        self.left = self.left or _left_behind(model, {}, self.modes)
        self._before = state_of(model)
        return False

    def evaluated(self, model: nn.Module, step: int, metrics: dict[str, float]) -> None:
        """Compare with plain code."""
        self.left = self.left or _left_behind(model, self._before, self.modes)
        expected = plain_means(self.task, model, self.examples, rows=_SIZE)
        self.wrong = self.wrong or _apart(metrics, expected)


@torch.no_grad()
def plain_means(
    task: Objective, model: nn.Module, examples: Examples, *, rows: int, seed: int = 0
) -> dict[str, _Mean]:
    """Return the mean of loss and metrics a unit, by name, computed `rows` examples at a time."""
    was = _modes(model)
    model.eval()
    seed_everything(seed)
    pieces: dict[str, list[Tensor]] = {}
    for first in range(0, len(examples), rows):
        part = examples.take(slice(first, first + rows))
        outputs = model(**part.arrays).float()
        values = {"loss": task.loss(outputs, part.target), **task.metrics(outputs, part.target)}
        for name, value in values.items():
            pieces.setdefault(name, []).append(value.double())
    for name, module in model.named_modules():
        module.training = was[name]
    units = len(examples) if examples.units is None else float(examples.units.double().sum())
    return {name: _mean(torch.cat(values), units) for name, values in pieces.items()}


@torch.no_grad()
def _misshapen(task: Objective, model: nn.Module, examples: Examples) -> str:
    """Say what has not one value for each example; empty: all have."""
    part, was = examples.take(slice(0, 7)), _modes(model)  # no usual number of labels or classes
    outputs = model.eval()(**part.arrays).float()
    for name, module in model.named_modules():
        module.training = was[name]
    values = {"loss": task.loss(outputs, part.target), **task.metrics(outputs, part.target)}
    for name, value in values.items():
        if value.shape != (len(part),):
            return f"{name} has shape {list(value.shape)} for {len(part)} examples"
    return ""


def _mean(values: Tensor, units: float) -> _Mean:
    limit = _TOLERANCE * float(values.abs().sum()) / units + 1e-9
    levels = torch.unique(values)
    if 1 < len(levels) <= max(3, len(values) // 4):  # right or wrong: rounding may turn one over
        limit += float(levels.diff().max()) * 1.5 / units
    return _Mean(float(values.sum()) / units, limit, values)


def _mixed(one: Mapping[str, _Mean], other: Mapping[str, _Mean]) -> str:
    """Say which value of an example is another one in other company; empty: none.

    A few may be: rounding turns a right answer into a wrong one where two classes are equal.
    """
    for name, mean in one.items():
        far = (mean.values - other[name].values).abs() > 10 * _TOLERANCE * mean.values.abs().mean()
        if int(far.sum()) > max(2, len(far) // 100):
            return f"{name} differs for {int(far.sum())} of {len(far)} examples"
    return ""


def _apart(found: Mapping[str, float], expected: Mapping[str, _Mean]) -> str:
    """Say which metric differs; empty: none."""
    for name, mean in expected.items():
        if name not in found:
            return f"{name} is missing"
        both_nan = found[name] != found[name] and mean.value != mean.value
        if not both_nan and not abs(found[name] - mean.value) <= mean.limit:
            return f"{name} is {found[name]:.6g}, and plain code gets {mean.value:.6g}"
    return ""


def _left_behind(model: nn.Module, before: Mapping[str, Tensor], modes: Mapping[str, bool]) -> str:
    """Say what has changed in a model; empty: nothing."""
    now = _modes(model)
    changed = [name for name, training in modes.items() if now.get(name) is not training]
    if changed:
        name = changed[0] or "the model"
        return f"{name} is in {'train' if now[changed[0]] else 'eval'} mode afterwards"
    state = state_of(model) if before else {}
    others = [
        name for name, value in before.items()
        if not torch.equal(value.nan_to_num(), state[name].nan_to_num())
    ]  # fmt: skip
    return f"{others[0]} has changed meanwhile" if others else ""


def _modes(model: nn.Module) -> dict[str, bool]:
    return {name: module.training for name, module in model.named_modules()}
