"""Lists that are cut without need, and columns that change nothing, are found."""

from __future__ import annotations

import check_data_texts as words
import numpy as np
import pandas as pd
import pytest
from check_data_samples import Houses, look, table
from torch import nn

from tests.planted_bugs.preprocessors import TokenPreprocessor
from training_core.checks.data import RawValuesArrive
from training_core.task import Arrays, Preprocessor


class _Cut(TokenPreprocessor):
    """Takes the first tokens, or the last ones."""

    def __init__(self, *, width: int, kept: int, from_end: bool = False) -> None:
        super().__init__("letters", length=width)
        self.kept, self.from_end = kept, from_end

    def transform(self, frame: pd.DataFrame) -> Arrays:
        parts = [c[-self.kept :] if self.from_end else c[: self.kept] for c in frame[self.column]]
        return super().transform(frame.assign(**{self.column: parts}))


class _Counts(TokenPreprocessor):
    """How often each token of the vocabulary occurs; most of a long one never do."""

    def transform(self, frame: pd.DataFrame) -> Arrays:
        tokens = super().transform(frame)["tokens"]
        counts = np.stack([(tokens == i).sum(1) for i in range(200)], axis=1)
        return {"tokens": counts.astype(np.float32)}


class _Nothing(TokenPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        return {"tokens": np.zeros((len(frame), self.length), dtype=np.int64)}


def _rows() -> pd.DataFrame:
    rows = words.texts(300)
    return rows.assign(letters=[list(text) for text in rows["text"]])


@pytest.mark.parametrize(
    ("preprocessor", "verdict", "said"),
    [
        (_Cut(width=16, kept=2), "fail", "is cut off, while 88% of 'tokens' is the same"),
        (_Cut(width=16, kept=2, from_end=True), "fail", "is cut off, while 88%"),
        (_Cut(width=2, kept=2), "warn", "is cut off"),
        (_Cut(width=16, kept=11), "pass", "arrive"),
        (TokenPreprocessor("letters", length=64), "pass", "100% of the elements of 'letters'"),
        (_Counts("letters", length=64), "pass", "arrive"),
        (_Nothing("letters", length=16), "fail", "no tensor changes"),
    ],
    ids=["cut", "cut from the end", "short array", "nearly all", "padded", "counts", "dead"],
)
def test_a_list_that_is_cut_without_need_is_found(
    preprocessor: TokenPreprocessor, verdict: str, said: str
) -> None:
    class Early(words.Early):
        def preprocessor(self) -> Preprocessor:
            return preprocessor

        def build_model(self, preprocessor: Preprocessor) -> nn.Module:
            raise AssertionError("no network is needed")

    finding = look(RawValuesArrive, Early(), _rows())
    assert finding.verdict == verdict, finding.message
    assert said in finding.message


def test_a_table_of_single_values_has_no_lists() -> None:
    assert look(RawValuesArrive, Houses(), table()).verdict == "not_applicable"
