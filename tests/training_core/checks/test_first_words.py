"""A vocabulary that begins at the number of the padding loses its most frequent word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from training_core.checks.data.first_words import words_as_padding

LENGTH = 8
WORDS = ("the", "cat", "dog", "sees", "a", "bird", "house", "and", "runs", "home")


def texts(*, lists: bool = False) -> pd.DataFrame:
    random = np.random.default_rng(0)
    shares = np.arange(len(WORDS), 0, -1) / sum(range(len(WORDS) + 1))
    cells = [random.choice(WORDS, random.integers(2, 7), p=shares).tolist() for _ in range(100)]
    return pd.DataFrame({"text": cells if lists else [" ".join(cell) for cell in cells]})


class Vocabulary:
    """Numbers of words by their frequency, padded with 0."""

    columns: Sequence[str] = ("text",)

    def __init__(self, first: int, *, left: bool = False, left_out: Sequence[str] = ()) -> None:
        self.first, self.left, self.left_out = first, left, left_out

    def fit(self, train: pd.DataFrame) -> Vocabulary:
        counts = Counter(word for cell in train["text"] for word in self._words(cell))
        self.numbers = {
            word: place + self.first for place, (word, _) in enumerate(counts.most_common())
        }
        return self

    def transform(self, frame: pd.DataFrame) -> dict[str, npt.NDArray[Any]]:
        found = np.zeros((len(frame), LENGTH), dtype=np.int64)
        for row, cell in enumerate(frame["text"]):
            numbers = [self.numbers.get(word, 1) for word in self._words(cell)][:LENGTH]
            place = LENGTH - len(numbers) if self.left else 0
            found[row, place : place + len(numbers)] = numbers
        return {"words": found}

    def _words(self, cell: Any) -> list[str]:
        words = cell.split() if isinstance(cell, str) else list(cell)
        return [word for word in words if word not in self.left_out]


def said(vocabulary: Vocabulary, rows: pd.DataFrame) -> str:
    return words_as_padding(vocabulary.fit(rows), rows, "text", ["words"])  # type: ignore[arg-type]


@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_a_vocabulary_that_begins_at_the_padding_is_found(lists: bool, left: bool) -> None:
    found = said(Vocabulary(0, left=left), texts(lists=lists))
    assert found.startswith("'the', of the 10 most frequent elements of 'text', arrives in 'words'")


@pytest.mark.parametrize("left", [False, True])
def test_one_that_begins_behind_it_is_none(left: bool) -> None:
    assert not said(Vocabulary(2, left=left), texts())


def test_stop_words_that_are_left_out_are_meant() -> None:
    assert not said(Vocabulary(2, left_out=("the", "a")), texts())


def test_a_number_may_be_0_where_padding_is() -> None:
    rows = texts(lists=True)
    rows["text"] = [[WORDS.index(word) for word in cell] for cell in rows["text"]]
    assert not said(Vocabulary(0), rows)
