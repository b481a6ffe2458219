"""Inputs that are not what the rows say, and padding that counts, are found."""

from __future__ import annotations

from typing import Any

import check_data_samples as samples
import check_data_texts as words
import numpy as np
import pandas as pd
import pytest
import torch
from check_data_samples import (
    Houses,
    Shapes,
    images,
    look,
    table,
    using,
)
from torch import Tensor, nn

from training_core.checks.data import (
    InputsBeforeNetwork,
    PaddingCountsForNothing,
)
from training_core.tabular import TabularPreprocessor
from training_core.task import Arrays, Preprocessor


class _Swapped(TabularPreprocessor):
    def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
        super().fit(train)
        self.means[:2] = self.means[1::-1]
        return self


class _Variance(TabularPreprocessor):
    def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
        super().fit(train)
        self.deviations = [d**2 for d in self.deviations]
        return self


class _Forgotten(TabularPreprocessor):
    """One column is left as it is."""

    def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
        super().fit(train)
        self.means[2], self.deviations[2], self.clip = 0.0, 1.0, 1e9
        return self


class _Overflow(TabularPreprocessor):
    def _cast(self, frame: pd.DataFrame) -> pd.DataFrame:
        with np.errstate(over="ignore"):
            return frame.assign(distance=frame["distance"].to_numpy().astype(np.int16))

    def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
        return super().fit(self._cast(train))

    def transform(self, frame: pd.DataFrame) -> Arrays:
        return super().transform(self._cast(frame))


class _Bytes(_Overflow):
    def _cast(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(distance=frame["distance"].to_numpy().astype(np.uint8))


class _Halves(TabularPreprocessor):
    """float16 ends at 65504."""

    def transform(self, frame: pd.DataFrame) -> Arrays:
        arrays = super().transform(frame)
        with np.errstate(over="ignore"):
            arrays["numbers"][:, 2] = frame["distance"] * 10
            return arrays | {"numbers": arrays["numbers"].astype(np.float16)}


class _Missing(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        arrays = super().transform(frame)
        arrays["numbers"][:, 3] = np.where(frame["rooms"].isna(), np.nan, arrays["numbers"][:, 3])
        return arrays


class _Unread(TabularPreprocessor):
    """Its vocabulary is written otherwise."""

    def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
        return super().fit(train.assign(kind=train["kind"].str.upper()))


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (_Swapped, "mean of 'age'"),
        (_Variance, "variance"),
        (_Forgotten, "'distance' (numbers[:, 2])"),
        (_Overflow, "begins again every 655"),
        (_Bytes, "begins again every 256"),
        (_Halves, "'distance' (numbers[:, 2]) is not a finite number in torch.float16"),
        (_Missing, "'rooms' (numbers[:, 3]) is not a finite number"),
        (_Unread, "'kind'"),
    ],
)
def test_inputs_that_are_not_what_the_rows_say_are_found(
    kind: type[TabularPreprocessor], said: str
) -> None:
    finding = look(InputsBeforeNetwork, using(kind), table())
    assert finding.verdict == "fail", finding.message
    assert said in finding.message


@pytest.mark.parametrize(("normalised", "verdict"), [(True, "warn"), (False, "fail")])
def test_pixels_that_are_not_scaled_fail_where_the_network_does_not_scale_them(
    normalised: bool, verdict: str
) -> None:
    class Raw(samples.ImagePreprocessor):
        def transform(self, frame: pd.DataFrame) -> Arrays:
            return {"image": self._stack(frame) * 255}

    class Task(Shapes):
        def preprocessor(self) -> Preprocessor:
            return Raw()

        def build_model(self, preprocessor: Preprocessor) -> nn.Module:
            return samples.ImageNetwork(normalised=normalised)

    finding = look(InputsBeforeNetwork, Task(), images())
    assert finding.verdict == verdict, finding.message


