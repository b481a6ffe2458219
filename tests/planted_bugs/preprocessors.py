"""Preprocessors of images, token lists, characters and series, as a project would bring its own.

This file imports nothing of the project: a packaged model carries a copy of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

Arrays = dict[str, npt.NDArray[Any]]
PAD, UNSEEN, FIRST = 0, 1, 2  # indices of tokens


class ImagePreprocessor:
    """Stacks the images of a column, each an array [height, width] of 0 to 255.

    Args:
        column: That holds them.
        standardise: Give float32 with the train split's mean and deviation; else uint8 as they are.
    """

    def __init__(self, column: str, *, standardise: bool = True) -> None:
        self.column, self.standardise = column, standardise
        self.mean, self.deviation = 0.0, 1.0

    @property
    def columns(self) -> list[str]:
        return [self.column]

    def fit(self, train: pd.DataFrame) -> Self:
        pixels = np.stack(train[self.column].to_list()).astype(np.float64)
        self.mean, self.deviation = float(pixels.mean()), float(pixels.std())
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        """`image`: [N, 1, height, width]."""
        pixels = np.stack([np.asarray(image) for image in frame[self.column]])[:, None]
        if not self.standardise:
            return {"image": pixels.astype(np.uint8)}
        return {"image": ((pixels - self.mean) / self.deviation).astype(np.float32)}

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Self:
        fitted = cls(state["column"], standardise=state["standardise"])
        fitted.mean, fitted.deviation = state["mean"], state["deviation"]
        return fitted


class TokenPreprocessor:
    """Turns lists of tokens into indices of the train split's vocabulary, padded with 0.

    Args:
        column: That holds lists of text.
        length: Tokens of an example; further ones are cut off.
    """

    def __init__(self, column: str, *, length: int) -> None:
        self.column, self.length = column, length
        self.vocabulary: list[str] = []

    @property
    def columns(self) -> list[str]:
        return [self.column]

    @property
    def size(self) -> int:
        """Number of indices: those of the vocabulary, of padding and of what was never seen."""
        return len(self.vocabulary) + FIRST

    def fit(self, train: pd.DataFrame) -> Self:
        self.vocabulary = sorted({token for tokens in train[self.column] for token in tokens})
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        """`tokens`: int64 [N, length]."""
        index = {token: place for place, token in enumerate(self.vocabulary, start=FIRST)}
        rows = ([index.get(token, UNSEEN) for token in tokens] for tokens in frame[self.column])
        return {"tokens": padded(rows, self.length)}

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Self:
        fitted = cls(state["column"], length=state["length"])
        fitted.vocabulary = state["vocabulary"]
        return fitted


class CharacterPreprocessor:
    """What a character language model reads: a mark for the beginning, then all but the last.

    Args:
        column: Of text.
        alphabet: Its characters have the indices 0, 1, …; the mark and padding come after them.
        length: Characters of an example; further ones are cut off.
    """

    def __init__(self, column: str, *, alphabet: str, length: int) -> None:
        self.column, self.alphabet, self.length = column, alphabet, length

    @property
    def columns(self) -> list[str]:
        return [self.column]

    @property
    def size(self) -> int:
        """Number of indices."""
        return len(self.alphabet) + 2

    def fit(self, train: pd.DataFrame) -> Self:
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        """`tokens`: int64 [N, length]."""
        begin, pad = len(self.alphabet), len(self.alphabet) + 1
        rows = (
            [begin, *map(self.alphabet.index, text[: self.length][:-1])]
            for text in frame[self.column]
        )
        return {"tokens": padded(rows, self.length, value=pad)}

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Self:
        return cls(state["column"], alphabet=state["alphabet"], length=state["length"])


class SeriesPreprocessor:
    """Standardises columns that hold series of equal length, one channel each."""

    def __init__(self, columns: list[str]) -> None:
        self.channels = list(columns)
        self.means: list[float] = []
        self.deviations: list[float] = []

    @property
    def columns(self) -> list[str]:
        return list(self.channels)

    def fit(self, train: pd.DataFrame) -> Self:
        values = [np.stack(train[column].to_list()) for column in self.channels]
        self.means = [float(each.mean()) for each in values]
        self.deviations = [float(each.std()) for each in values]
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        """`series`: float32 [N, length, channels]."""
        values = np.stack([np.stack(frame[c].to_list()) for c in self.channels], axis=2)
        scaled = (values - np.array(self.means)) / np.array(self.deviations)
        return {"series": scaled.astype(np.float32)}

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Self:
        fitted = cls(state["channels"])
        fitted.means, fitted.deviations = state["means"], state["deviations"]
        return fitted


def padded(rows: Iterable[list[int]], length: int, *, value: int = PAD) -> npt.NDArray[np.int64]:
    """Return int64 [N, length]: rows cut to `length`, or filled up with a value."""
    cut = [row[:length] for row in rows]
    filled = [[*row, *[value] * (length - len(row))] for row in cut]
    return np.array(filled, dtype=np.int64).reshape(len(cut), length)
