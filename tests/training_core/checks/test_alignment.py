"""Tags that a mark has shifted are found where the network cannot look ahead."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from training_core.checks.data.alignment import of_alignment
from training_core.examples import Examples
from training_core.task import PADDING

WORDS, TAGS, LENGTH = 24, 4, 10


class Reader(nn.Module):
    def __init__(self, *, both: bool) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS + 1, 8)
        self.gru = nn.GRU(8, 8, batch_first=True, bidirectional=both)
        self.head = nn.Linear(16 if both else 8, max(TAGS, WORDS + 1))

    def forward(self, tokens: Tensor) -> Tensor:
        states, _ = self.gru(self.words(tokens))
        found: Tensor = self.head(states)
        return found


def subject(shifted: Callable[[Tensor], Tensor], *, both: bool = False) -> Any:
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(1, WORDS, (400, LENGTH), generator=generator)
    tokens[:, 0] = WORDS  # a mark
    examples = Examples({"tokens": tokens}, shifted(tokens), None)
    return SimpleNamespace(
        task=SimpleNamespace(kind="sequence"),
        batch=lambda rows, seed=0: examples.take(torch.arange(len(examples))[:rows]),
        build=lambda seed=0: Reader(both=both),
    )


def aligned(tokens: Tensor) -> Tensor:
    return (tokens % TAGS).index_fill(1, torch.tensor([0]), PADDING)


def one_early(tokens: Tensor) -> Tensor:
    return torch.cat([tokens[:, 1:] % TAGS, torch.full((len(tokens), 1), PADDING)], dim=1)


def next_token(tokens: Tensor) -> Tensor:
    return torch.cat([tokens[:, 1:], torch.full((len(tokens), 1), PADDING)], dim=1)


def next_token_in_other_numbers(tokens: Tensor) -> Tensor:
    return torch.where(next_token(tokens) == PADDING, PADDING, WORDS - next_token(tokens))


def test_tags_that_stand_one_place_before_their_tokens_are_found() -> None:
    (problem,) = of_alignment(subject(one_early))
    assert problem.fails
    assert problem.message.startswith("'tokens' tells 100% of the targets that stand 1 before it")


@pytest.mark.parametrize("shifted", [aligned, next_token, next_token_in_other_numbers])
def test_tags_at_their_tokens_and_tokens_to_come_are_none(shifted: Any) -> None:
    assert not list(of_alignment(subject(shifted)))


def test_a_network_that_reads_both_ways_learns_the_shift() -> None:
    assert not list(of_alignment(subject(one_early, both=True)))
