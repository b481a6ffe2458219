"""Mistakes in steps, schedule, evaluation and order are found, and by their right name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest import mock

import pytest
import torch
from check_machinery_samples import Both, Letters, Pictures, Price, Yes, failure, found, subject_of
from torch import Tensor, nn

from training_core import evaluation, loop, preparation
from training_core.backward import Shares
from training_core.checks.machinery.evaluation_equals_plain_code import EvaluationEqualsPlainCode
from training_core.checks.machinery.samples_in_order import SamplesInOrder
from training_core.checks.machinery.schedule_as_planned import ScheduleAsPlanned
from training_core.checks.machinery.steps_equal_plain_code import StepsEqualPlainCode
from training_core.examples import Examples
from training_core.feeds import memory
from training_core.optim import flat, optimisers
from training_core.optim.clipping import Clipping
from training_core.optim.schedules import make_schedule
from training_core.optim.update import Update
from training_core.task import Task

SGD = {"optimiser": {"name": "sgd", "lr": 0.1}}
Planted = AbstractContextManager[Any]


# ---- steps -----------------------------------------------------------------------------------


def _scaled(factor: float) -> Planted:
    plain = Shares.of
    return mock.patch.object(Shares, "of", lambda *args: plain(*args) * factor)


def _decays_all(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    return [p for p in model.parameters() if p.requires_grad], []


def _late(self: Update, rate: Any, *, plain: Any = Update.set_rate) -> None:
    plain(self, getattr(self, "last", rate))
    self.last = rate  # type: ignore[attr-defined]


STEPS: list[tuple[str, Callable[[], Planted], str]] = [
    ("not zeroed", lambda: mock.patch.object(Update, "_zero"),
     "as if gradients were not zeroed"),
    ("scaled", lambda: _scaled(3.0), "with sgd and 2 microbatches a step"),
    ("twice", lambda: _scaled(2.0), "as if accumulation were not divided"),
    ("decay", lambda: mock.patch.object(flat, "by_decay", _decays_all), "plain code"),
    ("clipping", lambda: mock.patch.object(Clipping, "divisor_of", return_value=1.0),
     "as if there were no clipping"),
    ("late", lambda: mock.patch.object(Update, "set_rate", _late),
     "as if the rate was that of the step before"),
    ("order", lambda: mock.patch.object(
        memory, "permutation", lambda *, seed, epoch, count: torch.arange(count)),
     "as if rows came in another order: that of the table"),
    ("nothing", lambda: mock.patch.object(Update, "step", lambda self, measure: self._zero()),
     "no weight moved at all"),
]  # fmt: skip


@pytest.mark.parametrize(("planted", "words"), [case[1:] for case in STEPS])
def test_a_trainer_that_steps_otherwise_than_plain_code_is_found(
    planted: Callable[[], Planted], words: str
) -> None:
    assert words in failure(StepsEqualPlainCode(), Yes(), planted())


def test_decay_of_everything_is_named() -> None:
    patches = mock.patch.object(optimisers, "by_decay", lambda model: _decays_all(model))
    with mock.patch.object(flat, "by_decay", _decays_all):
        assert "as if weight decay were on everything" in failure(
            StepsEqualPlainCode(), Yes(), patches
        )


def test_a_loss_that_is_reported_wrong_is_found() -> None:
    plain = loop.Interval.mean
    planted = mock.patch.object(loop.Interval, "mean", lambda *args: 2 * plain(*args))
    assert "reports a loss of" in failure(StepsEqualPlainCode(), Letters(), planted)


# ---- schedule --------------------------------------------------------------------------------


def _schedule(factor: int) -> Planted:
    def longer(settings: Any, optimiser: Any, *, steps: int) -> Any:
        return make_schedule(settings, optimiser, steps=steps * factor)

    return mock.patch.object(preparation, "make_schedule", longer)


def test_a_schedule_of_another_number_of_steps_is_found_with_that_number() -> None:
    assert "the schedule of a run of 640 steps" in failure(
        ScheduleAsPlanned(), Yes(), _schedule(10)
    )


def test_a_trainer_of_another_number_of_steps_is_found() -> None:
    planted = mock.patch.object(loop, "total_steps", return_value=480)
    assert "the trainer would take 480 steps" in failure(ScheduleAsPlanned(), Yes(), planted)


@pytest.mark.parametrize(("warmup", "verdict"), [(0.4, "pass"), (0.7, "warn"), (0.95, "fail")])
def test_a_warm_up_is_judged_by_what_it_leaves_of_the_run(warmup: float, verdict: str) -> None:
    assert found(ScheduleAsPlanned(), Yes(), schedule={"warmup": warmup}).verdict == verdict


def test_a_run_of_a_few_steps_is_warned_of() -> None:
    assert found(ScheduleAsPlanned(), Yes(), epochs=1).verdict == "warn"


# ---- evaluation ------------------------------------------------------------------------------


def _in_train_mode(*args: Any, plain: Any = evaluation.evaluate, **more: Any) -> dict[str, float]:
    with mock.patch.object(nn.Module, "eval", lambda self: self.train()):
        values: dict[str, float] = plain(*args, **more)
        return values


def _not_restored(task: Any, model: nn.Module, *args: Any, **more: Any) -> dict[str, float]:
    values = evaluation.evaluate(task, model, *args, **more)
    model.eval()
    return values


def _half(task: Any, model: nn.Module, examples: Examples, **more: Any) -> dict[str, float]:
    return evaluation.evaluate(task, model, examples.take(slice(0, len(examples) // 2)), **more)


@pytest.mark.parametrize(
    ("module", "broken", "words"),
    [
        (evaluation, _in_train_mode, "on the held-back rows"),
        (loop, _in_train_mode, "in the trainer's evaluation"),
        (loop, _not_restored, "is in eval mode afterwards"),
        (loop, _half, "plain code gets"),
    ],
)
def test_an_evaluation_that_is_not_that_of_plain_code_is_found(
    module: Any, broken: Any, words: str
) -> None:
    planted = mock.patch.object(module, "evaluate", broken)
    assert words in failure(EvaluationEqualsPlainCode(), Pictures(), planted)


class _OfTheBatch(Both):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs, target).mean().expand(len(target))


class _Broadcast(Price):
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs[:, None], target)


@pytest.mark.parametrize(
    ("task", "words"),
    [(_OfTheBatch(), "depends on which others"), (_Broadcast(), "loss has shape [7, 7]")],
)
def test_a_loss_that_is_not_of_each_example_is_found(task: Task, words: str) -> None:
    assert words in failure(EvaluationEqualsPlainCode(), task, nullcontext())


# ---- order -----------------------------------------------------------------------------------


def _permuted(change: Callable[[Tensor, int], Tensor]) -> Planted:
    plain = memory.permutation

    def other(*, seed: int, epoch: int, count: int) -> Tensor:
        return change(plain(seed=seed, epoch=epoch, count=count), epoch)

    return mock.patch.object(memory, "permutation", other)


def _same_epoch() -> Planted:
    plain = memory.permutation
    return mock.patch.object(
        memory, "permutation", lambda *, seed, epoch, count: plain(seed=0, epoch=0, count=count)
    )


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        (lambda: _permuted(lambda rows, epoch: rows.sort().values), "the order is not random"),
        (_same_epoch, "the epoch does not reach it"),
        (lambda: _permuted(lambda rows, epoch: rows // 2 * 2), "never and"),
        (lambda: _permuted(lambda rows, epoch: torch.cat([r[torch.randperm(len(r))] for r in
                           rows.sort().values.split(32)])), "follows its row"),
    ],
)  # fmt: skip
def test_samples_out_of_order_are_found(planted: Callable[[], Planted], words: str) -> None:
    assert words in failure(SamplesInOrder(), Yes(), planted())


def test_batches_that_hold_one_label_are_found() -> None:
    target = subject_of(Yes()).examples.target

    def by_label(drawn: Tensor, epoch: int) -> Tensor:
        return drawn[target[drawn.long()].argsort(stable=True)]

    assert "differ in their labels" in failure(SamplesInOrder(), Yes(), _permuted(by_label))
