"""Padded texts: a language model and a classifier, healthy."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from training_core.task import (
    PADDING,
    Arrays,
    BinaryTask,
    Preprocessor,
    SequenceTask,
)

LETTERS = "abcdefgh"


def texts(count: int = 200, *, seed: int = 0) -> pd.DataFrame:
    """Words of 3 to 12 letters, each letter most often followed by the next in the alphabet."""
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        word = [int(random.integers(8))]
        for _ in range(int(random.integers(2, 12))):
            word.append((word[-1] + int(random.choice([1, 1, 1, 3]))) % 8)
        rows.append("".join(LETTERS[i] for i in word))
    many = [float(sum(letter in "abcd" for letter in row) > len(row) / 2) for row in rows]
    return pd.DataFrame({"text": rows, "early": many})


class TextPreprocessor:
    """Letters as 1 to 8, padded with 0 to twelve and more."""

    columns = ["text"]  # noqa: RUF012
    width = 16

    def fit(self, train: pd.DataFrame) -> Self:
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        tokens = np.zeros((len(frame), self.width), dtype=np.int64)
        for row, text in enumerate(frame["text"]):
            tokens[row, : len(text)] = [LETTERS.index(letter) + 1 for letter in text]
        return {"tokens": tokens}

    def state_dict(self) -> dict[str, Any]:
        return {"letters": LETTERS}

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Self:
        return cls()


class Attention(nn.Module):
    """One block; causal, or with the padding masked, or (a bug) with neither."""

    def __init__(self, outputs: int, *, causal: bool, masked: bool = True) -> None:
        super().__init__()
        self.tokens = nn.Embedding(9, 16)
        self.places = nn.Embedding(16, 16)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.head = nn.Linear(16, outputs)
        self.causal, self.masked = causal, masked

    def forward(self, tokens: Tensor) -> Tensor:
        width = tokens.shape[1]
        hidden = self.tokens(tokens) + self.places(torch.arange(width))
        padded = tokens == 0
        future = nn.Transformer.generate_square_subsequent_mask(width) if self.causal else None
        hidden = self.block(
            hidden,
            src_mask=future,
            src_key_padding_mask=padded if self.masked and not self.causal else None,
        )
        if self.causal:
            outputs: Tensor = self.head(hidden)
            return outputs
        real = (~padded).float().unsqueeze(2) if self.masked else torch.ones(*tokens.shape, 1)
        pooled: Tensor = self.head((hidden * real).sum(1) / real.sum(1)).squeeze(1)
        return pooled


class Letters(SequenceTask):
    """The next letter; the first padding is the end of the word, the rest counts for nothing."""

    label = "text"

    def preprocessor(self) -> Preprocessor:
        return TextPreprocessor()

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Attention(9, causal=True)

    def target(self, frame: pd.DataFrame) -> np.ndarray[Any, Any]:
        tokens = TextPreprocessor().transform(frame)["tokens"]
        target = np.full_like(tokens, PADDING)
        target[:, :-1] = tokens[:, 1:]
        target[tokens == 0] = PADDING
        return target


class Early(BinaryTask):
    """Whether most letters are early ones."""

    label = "early"

    def preprocessor(self) -> Preprocessor:
        return TextPreprocessor()

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Attention(1, causal=False)
