"""Train and validation that are not apart."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tests.planted_bugs import (
    healthy_digits,
    healthy_gru,
    healthy_multilabel,
    healthy_noisy_labels,
    healthy_regression,
)
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


@SPLITS.rows(
    healthy_gru.HEALTHY,
    "Windows of one long series begin every third hour, and were divided at random.",
    found_by=("no_shared_rows",),
    seen="Hammerla & Plötz 2015, overlapping windows in cross-validation",
)
def windows_overlap(rows: pd.DataFrame) -> pd.DataFrame:
    length = healthy_gru.LENGTH
    hours = np.arange(3 * len(rows) + length + 1)
    random = np.random.default_rng(len(rows))
    load = np.sin(hours / 3) + np.sin(hours / 97) + random.normal(0, 0.1, len(hours))
    outside = 10 + 4 * np.sin(hours / 41) + random.normal(0, 1, len(hours))
    begins = 3 * np.arange(len(rows))
    return pd.DataFrame(
        {
            "load": [load[i : i + length] for i in begins],
            "outside": [outside[i : i + length] for i in begins],
            "next_load": load[begins + length],
        }
    )


@SPLITS.rows(
    healthy_multilabel.HEALTHY,
    "Each machine was measured five times, nearly alike, and measurements were divided at random.",
    found_by=("no_shared_rows",),
    seen="Little et al. 2017, record-wise splits of subjects",
    warns=True,
)
def machines_on_both_sides(rows: pd.DataFrame) -> pd.DataFrame:
    random = np.random.default_rng(len(rows))
    machines = rows.iloc[: len(rows) // 5].assign(
        machine=lambda frame: [f"M{10_000 + 7 * i}" for i in range(len(frame))]
    )
    numbers = [name for name in machines if pd.api.types.is_float_dtype(machines[name].dtype)]
    noise = 0.02 * machines[numbers].std()
    return pd.concat(
        [
            machines.assign(
                **{n: machines[n] + noise[n] * random.normal(size=len(machines)) for n in numbers}
            )
            for _ in range(5)
        ],
        ignore_index=True,
    )


@SPLITS.rows(
    healthy_regression.HEALTHY,
    "Rents rise and fall over the years, and days were divided at random: each lies between two.",
    found_by=("no_shared_rows",),
    seen="Bergmeir & Benítez 2012, cross-validation of time series",
    warns=True,
)
def days_divided_at_random(rows: pd.DataFrame) -> pd.DataFrame:
    level = np.random.default_rng(len(rows)).normal(0, 0.3, len(rows)).cumsum()
    return rows.assign(
        day=pd.date_range("2021-03-01", periods=len(rows), freq="D"), rent=rows["rent"] + level
    )
