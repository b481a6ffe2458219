"""What comes next? A small GPT on the characters of Python's own documentation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from characters import SIZE, CharacterPreprocessor, indices
from network import GPT
from pydantic import BaseModel, ConfigDict, Field
from torch import nn

from training_core import Preprocessor, SequenceTask

IGNORED = -100  # a position that counts for nothing


class TextOptions(BaseModel):
    """Shape of the network; `evertrain.yaml` sets it under `task.options`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    length: int = Field(128, ge=2, description="Characters of a passage that are read.")
    width: int = Field(64, ge=1, description="Of a position; a multiple of the heads.")
    heads: int = Field(4, ge=1, description="Of attention.")
    blocks: int = Field(2, ge=1, description="One after another.")
    dropout: float = Field(0.05, ge=0, lt=1, description="Of what each block adds.")


class TextTask(SequenceTask):
    """The next character; a passage is its own label, read one character later."""

    label = "text"
    Options = TextOptions

    def preprocessor(self) -> Preprocessor:
        return CharacterPreprocessor("text", length=self.options.length)

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        options = self.options
        return GPT(
            SIZE,
            length=options.length,
            width=options.width,
            heads=options.heads,
            blocks=options.blocks,
            dropout=options.dropout,
        )

    def target(self, frame: pd.DataFrame) -> npt.NDArray[np.int64]:
        return indices(frame[self.label], self.options.length, padding=IGNORED)
