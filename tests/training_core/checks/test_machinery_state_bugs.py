"""Mistakes in package, checkpoint and ranks are found by their check, and by their right name."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest import mock

import pandas as pd
import pytest
import torch
from check_machinery_samples import Both, Letters, Network, Tied, Yes, failure, found
from torch import Tensor, nn

from training_core import loop, package
from training_core.backward import Shares
from training_core.checks.machinery.checkpoint_equals_itself import CheckpointEqualsItself
from training_core.checks.machinery.package_equals_model import PackageEqualsModel
from training_core.checks.machinery.ranks_agree import RanksAgree
from training_core.feeds.batches import Sharing
from training_core.loop import Trainer
from training_core.state import State
from training_core.tabular import TabularPreprocessor
from training_core.task import Arrays, Preprocessor, Task

SGD = {"optimiser": {"name": "sgd", "lr": 0.1}}
Planted = AbstractContextManager[Any]


# ---- package ---------------------------------------------------------------------------------


def test_dropout_left_on_in_the_exported_network_is_found() -> None:
    plain = torch.export.export

    def in_train_mode(module: nn.Module, *args: Any, **more: Any) -> Any:
        return plain(module.train(), *args, **more)

    with mock.patch.object(package.np, "allclose", return_value=True):
        planted = mock.patch.object(torch.export, "export", in_train_mode)
        assert "the same rows differently each time" in failure(
            PackageEqualsModel(), Yes(), planted
        )


class _Branches(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        outputs: Tensor = self.inner(categories, numbers)
        return outputs if bool(numbers.sum() > 0) else -outputs


class _ByBatch(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        arrays = super().transform(frame)
        arrays["numbers"] = arrays["numbers"] - arrays["numbers"].mean(0)
        return arrays


class _Forgets(TabularPreprocessor):
    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        return {**state, "means": [0.5 for _ in state["means"]]}


def _changed(kind: type[Task], **methods: Any) -> Task:
    return type("Changed", (kind,), methods)()


@pytest.mark.smoke  # exports a network for each
@pytest.mark.parametrize(
    ("task", "words"),
    [
        (_changed(Yes, build_model=lambda self, p: _Branches(Network(p))), "cannot be exported"),
        (_changed(Yes, preprocessor=lambda self: _ByBatch(categories=["kind"], numbers=["x"])),
         "otherwise than the network does"),
        (_changed(Yes, preprocessor=lambda self: _Forgets(categories=["kind"], numbers=["x"])),
         "rebuilt from its state as JSON"),
        (_changed(Yes, predict=lambda self, outputs: outputs), "which a binary task has not"),
        (_changed(Both, preprocessor=lambda self: TabularPreprocessor(
            categories=["kind"], numbers=["x", "other"])), "cannot predict rows without label"),
    ],
)  # fmt: skip
def test_a_package_that_is_not_the_model_is_found(task: Task, words: str) -> None:
    assert words in failure(PackageEqualsModel(), task, nullcontext())


# ---- checkpoint ------------------------------------------------------------------------------


class _Outside(Network):
    """Scales its inputs by what is neither parameter nor buffer."""

    def __init__(self, preprocessor: Preprocessor) -> None:
        super().__init__(preprocessor)
        self.scale = torch.rand(2) + 0.5

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        return super().forward(categories, numbers * self.scale)


class _Untying(Tied):
    """Loads a matrix of its own for each name."""

    def load_state_dict(self, state: Any, strict: bool = True, assign: bool = False) -> Any:
        self.head.weight = nn.Parameter(torch.zeros(6, 8))
        return super().load_state_dict(state, strict, assign)


def test_state_outside_of_the_state_dict_is_named() -> None:
    task = _changed(Yes, build_model=lambda self, p: _Outside(p))
    planted = nullcontext()
    assert "scale is not in state_dict" in failure(CheckpointEqualsItself(), task, planted)


def test_weights_that_are_untied_by_loading_are_named() -> None:
    task = _changed(Letters, build_model=lambda self, p: _Untying())
    planted = nullcontext()
    assert "letters.weight and head.weight are one tensor" in failure(
        CheckpointEqualsItself(), task, planted
    )


def _forgetting(name: str) -> Planted:
    plain = State._load

    def load(self: State, restored: Any) -> None:
        holder = {"scaler": self.trainer.precision.scaler, "optimiser": self.trainer.update}[name]
        if name == "scaler":
            with mock.patch.object(holder, "load_state_dict"):
                plain(self, restored)
        else:
            plain(self, restored)
            for optimiser in self.trainer.update.optimisers:
                for values in optimiser.state.values():
                    values["exp_avg"].zero_()

    return mock.patch.object(State, "_load", load)


@pytest.mark.parametrize(
    ("name", "words"), [("scaler", "the loss scaler of fp16"), ("optimiser", "exp_avg of")]
)
def test_state_that_is_not_restored_is_named(name: str, words: str) -> None:
    assert words in failure(CheckpointEqualsItself(), Yes(), _forgetting(name))


def test_random_states_that_are_not_restored_are_found() -> None:
    planted = mock.patch.object(State, "_restore_own")
    assert "is not the undisturbed one" in failure(CheckpointEqualsItself(), Yes(), planted)


# ---- ranks -----------------------------------------------------------------------------------


def _all_ranks_first(**more: Any) -> Any:
    return Sharing(more["batch_size"], 2, range(1), more["seed"])


def _for_ranks(factor: float) -> Planted:
    plain = Shares.of

    def shares(self: Shares, *args: Any) -> Tensor:
        several = self._factor != 1.0
        return plain(self, *args) * (factor if several else 1.0)

    return mock.patch.object(Shares, "of", shares)


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        (lambda: mock.patch.object(Sharing, "of", _all_ranks_first), "the same samples"),
        (lambda: _for_ranks(0.5), "elsewhere than one process"),
        (lambda: mock.patch.object(
            loop.torch.nn.parallel.DistributedDataParallel, "forward",
            lambda self, **arrays: self.module(**arrays)), "the ranks differ in"),
    ],
)  # fmt: skip
def test_ranks_that_do_not_agree_are_found(planted: Callable[[], Planted], words: str) -> None:
    assert words in failure(RanksAgree(), Yes(), planted())


def test_processes_that_never_end_are_killed_and_the_check_skipped() -> None:
    planted = mock.patch("training_core.checks.machinery.ranks_agree._SECONDS", 1.0)
    hang = mock.patch.object(Trainer, "fit", _sleep)
    with planted, hang:
        finding = found(RanksAgree(), Yes())
    assert finding.verdict == "skipped"
    assert "were not done after 1 seconds" in finding.message


def _sleep(*args: Any) -> None:
    time.sleep(60)
