"""Turns passages of text into what a language model of characters reads.

This file imports nothing of the project: a packaged model carries a copy of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

Arrays = dict[str, npt.NDArray[Any]]

ALPHABET = "\n" + "".join(map(chr, range(32, 127)))  # a character's index is its place here
OTHER = ALPHABET.index("?")  # what is not in it
BEGIN, PADDING = len(ALPHABET), len(ALPHABET) + 1
SIZE = len(ALPHABET) + 2  # indices there are

_PLACES = np.full(128, OTHER, dtype=np.int64)
_PLACES[list(map(ord, ALPHABET))] = np.arange(len(ALPHABET))


class CharacterPreprocessor:
    """Reads a passage shifted by one: a mark for its beginning, then all but its last character.

    Args:
        column: Of passages.
        length: Characters that are read of a passage; further ones are cut off.
    """

    def __init__(self, column: str, *, length: int) -> None:
        self.column, self.length = column, length

    @property
    def columns(self) -> list[str]:
        """Raw columns that `transform` reads."""
        return [self.column]

    def fit(self, train: pd.DataFrame) -> Self:
        """Return itself: the alphabet is fixed, so that a rare character never lacks an index."""
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        """Turn N rows into `tokens`: int64 [N, length]."""
        read = indices(frame[self.column], self.length, padding=PADDING)
        begin = np.full((len(read), 1), BEGIN, dtype=np.int64)
        return {"tokens": np.concatenate([begin, read[:, :-1]], axis=1)}

    def state_dict(self) -> dict[str, Any]:
        """Everything learned, as JSON-able data."""
        return dict(vars(self))

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Self:
        """Rebuild a fitted preprocessor."""
        return cls(state["column"], length=state["length"])


def indices(passages: Iterable[str], length: int, *, padding: int) -> npt.NDArray[np.int64]:
    """Return int64 [N, length]: each character's index, filled up with `padding`."""
    texts = [passage[:length] for passage in passages]
    found = np.full((len(texts), length), padding, dtype=np.int64)
    for i, text in enumerate(texts):
        codes = np.frombuffer(text.encode("ascii", "replace"), dtype=np.uint8)
        found[i, : len(codes)] = _PLACES[codes]
    return found
