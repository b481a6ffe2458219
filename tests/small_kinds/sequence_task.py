"""A small language model: the next letter of a word, from the one before it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from letters import LETTERS, Letters  # type: ignore[import-not-found] # beside it in a project
from torch import Tensor, nn

from training_core import Preprocessor, SequenceTask
from training_core.task import PADDING


class SmallNetwork(nn.Module):
    """An embedding of a letter, a hidden layer, the logits of the next one."""

    def __init__(self, letters: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Embedding(letters, 16), nn.ReLU(), nn.Linear(16, letters))

    def forward(self, letters: Tensor) -> Tensor:
        found: Tensor = self.layers(letters)
        return found


class SmallTask(SequenceTask):
    """Words of up to twelve letters."""

    label = "word"

    def preprocessor(self) -> Preprocessor:
        words: Preprocessor = Letters("word")
        return words

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return SmallNetwork(len(LETTERS) + 1)

    def target(self, frame: pd.DataFrame) -> npt.NDArray[np.int64]:
        letters = Letters("word").transform(frame)["letters"]
        after: npt.NDArray[np.int64] = np.full_like(letters, PADDING)
        after[:, :-1] = np.where(letters[:, 1:] > 0, letters[:, 1:], PADDING)
        return after
