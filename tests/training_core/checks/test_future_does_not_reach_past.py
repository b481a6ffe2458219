from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from check_graph_samples import (
    LENGTH,
    VOCABULARY,
    WIDTH,
    Language,
    Sales,
    Sentences,
    Table,
    find,
    sentences,
    table,
)
from torch import Tensor, nn

from training_core.checks.graph import FutureDoesNotReachPast
from training_core.task import PADDING


class Unmasked(Language):
    causal = False


class Convolution(nn.Module):
    """Sees `left` positions to the left."""

    left, right = 2, 0

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.convolution = nn.Conv1d(WIDTH, WIDTH, 3)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = nn.functional.pad(self.tokens(tokens).transpose(1, 2), (self.left, self.right))
        return self.head(self.convolution(hidden).relu().transpose(1, 2))


class Centred(Convolution):
    left, right = 1, 1


class ShiftedInside(Language):
    """A decoder that shifts its inputs itself: target and input are the same."""

    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens.roll(1, 1) * (torch.arange(tokens.shape[1]) > 0))


@pytest.mark.parametrize(
    ("build", "lead", "said"),
    [
        (Unmasked, 1, "depends on"),
        (Centred, 1, "depends on"),
        (Language, 0, "tokens[t+0]"),
        (Language, 2, "skipped"),
        (ShiftedInside, 1, "skipped"),
    ],
    ids=["no mask", "centred convolution", "copy", "skips a token", "shifted twice"],
)
def test_an_answer_that_is_seen_or_skipped_fails(build: Any, lead: int, said: str) -> None:
    finding = find(FutureDoesNotReachPast, Sentences(build, lead=lead), sentences())
    assert finding.verdict == "fail", finding.message
    assert said in finding.message
    assert finding.heat is not None


@pytest.mark.parametrize(("build", "lead"), [(Language, 1), (Convolution, 1), (ShiftedInside, 0)])
def test_a_network_that_sees_all_but_its_answer_passes(build: Any, lead: int) -> None:
    finding = find(FutureDoesNotReachPast, Sentences(build, lead=lead), sentences())
    assert finding.verdict == "pass", finding.message


class ShiftedInTheLoss(Sentences):
    """Target and input are the same; the loss cuts the last output and the first target."""

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return super().loss(outputs[:, :-1], target[:, 1:].contiguous())


@pytest.mark.parametrize(("lead", "verdict"), [(0, "pass"), (1, "fail")])
def test_a_shift_in_the_loss_is_seen_in_its_gradient(lead: int, verdict: str) -> None:
    finding = find(FutureDoesNotReachPast, ShiftedInTheLoss(Language, lead=lead), sentences())
    assert finding.verdict == verdict, finding.message


class Padded(Sentences):
    """Sentences of many lengths; indices of inputs are one above those of targets."""

    def preprocessor(self) -> Any:
        inner = super().preprocessor()
        plain = inner.transform

        def transform(frame: pd.DataFrame) -> dict[str, Any]:
            tokens = plain(frame)["tokens"] + 1
            return {"tokens": np.where(self._real(frame), tokens % VOCABULARY, 0)}

        inner.transform = transform
        return inner

    def target(self, frame: pd.DataFrame) -> Any:
        return np.where(self._real(frame), super().target(frame), PADDING)

    def _real(self, frame: pd.DataFrame) -> Any:
        lengths = np.array([4 + sum(tokens) % (LENGTH - 4) for tokens in frame["tokens"]])
        return np.arange(LENGTH) < lengths[:, None]


def rising(count: int = 120) -> pd.DataFrame:
    """Sentences of the tokens 0 to 5 only, so that one more still is a token."""
    frame = sentences(count)
    return frame.assign(tokens=[[min(t, 5) for t in tokens] for tokens in frame["tokens"]])


@pytest.mark.parametrize(("build", "verdict"), [(Language, "pass"), (Unmasked, "fail")])
def test_padding_and_other_indices_do_not_hide_the_answer(build: Any, verdict: str) -> None:
    finding = find(FutureDoesNotReachPast, Padded(build), rising())
    assert finding.verdict == verdict, finding.message


class Tags(Sentences):
    """Whether the next token is even: nothing of it is among the inputs."""

    def target(self, frame: pd.DataFrame) -> Any:
        return super().target(frame) % 2


def test_tagging_and_tasks_without_positions_are_not_applicable() -> None:
    tagging = find(FutureDoesNotReachPast, Tags(Unmasked), sentences())
    assert tagging.verdict == "not_applicable"
    assert "do not occur" in tagging.message
    assert find(FutureDoesNotReachPast, Sales(Table), table()).verdict == "not_applicable"
