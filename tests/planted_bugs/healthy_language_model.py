"""A small GPT on the characters of sentences from a small grammar."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn

from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.preprocessors import CharacterPreprocessor, padded
from tests.planted_bugs.tables import settings
from training_core.task import PADDING, Preprocessor, SequenceTask

ALPHABET = "abcdefghijklmnopqrstuvwxyz ."
LENGTH, WIDTH, HEADS, BLOCKS = 32, 32, 2, 2


def rows(seed: int, count: int = 1_000) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    nouns, verbs = ["cat", "dog", "bird", "child", "judge"], ["see", "hear", "like", "follow"]

    def thing() -> tuple[str, str]:
        noun = str(random.choice(nouns))
        if random.random() < 0.5:
            return f"the {noun}", "s"
        return f"{random.choice(['two', 'all'])} {noun}s", ""

    def sentence() -> str:
        subject, ending = thing()
        if random.random() < 0.3:
            return f"{subject} sleep{ending}."
        return f"{subject} {random.choice(verbs)}{ending} {thing()[0]}."

    return pd.DataFrame({"text": [sentence() for _ in range(count)]})


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.into, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(0.05)

    def forward(self, hidden: Tensor) -> Tensor:
        hidden = hidden + self.dropout(self.out(self.attend(self.norms[0](hidden))))
        inner = nn.functional.gelu(self.wide(self.norms[1](hidden)))
        return hidden + self.dropout(self.narrow(inner))

    def attend(self, hidden: Tensor) -> Tensor:
        parts = self.into(hidden).unflatten(2, (3, HEADS, WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
        found = self.attention(*parts.unbind(0))
        return found.transpose(1, 2).flatten(2)

    def attention(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)


class GPT(nn.Module):
    block: type[Block] = Block

    def __init__(self, size: int) -> None:
        super().__init__()
        self.characters, self.places = nn.Embedding(size, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(self.block() for _ in range(BLOCKS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, size, bias=False)
        self.head.weight = self.characters.weight
        for table in (self.characters, self.places):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = self.characters(tokens) + self.places(places)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(self.norm(hidden))


class Sentences(SequenceTask):
    label = "text"

    def preprocessor(self) -> Preprocessor:
        return CharacterPreprocessor("text", alphabet=ALPHABET, length=LENGTH)

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        assert isinstance(preprocessor, CharacterPreprocessor)
        return GPT(preprocessor.size)

    def target(self, frame: pd.DataFrame) -> npt.NDArray[np.int64]:
        indices = (list(map(ALPHABET.index, text)) for text in frame[self.label])
        return padded(indices, LENGTH, value=PADDING)


HEALTHY = Healthy(
    name="language_model", task=Sentences, rows=rows, training=settings(batch_size=32, epochs=10)
)
