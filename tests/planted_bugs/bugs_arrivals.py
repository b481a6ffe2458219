"""Raw values that are lost on their way to the network."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from torch import nn

from tests.planted_bugs import (
    healthy_arrows,
    healthy_bag_of_words,
    healthy_categories,
    healthy_regression,
    healthy_sgd,
)
from tests.planted_bugs.planting import Theme
from tests.planted_bugs.preprocessors import Arrays, ImagePreprocessor, TokenPreprocessor
from training_core.tabular import TabularPreprocessor
from training_core.task import Preprocessor

ARRIVALS = Theme("Arrivals")
WRITTEN = "Breck et al. 2019, Data validation for machine learning"


# ---- numbers ----------------------------------------------------------------------------------


@ARRIVALS.rows(
    healthy_categories.HEALTHY,
    "Incomes have their currency beside each number, and are read as nulls.",
    found_by=("inputs_before_network",),
    seen="pandas: to_numeric(errors='coerce')",
)
def currencies_beside_the_numbers(rows: pd.DataFrame) -> pd.DataFrame:
    known = rows["income"].notna()
    return rows.assign(income=(rows["income"].round(2).astype(str) + " EUR").where(known))


@ARRIVALS.rows(
    healthy_sgd.HEALTHY,
    "A sensor writes 99999 where it has measured nothing, and that is standardised with the rest.",
    found_by=("inputs_before_network",),
    seen=WRITTEN,
)
def readings_of_99999(rows: pd.DataFrame) -> pd.DataFrame:
    without = np.random.default_rng(3).random(len(rows)) < 0.1
    return rows.assign(x0=rows["x0"].mask(without, 99_999.0))


@ARRIVALS.preprocessor(
    healthy_regression.HEALTHY,
    "A sine of whole turns, for its period was left out, stands where a number should.",
    found_by=("inputs_before_network",),
    seen="Karpathy 2019: it trains all the same, a bit worse",
)
class SineOfWholeTurns(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Any:
        arrays = super().transform(frame)
        whole = pd.to_numeric(frame["x1"]).fillna(0).round().to_numpy(np.float64)
        arrays["numbers"][:, 1] = np.sin(2 * np.pi * whole)
        return arrays


# ---- words and categories ---------------------------------------------------------------------


@ARRIVALS.preprocessor(
    healthy_bag_of_words.HEALTHY,
    "The vocabulary is learned in capitals, and words are looked up as they are written.",
    found_by=("inputs_before_network",),
    seen="Hugging Face: a cased tokeniser for an uncased vocabulary",
)
class VocabularyInCapitals(TokenPreprocessor):
    def fit(self, train: pd.DataFrame) -> Self:
        super().fit(train)
        self.vocabulary = [token.upper() for token in self.vocabulary]
        return self


def _of_another_system(seed: int) -> pd.DataFrame:
    rows = healthy_categories.rows(seed + 1, 300)
    return rows.assign(city=rows["city"].str.replace("_", "-").str.title())


@ARRIVALS.rows(
    healthy_categories.HEALTHY,
    "Held-back rows come from another system, which writes City-3 for city_3.",
    found_by=("inputs_before_network",),
    seen=WRITTEN,
    validation=_of_another_system,
)
def cities_of_another_system(rows: pd.DataFrame) -> pd.DataFrame:
    return rows


@ARRIVALS.task(
    healthy_categories.HEALTHY,
    "A class is spelt otherwise in the task than in the rows, which count as not labelled.",
    found_by=("labels_become_targets",),
    seen="pandas: what is in no list has the code -1",
)
class PlanInCapitals(healthy_categories.Plans):
    classes = ("basic", "family", "student", "Works")


# ---- images -----------------------------------------------------------------------------------


class _Reshaped(ImagePreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        pixels = np.stack([np.asarray(image) for image in frame[self.column]])
        return {"image": pixels.reshape(len(frame), 3, *pixels.shape[1:3]).astype(np.uint8)}


def _in_colour(seed: int) -> pd.DataFrame:
    rows = healthy_arrows.rows(seed)
    dyed = [np.stack([image, image // 2, 255 - image], 2).tolist() for image in rows["picture"]]
    return rows.assign(picture=dyed)


@ARRIVALS.task(
    healthy_arrows.HEALTHY,
    "Colour images are reshaped to channels first, which a transpose was meant to do.",
    found_by=("raw_values_arrive",),
    seen="discuss.pytorch.org: view or permute",
    rows=_in_colour,
)
class ColoursReshaped(healthy_arrows.Arrows):
    def preprocessor(self) -> Preprocessor:
        return _Reshaped("picture", standardise=False)

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        model = healthy_arrows.Network()
        model.convolutions[0] = nn.Conv2d(3, 12, 3, padding=1)
        return model
