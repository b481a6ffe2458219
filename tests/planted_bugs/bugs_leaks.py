"""Columns of the raw rows that were made of the label, before the rows were divided."""

from __future__ import annotations

import numpy as np
import pandas as pd
from torch import nn

from tests.planted_bugs import healthy_categories, healthy_noisy_labels
from tests.planted_bugs.planting import Theme
from tests.planted_bugs.tables import Layers, number_names
from training_core.tabular import TabularPreprocessor
from training_core.task import Preprocessor

LEAKS = Theme("Columns made of the label")


@LEAKS.rows(
    healthy_categories.HEALTHY,
    "Unknown incomes were filled with the mean of those who took the same plan.",
    found_by=("label_is_no_input",),
    seen="Kapoor & Narayanan 2023, Leakage and the reproducibility crisis: imputation",
)
def incomes_filled_by_plan(rows: pd.DataFrame) -> pd.DataFrame:
    means = rows.groupby("plan")["income"].transform("mean")
    return rows.assign(income=rows["income"].fillna(means))


def _with_means_of_streets(seed: int) -> pd.DataFrame:
    rows = healthy_noisy_labels.rows(seed)
    street = np.random.default_rng(seed + 1).integers(0, len(rows) // 8, len(rows))
    rows = rows.assign(street=[f"street {i}" for i in street])
    return rows.assign(street_content=rows.groupby("street")["content"].transform("mean"))


@LEAKS.task(
    healthy_noisy_labels.HEALTHY,
    "A feature is the mean answer of each street, taken over the whole table: a row's own with it.",
    found_by=("label_is_no_input",),
    seen="pandas: groupby(key)[label].transform('mean'); Micci-Barreca 2001 leaves rows out",
    rows=_with_means_of_streets,
)
class MeanAnswerOfTheStreet(healthy_noisy_labels.Survey):
    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=[], numbers=[*number_names(5), "street_content"])

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Layers(6, 32, 32, 1, dropout=0.2)
