"""Rows that know their label, are not themselves, or are others where the model is served."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from torch import nn

from tests.planted_bugs import (
    healthy_bag_of_words,
    healthy_categories,
    healthy_counts,
    healthy_digits,
    healthy_gru,
    healthy_multilabel,
    healthy_noisy_labels,
    healthy_odd_scale,
    healthy_rare,
    healthy_regression,
)
from tests.planted_bugs.planting import Theme
from tests.planted_bugs.preprocessors import (
    Arrays,
    ImagePreprocessor,
    SeriesPreprocessor,
    TokenPreprocessor,
)
from tests.planted_bugs.tables import Layers, number_names
from training_core.tabular import TabularPreprocessor
from training_core.task import Preprocessor

ROWS = Theme("Rows")
LEAK = "Kaufman et al. 2012, Leakage in data mining; Kapoor & Narayanan 2023"
SKEW = "Breck et al. 2017, The ML test score: training and serving skew"


# ---- what leaks -------------------------------------------------------------------------------


@ROWS.preprocessor(
    healthy_odd_scale.HEALTHY,
    "The preprocessor is fitted on the whole table, whatever rows it is told to fit on.",
    found_by=("fitted_on_train_rows",),
    seen=LEAK,
)
class FittedOnAllRows(TabularPreprocessor):
    def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
        return super().fit(healthy_odd_scale.rows(0))


@ROWS.preprocessor(
    healthy_gru.HEALTHY,
    "transform() standardises with the mean and deviation of the rows that it is given.",
    found_by=("rows_stay_themselves", "fitted_on_train_rows", "package_equals_model"),
    seen=SKEW,
)
class FittedOnEachBatch(SeriesPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        return SeriesPreprocessor(self.channels).fit(frame).transform(frame)


@ROWS.task(
    healthy_regression.HEALTHY,
    "The label is one of the features.",
    found_by=("label_is_no_input",),
    seen=LEAK,
)
class LabelAmongTheFeatures(healthy_regression.Rent):
    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=[], numbers=[*number_names(6), "rent"])

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Layers(7, 64, 64, 1)


def _with_proxy(seed: int) -> pd.DataFrame:
    rows = healthy_noisy_labels.rows(seed)
    random = np.random.default_rng(seed + 1)
    return rows.assign(follow_up=rows["content"] * 3 + random.normal(0, 0.3, len(rows)))


@ROWS.task(
    healthy_noisy_labels.HEALTHY,
    "A column is filled in after the outcome is known, and gives it away.",
    found_by=("label_is_no_input", "loss_falls", "inputs_help", "simple_model_ahead"),
    seen=LEAK,
    rows=_with_proxy,
    warns=True,
)
class ProxyOfTheLabel(healthy_noisy_labels.Survey):
    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=[], numbers=[*number_names(5), "follow_up"])

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Layers(6, 32, 32, 1, dropout=0.2)


@ROWS.preprocessor(
    healthy_regression.HEALTHY,
    "A number is cut into 400 pieces, and each is encoded as the mean label of its train rows.",
    found_by=("label_is_no_input",),
    seen="Micci-Barreca 2001 smooths it; Prokhorenkova et al. 2018, CatBoost: target leakage",
)
class EncodedByTheirOwnLabels(TabularPreprocessor):
    rents: dict[str, float]

    def piece(self, frame: pd.DataFrame) -> list[str]:
        return [str(int(value * 70)) for value in super().transform(frame)["numbers"][:, 0]]

    def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
        super().fit(train)
        means = train["rent"].groupby(self.piece(train)).mean()
        self.rents = {str(piece): float(mean) for piece, mean in means.items()}
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        arrays = super().transform(frame)
        arrays["numbers"][:, 0] = [self.rents.get(piece, 0.4) for piece in self.piece(frame)]
        return arrays

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "rents": self.rents}

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> EncodedByTheirOwnLabels:
        plain = TabularPreprocessor.from_state_dict(state)
        fitted = cls.__new__(cls)
        vars(fitted).update(vars(plain), rents=state["rents"])
        return fitted


@ROWS.preprocessor(
    healthy_bag_of_words.HEALTHY,
    "Words are hashed with Python's hash(), which is another one in each process.",
    found_by=("package_equals_model",),
    seen="Python's documentation of PYTHONHASHSEED",
)
class HashedByThisProcess(TokenPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        size = len(self.vocabulary)
        hashed = [[self.vocabulary[hash(w) % size] for w in words] for words in frame[self.column]]
        return super().transform(pd.DataFrame({self.column: hashed}))


# ---- which row is which -----------------------------------------------------------------------


@ROWS.preprocessor(
    healthy_categories.HEALTHY,
    "transform() sorts the rows by a column, so arrays and labels are in different orders.",
    found_by=("rows_stay_themselves", "inputs_help"),
    seen="Humbatova et al. 2020, wrong labels for training data",
)
class RowsSorted(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Any:
        return super().transform(frame.sort_values("age"))


@ROWS.preprocessor(
    healthy_rare.HEALTHY,
    "A correction is looked up by the rows' index, which is another one when they are served.",
    found_by=("rows_stay_themselves", "package_equals_model"),
)
class LookedUpByIndex(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Any:
        correction = pd.Series(np.linspace(-2.0, 2.0, 4_000))
        shifted = frame["x0"] + correction.reindex(frame.index).fillna(0.0)
        return super().transform(frame.assign(x0=shifted))


@ROWS.preprocessor(
    healthy_multilabel.HEALTHY,
    "Columns are taken in the order in which they happen to stand in the table.",
    found_by=("rows_stay_themselves", "package_equals_model"),
    seen=SKEW,
)
class ColumnsInTheTablesOrder(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Any:
        arrays = super().transform(frame)
        standing = [column for column in frame.columns if column in self.numbers]
        places = [self.numbers.index(column) for column in standing]
        return {**arrays, "numbers": np.ascontiguousarray(arrays["numbers"][:, places])}


@ROWS.preprocessor(
    healthy_digits.HEALTHY,
    "Images are stacked along the last axis and reshaped: each has pixels of many.",
    found_by=("rows_stay_themselves", "inputs_help"),
    seen="Karpathy 2018: thinking that view and permute are the same thing",
)
class ImagesScrambledByAReshape(ImagePreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        image = super().transform(frame)["image"]
        stacked = np.ascontiguousarray(np.moveaxis(image, 0, -1))
        return {"image": stacked.reshape(image.shape)}


@ROWS.preprocessor(
    healthy_digits.HEALTHY,
    "The preprocessor augments: rows are other tensors each time, in validation as well.",
    found_by=("rows_stay_themselves", "package_equals_model"),
    seen="Humbatova et al. 2020, wrong preprocessing of test data",
)
class PreprocessorAugments(ImagePreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        image = super().transform(frame)["image"]
        for row in image:
            row[0] = np.roll(row[0], np.random.randint(-1, 2, 2), (0, 1))
        return {"image": image}


@ROWS.preprocessor(
    healthy_counts.HEALTHY,
    "transform() writes into the rows that it is given: the second time they are scaled twice.",
    found_by=("rows_stay_themselves",),
    seen="pandas: SettingWithCopyWarning",
)
class RowsWrittenTo(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Any:
        frame["x0"] = frame["x0"] / 10
        return super().transform(frame)


# ---- what is served ---------------------------------------------------------------------------


@ROWS.preprocessor(
    healthy_gru.HEALTHY,
    "The preprocessor's deviations are not among its state: serving takes 1.",
    found_by=("package_equals_model",),
    seen=SKEW,
)
class StateWithoutDeviations(SeriesPreprocessor):
    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Self:
        fitted = super().from_state_dict(state)
        fitted.deviations = [1.0] * len(fitted.means)
        return fitted


@ROWS.preprocessor(
    healthy_bag_of_words.HEALTHY,
    "The vocabulary is built anew where the model is served, in another order.",
    found_by=("package_equals_model",),
    seen=SKEW,
)
class VocabularyInAnotherOrder(TokenPreprocessor):
    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Self:
        fitted = super().from_state_dict(state)
        fitted.vocabulary = fitted.vocabulary[::-1]
        return fitted