def test_rows_are_shown_raw_beside_what_the_network_gets() -> None:
    rows = look(InputsBeforeNetwork, Houses(), table())
    assert len(rows.samples) == 6
    assert rows.samples[0].raw["kind"] in ("flat", "house", "hut")
    assert "area" in rows.samples[0].network["numbers"]
    picture = look(InputsBeforeNetwork, Shapes(), images()).samples[0].images["image"]
    assert (len(picture), len(picture[0])) == (12, 12)
    assert all(len(pixel) == 7 for line in picture for pixel in line)


# ---- padding_counts_for_nothing


def test_attention_and_pooling_without_a_mask_are_found() -> None:
    class Unmasked(words.Early):
        def build_model(self, preprocessor: Preprocessor) -> nn.Module:
            return words.Attention(1, causal=False, masked=False)

    finding = look(PaddingCountsForNothing, Unmasked(), words.texts())
    assert finding.verdict == "fail"
    assert "padded positions fewer" in finding.message


class _Pairs(words.TextPreprocessor):
    columns = ["text", "other"]  # noqa: RUF012

    def transform(self, frame: pd.DataFrame) -> Arrays:
        other = super().transform(frame[["other"]].rename(columns={"other": "text"}))["tokens"]
        return {**super().transform(frame), "other": other}


def test_of_two_padded_texts_neither_is_cut_where_it_goes_on() -> None:
    class Means(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.letters, self.head = nn.Embedding(9, 4, padding_idx=0), nn.Linear(8, 1)

        def forward(self, tokens: Tensor, other: Tensor) -> Tensor:
            sums = torch.cat([self.letters(each).sum(1) for each in (tokens, other)], dim=1)
            outputs: Tensor = self.head(sums).squeeze(1)
            return outputs

    class Compared(words.Early):
        def preprocessor(self) -> Preprocessor:
            return _Pairs()

        def build_model(self, preprocessor: Preprocessor) -> nn.Module:
            return Means()

    rows = words.texts()
    rows["other"] = rows["text"].str[::-1].sample(frac=1, random_state=0).tolist()
    finding = look(PaddingCountsForNothing, Compared(), rows)
    assert finding.verdict == "pass", finding.message
    assert "padded positions fewer" in finding.message


class _OneLength(words.Attention):
    def forward(self, tokens: Tensor) -> Tensor:
        assert tokens.shape[1] == words.TextPreprocessor.width
        return super().forward(tokens)


@pytest.mark.parametrize(("masked", "verdict"), [(True, "pass"), (False, "fail")])
def test_attention_to_padding_is_found_in_a_network_of_one_length(
    masked: bool, verdict: str
) -> None:
    class Fixed(words.Early):
        def build_model(self, preprocessor: Preprocessor) -> nn.Module:
            return _OneLength(1, causal=False, masked=masked)

    finding = look(PaddingCountsForNothing, Fixed(), words.texts())
    assert finding.verdict == verdict, finding.message
    assert "with other embeddings there, attention" in finding.message


def test_a_network_of_one_length_without_attention_may_read_padding_as_it_likes() -> None:
    class Flat(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.head = nn.Embedding(9, 4), nn.Linear(4 * 16, 1)

        def forward(self, tokens: Tensor) -> Tensor:
            outputs: Tensor = self.head(self.tokens(tokens).flatten(1)).squeeze(1)
            return outputs

    class Flattened(words.Early):
        def build_model(self, preprocessor: Preprocessor) -> nn.Module:
            return Flat()

    finding = look(PaddingCountsForNothing, Flattened(), words.texts())
    assert finding.verdict == "not_applicable", finding.message


def test_padding_in_the_loss_is_found() -> None:
    class Counting(words.Letters):
        def target(self, frame: pd.DataFrame) -> np.ndarray[Any, Any]:
            tokens = words.TextPreprocessor().transform(frame)["tokens"]
            return np.concatenate([tokens[:, 1:], 0 * tokens[:, :1]], axis=1)

    finding = look(PaddingCountsForNothing, Counting(), words.texts())
    assert finding.verdict == "fail"
    assert "the loss counts 100% of the padded positions" in finding.message
