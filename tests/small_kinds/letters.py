"""Words as letters: travels inside the packaged model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

LETTERS = "abcde"
LENGTH = 12


class Letters:
    """Turns the words of a column into their letters, int64 [N, 12]; 0 is none."""

    def __init__(self, column: str) -> None:
        self.column = column

    @property
    def columns(self) -> list[str]:
        """Raw columns that `transform` reads."""
        return [self.column]

    def fit(self, train: pd.DataFrame) -> Letters:
        """Return itself: letters are known."""
        return self

    def transform(self, frame: pd.DataFrame) -> dict[str, npt.NDArray[Any]]:
        """Turn words into letters; a null has none, and unknown letters are left out."""
        found = np.zeros((len(frame), LENGTH), dtype=np.int64)
        for row, word in enumerate(frame[self.column]):
            if isinstance(word, str):
                known = [LETTERS.index(letter) + 1 for letter in word if letter in LETTERS]
                found[row, : len(known[:LENGTH])] = known[:LENGTH]
        return {"letters": found}

    def state_dict(self) -> dict[str, Any]:
        """The column's name."""
        return {"column": self.column}

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Letters:
        """Rebuild it."""
        return cls(state["column"])
