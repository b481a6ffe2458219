"""Numbers, pixels and tokens that are not what the network should get."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tests.planted_bugs import (
    healthy_arrows,
    healthy_digits,
    healthy_language_model,
    healthy_odd_scale,
    healthy_regression,
    healthy_sgd,
    healthy_transformer,
)
from tests.planted_bugs.planting import Theme
from tests.planted_bugs.preprocessors import (
    Arrays,
    CharacterPreprocessor,
    ImagePreprocessor,
    TokenPreprocessor,
    padded,
)
from training_core.tabular import TabularPreprocessor

FEATURES = Theme("Features")


# ---- ranges -----------------------------------------------------------------------------------


@FEATURES.preprocessor(
    healthy_regression.HEALTHY,
    "Numbers are standardised with the mean and deviation of another data set.",
    found_by=("inputs_before_network",),
    seen="Karpathy 2019: a pretrained net without its original mean",
)
class StatisticsOfAnotherTable(TabularPreprocessor):
    def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
        fitted = super().fit(train)
        fitted.means, fitted.deviations = [m * 2 for m in self.means], [0.5] * len(self.means)
        return fitted


@FEATURES.preprocessor(
    healthy_digits.HEALTHY,
    "Pixels of 0 to 1 are divided by 255 once more.",
    found_by=("inputs_before_network",),
    seen="Schoop et al. 2021, UMLAUT: image data not normalised",
    warns=True,
)
class DividedBy255Twice(ImagePreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        pixels = np.stack(frame[self.column].to_list())[:, None]
        return {"image": (pixels / 255 / 255).astype(np.float32)}


@FEATURES.preprocessor(
    healthy_sgd.HEALTHY,
    "Standardised numbers are kept in a byte, in hundredths: beyond 1.28 they wrap round.",
    found_by=("inputs_before_network",),
    seen="Humbatova et al. 2020, wrong type of data",
)
class NumbersWrapInAByte(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Any:
        arrays = super().transform(frame)
        small = (arrays["numbers"] * 100).round().astype(np.int64).astype(np.int8)
        return {**arrays, "numbers": small.astype(np.float32) / 100}


@FEATURES.preprocessor(
    healthy_odd_scale.HEALTHY,
    "Large numbers pass through half precision, which ends at 65,504: beyond it all are infinite.",
    found_by=("inputs_before_network",),
    seen="Micikevicius et al. 2018, Mixed precision training",
    warns=True,
)
class OverflowInHalfPrecision(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Any:
        with np.errstate(over="ignore"):
            halved = {
                c: (frame[c] * 25).astype(np.float16).astype(float) / 25 for c in ("x2", "x3")
            }
        return super().transform(frame.assign(**halved))


@FEATURES.preprocessor(
    healthy_digits.HEALTHY,
    "Pixels are made brighter while they are bytes: what passes 255 begins again at 0.",
    found_by=("inputs_before_network",),
    seen="numpy wraps without a word",
)
class BrightPixelsWrap(ImagePreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        brighter = [image * np.uint8(2) for image in frame[self.column]]
        return super().transform(frame.assign(**{self.column: brighter}))


@FEATURES.preprocessor(
    healthy_arrows.HEALTHY,
    "Each image is divided by its brightest pixel as whole numbers: all but that one become 0.",
    found_by=("inputs_before_network",),
    seen="Python and numpy: // where / was meant",
)
class DividedAsWholeNumbers(ImagePreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        pixels = super().transform(frame)["image"]
        return {"image": pixels // pixels.max((2, 3), keepdims=True)}


@FEATURES.preprocessor(
    healthy_regression.HEALTHY,
    "Known and unknown are the wrong way round: every number that is there becomes the mean.",
    found_by=("inputs_before_network", "inputs_help"),
)
class KnownNumbersZeroed(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Any:
        arrays = super().transform(frame)
        return {**arrays, "numbers": np.where(np.isnan(arrays["numbers"]), 1, 0).astype("float32")}


# ---- sequences --------------------------------------------------------------------------------


@FEATURES.preprocessor(
    healthy_language_model.HEALTHY,
    "The network reads the very characters that it has to predict: input and target are one.",
    found_by=("label_is_no_input", "future_does_not_reach_past", "loss_falls"),
    seen="Karpathy 2019, off by one in an autoregressive model",
)
class TargetIsTheInput(CharacterPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        rows = (list(map(self.alphabet.index, t[: self.length])) for t in frame[self.column])
        return {"tokens": padded(rows, self.length, value=len(self.alphabet) + 1)}


@FEATURES.preprocessor(
    healthy_language_model.HEALTHY,
    "The network reads one character less than it may: it predicts the one after the next.",
    found_by=("future_does_not_reach_past", "label_is_no_input", "inputs_before_network"),
    seen="Karpathy 2019, off by one in an autoregressive model",
)
class TargetIsTheOneAfterTheNext(CharacterPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        begin, pad = len(self.alphabet), len(self.alphabet) + 1
        rows = (
            [begin, begin, *map(self.alphabet.index, text[: self.length][:-2])]
            for text in frame[self.column]
        )
        return {"tokens": padded(rows, self.length, value=pad)}


@FEATURES.preprocessor(
    healthy_transformer.HEALTHY,
    "A cut meant for long messages leaves two words of each.",
    found_by=("raw_values_arrive",),
)
class CutAfterTwoWords(TokenPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        tokens = super().transform(frame)["tokens"].copy()
        tokens[:, 2:] = 0
        return {"tokens": tokens}
