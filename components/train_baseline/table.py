"""A table of rates: the mean label of each cell of a few columns."""

from __future__ import annotations

import pandas as pd

from components.common.labels import label_columns
from components.train_baseline.contract import Baseline, Floats, Ground, Predictions
from components.train_baseline.prior import prior_of
from training_core.errors import ConfigurationError


class Table(Baseline):
    """Drawn towards the prior where a cell has few rows; the prior where it has none."""

    name = "table"

    def why_absent(self, ground: Ground) -> str:
        return "" if ground.settings.table else "baselines.table names no columns"

    def fit(self, ground: Ground) -> Predictions:
        columns, weight = ground.settings.table, ground.settings.table_smoothing
        _refuse(columns, ground)
        prior = prior_of(ground)
        outputs = [f"output {i}" for i in range(len(prior))]
        labels = pd.DataFrame(ground.rates, columns=outputs, index=ground.train.index)
        groups = labels.groupby([ground.train[column] for column in columns], dropna=False)
        sums, rows = groups.sum(), groups.size()
        smoothed = (sums + weight * prior).div(rows + weight, axis=0).reset_index()

        def predict(frame: pd.DataFrame) -> Floats:
            found = frame[columns].merge(smoothed, on=columns, how="left")[outputs]
            return ground.shaped(found.fillna(dict(zip(outputs, prior, strict=True))).to_numpy())

        return {part: predict(frame) for part, frame in ground.scored.items()}


def _refuse(columns: list[str], ground: Ground) -> None:
    absent = [column for column in columns if column not in ground.train]
    if absent:
        raise ConfigurationError(
            f"baselines.table names {absent}, and the rows have no such columns",
            hint=f"choose among {', '.join(map(str, ground.train.columns))}",
        )
    labels = [column for column in columns if column in label_columns(ground.task)]
    if labels:
        raise ConfigurationError(
            f"baselines.table names {labels}: that is what is to be predicted",
            hint="name columns that are known before the label is",
        )
