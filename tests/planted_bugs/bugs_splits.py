"""Train and validation that are not apart."""

from __future__ import annotations

import pandas as pd

from tests.planted_bugs import healthy_digits, healthy_noisy_labels
from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.planting import Theme

SPLITS = Theme("Splits")


def _train(host: Healthy, seed: int) -> pd.DataFrame:
    return host.rows(seed).iloc[:900]


def _with_train_rows(host: Healthy, seed: int, share: float) -> pd.DataFrame:
    """Rows after the train split's, and some that are in it."""
    rows = host.rows(seed)
    return pd.concat([rows.iloc[900:], rows.iloc[:900].sample(frac=share, random_state=seed)])


@SPLITS.rows(
    healthy_noisy_labels.HEALTHY,
    "A fifth of the train rows are in the validation split too.",
    found_by=("no_shared_rows",),
    seen="Kapoor & Narayanan 2023, duplicates across splits",
    validation=lambda seed: _with_train_rows(healthy_noisy_labels.HEALTHY, seed, 0.2),
)
def train_rows_in_validation(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.iloc[:900]


@SPLITS.rows(
    healthy_digits.HEALTHY,
    "The table has each row twice, and was split afterwards: images are in both parts.",
    found_by=("no_shared_rows",),
    seen="Barz & Denzler 2020, Do we train on test data? CIFAR's near-duplicates",
)
def rows_doubled_before_the_split(rows: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([rows, rows], ignore_index=True)
