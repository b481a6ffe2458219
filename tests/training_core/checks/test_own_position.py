"""Logits that were viewed are told from permuted ones, and from wide or shifted looks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from check_graph_samples import Language, Sentences, find, sentences
from torch import Tensor, nn

from training_core.checks.graph import InputsReachOutputs
from training_core.checks.graph.own_position import misplaced
from training_core.examples import Examples

SIDE, LONG, WORDS = 8, 24, 12


def _examples(**arrays: Tensor) -> Examples:
    return Examples(arrays, torch.zeros(16, dtype=torch.int64))


def _random() -> torch.Generator:
    return torch.Generator().manual_seed(0)


IMAGES = _examples(image=torch.randn(16, 1, SIDE, SIDE, generator=_random()))
SERIES = _examples(series=torch.randn(16, 3, LONG, generator=_random()))
STEPS = _examples(series=torch.randn(16, LONG, 3, generator=_random()))
TOKENS = _examples(tokens=torch.randint(0, WORDS, (16, LONG), generator=_random()))


class _Pixels(nn.Module):
    def __init__(self, *, viewed: bool, classes: int = 3) -> None:
        super().__init__()
        self.viewed, self.classes = viewed, classes
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, classes, 3, padding=1)
        )

    def forward(self, image: Tensor) -> Tensor:
        logits = self.body(image)
        if self.viewed:
            return logits.reshape(len(image), -1, self.classes)
        return logits.permute(0, 2, 3, 1).flatten(1, 2)


class _Signal(nn.Module):
    def __init__(self, *, viewed: bool, first: bool = True, shift: int = 0) -> None:
        super().__init__()
        self.viewed, self.first, self.shift = viewed, first, shift
        self.body = nn.Conv1d(3, 4, 3, padding=1)

    def forward(self, series: Tensor) -> Tensor:
        logits = self.body(series if self.first else series.transpose(1, 2)).roll(self.shift, 2)
        return logits.reshape(len(series), -1, 4) if self.viewed else logits.transpose(1, 2)


class _Words(nn.Module):
    """Reads from left to right; or all at once, to say the same number of other words."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.words = nn.Embedding(WORDS, 16)
        self.left = nn.GRU(16, 16, batch_first=True)
        self.out = nn.Linear(16, LONG * 4 if kind == "one state" else 4)

    def forward(self, tokens: Tensor) -> Tensor:
        states, _ = self.left(self.words(tokens))
        if self.kind == "one state":
            return self.out(states[:, -1]).reshape(-1, LONG, 4)
        if self.kind == "backwards":
            states = states.flip(1)
        logits: Tensor = self.out(states)
        if self.kind == "viewed":
            return logits.transpose(1, 2).reshape(-1, LONG, 4)
        return logits


def _models(make: Any) -> list[nn.Module]:
    torch.manual_seed(0)
    return [make().eval(), make().eval()]


@pytest.mark.parametrize(
    ("make", "examples"),
    [
        (lambda: _Pixels(viewed=True), IMAGES),
        (lambda: _Pixels(viewed=True, classes=2), IMAGES),
        (lambda: _Signal(viewed=True), SERIES),
        (lambda: _Signal(viewed=True, first=False), STEPS),
        (lambda: _Words("viewed"), TOKENS),
    ],
    ids=["image", "two classes", "series", "steps first", "words"],
)
def test_logits_that_were_viewed_are_found(make: Any, examples: Examples) -> None:
    found = misplaced(_models(make), examples)
    assert found is not None
    assert found.own < 0.8


@pytest.mark.parametrize(
    ("make", "examples"),
    [
        (lambda: _Pixels(viewed=False), IMAGES),
        (lambda: _Pixels(viewed=True, classes=1), IMAGES),
        (lambda: _Signal(viewed=False), SERIES),
        (lambda: _Signal(viewed=False, first=False), STEPS),
        (lambda: _Signal(viewed=False, shift=1), SERIES),
        (lambda: _Signal(viewed=False, shift=5), SERIES),
        (lambda: _Words("causal"), TOKENS),
        (lambda: _Words("one state"), TOKENS),
        (lambda: _Words("backwards"), TOKENS),
    ],
    ids=[
        "image", "one class", "series", "steps first", "shifted", "far", "causal", "one state",
        "backwards",
    ],
)  # fmt: skip
def test_other_networks_are_not(make: Any, examples: Examples) -> None:
    assert misplaced(_models(make), examples) is None


def test_one_network_that_looks_at_its_positions_is_enough() -> None:
    torch.manual_seed(0)
    models = [_Pixels(viewed=True).eval(), _Pixels(viewed=False).eval()]
    assert misplaced(models, IMAGES) is None


class _Viewed(Language):
    def forward(self, tokens: Tensor) -> Tensor:
        logits = super().forward(tokens)
        return logits.transpose(1, 2).reshape(logits.shape)


@pytest.mark.parametrize(("build", "verdict"), [(Language, "pass"), (_Viewed, "fail")])
def test_the_check_says_what_happened(build: Any, verdict: str) -> None:
    finding = find(InputsReachOutputs, Sentences(build, lead=1), sentences())
    assert finding.verdict == verdict, finding.message
    assert verdict == "pass" or "own positions of 'tokens'" in finding.message
