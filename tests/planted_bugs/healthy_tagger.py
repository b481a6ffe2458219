"""What each word of a phrase is: a GRU, and a look at the neighbours on both sides."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from torch import Tensor, nn

from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.preprocessors import PAD, TokenPreprocessor, padded
from tests.planted_bugs.tables import settings
from training_core.task import PADDING, Preprocessor, SequenceTask

TAGS = ["name", "verb", "thing"]
LENGTH, WIDTH = 12, 24


def rows(seed: int, count: int = 800) -> pd.DataFrame:
    """The word "will" is a verb before a name, and a name elsewhere: what follows decides."""
    random = np.random.default_rng(seed)
    known = {
        "name": ["ann", "bob", "carl"],
        "verb": ["sees", "asks", "calls"],
        "thing": ["house", "letter", "road"],
    }
    phrases, tags = [], []
    for _ in range(count):
        chosen = [str(tag) for tag in random.choice(TAGS, int(random.integers(3, LENGTH + 1)))]
        words = [str(random.choice(known[tag])) for tag in chosen]
        for place in range(len(words) - 1):
            if random.random() < 0.15:
                words[place] = "will"
                chosen[place] = "verb" if chosen[place + 1] == "name" else "name"
        phrases.append(words)
        tags.append(chosen)
    return pd.DataFrame({"phrase": phrases, "tags": tags})


class Tagger(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.words = nn.Embedding(size, WIDTH, padding_idx=PAD)
        self.before = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.around = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)
        self.out = nn.Linear(WIDTH, len(TAGS))

    def forward(self, tokens: Tensor) -> Tensor:
        words = self.words(tokens)
        before, _ = self.before(words)
        around = self.around(words.transpose(1, 2)).transpose(1, 2)
        return self.out(before + nn.functional.relu(around))


class Tags(SequenceTask):
    label = "tags"

    def preprocessor(self) -> Preprocessor:
        return TokenPreprocessor("phrase", length=LENGTH)

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        assert isinstance(preprocessor, TokenPreprocessor)
        return Tagger(preprocessor.size)

    def target(self, frame: pd.DataFrame) -> npt.NDArray[np.int64]:
        return padded(
            (list(map(TAGS.index, tags)) for tags in frame[self.label]), LENGTH, value=PADDING
        )


HEALTHY = Healthy(
    name="tagger", task=Tags, rows=rows, training=settings(lr=5e-3, batch_size=32, epochs=15)
)
