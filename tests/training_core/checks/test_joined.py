"""Texts of which cleaning leaves nothing arrive as one row; rare words and short ones are none."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from training_core.checks.data.joined import joined_texts

LATIN = ("good", "bad", "very", "not", "film", "book", "again", "never")
OTHERS = ("фильм", "очень", "плохо", "снова", "никогда", "книга", "хорошо", "нет")


def rows(*alphabets: tuple[str, ...], words: int = 5) -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "text": [
                " ".join(random.choice(alphabets[i % len(alphabets)], words)) for i in range(300)
            ]
        }
    )


class Counts:
    """How often each word of a vocabulary occurs, after some cleaning."""

    columns = ("text",)

    def __init__(self, pattern: str = "$^") -> None:
        self.pattern = pattern

    def transform(self, frame: pd.DataFrame) -> dict[str, npt.NDArray[Any]]:
        texts = [re.sub(self.pattern, " ", text).split() for text in frame["text"]]
        vocabulary = [*LATIN, *OTHERS]
        found = [[words.count(word) for word in vocabulary] for words in texts]
        return {"counts": np.array(found, dtype=np.float32)}


def said(preprocessor: Counts, frame: pd.DataFrame) -> str:
    return joined_texts(preprocessor, frame, "text")  # type: ignore[arg-type]


def test_texts_of_an_alphabet_that_cleaning_leaves_out_are_one_row() -> None:
    found = said(Counts("[^a-zA-Z]"), rows(LATIN, OTHERS))
    assert re.match(
        r"1\d\d of \d+ different values of 'text', of several words each, arrive", found
    )


def test_texts_that_keep_their_words_differ() -> None:
    assert not said(Counts("[^a-zA-Zа-я]"), rows(LATIN, OTHERS))
    assert not said(Counts(), rows(LATIN, OTHERS))


def test_a_few_words_that_nobody_knows_are_no_fault() -> None:
    assert not said(Counts(), rows(LATIN, ("xyzzy", "plugh"), words=2))


def test_a_column_that_no_tensor_holds_is_said_elsewhere() -> None:
    assert not said(Counts("."), rows(LATIN, OTHERS))


def test_texts_of_which_one_word_arrives_are_cut() -> None:
    class First(Counts):
        def transform(self, frame: pd.DataFrame) -> dict[str, npt.NDArray[Any]]:
            return super().transform(frame.assign(text=frame["text"].str.split().str[0]))

    assert not said(First(), rows(LATIN))
