"""Features of a table, fitted on the train split and carried inside the packaged model.

This file imports nothing of the project: a packaged model carries a copy of it, so the very same
code turns raw rows into tensors in training and wherever the model is served.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Arrays = dict[str, npt.NDArray[Any]]

UNSEEN = 0  # the index of categories (and nulls) that the train split did not hold


class TabularPreprocessor:
    """Turns raw rows into one integer array of categories and one float array of numbers.

    Categories become their index in the train split's vocabulary; index 0 stands for null, for
    values never seen, and for values rarer than `minimum_count`. Numbers are standardised with the
    train split's mean and deviation, clipped to `clip` deviations (an infinite one too), and a null
    becomes 0 (the mean). Numbers that hold nulls in the train split get a second column: 1.0 where
    the value was null.

    Args:
        categories: Columns read as categories.
        numbers: Columns read as numbers.
        minimum_count: Categories with fewer rows than this share index 0.
        clip: Standardised numbers are kept within plus and minus this.
    """

    def __init__(
        self,
        *,
        categories: list[str],
        numbers: list[str],
        minimum_count: int = 1,
        clip: float = 8.0,
    ) -> None:
        self.categories = list(categories)
        self.numbers = list(numbers)
        self.minimum_count = minimum_count
        self.clip = clip
        self.vocabularies: dict[str, list[str]] = {}
        self.means: list[float] = []
        self.deviations: list[float] = []
        self.nullable: list[str] = []

    @property
    def columns(self) -> list[str]:
        """Raw columns that `transform` reads."""
        return [*self.categories, *self.numbers]

    @property
    def cardinalities(self) -> list[int]:
        """Number of indices of each category column, index 0 included."""
        return [len(self.vocabularies[column]) + 1 for column in self.categories]

    @property
    def number_columns(self) -> list[str]:
        """Names of the columns of the float array, in order."""
        return [*self.numbers, *(f"{column} is null" for column in self.nullable)]

    def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
        """Learn vocabularies, means and deviations from the train split; return itself."""
        for column in self.categories:
            counts = _text(train[column]).dropna().value_counts()
            kept = counts[counts >= self.minimum_count].index
            self.vocabularies[column] = sorted(str(value) for value in kept)
        self.means, self.deviations, self.nullable = [], [], []
        for column in self.numbers:
            values = _numeric(train[column])
            known = values[np.isfinite(values)]
            self.means.append(float(known.mean()) if known.size else 0.0)
            deviation = float(known.std()) if known.size else 0.0
            self.deviations.append(deviation if deviation > 0 else 1.0)
            if np.isnan(values).any():
                self.nullable.append(column)
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        """Turn N raw rows into arrays.

        Returns:
            `categories`: int64 [N, number of categories]; `numbers`: float32 [N, number columns].

        Raises:
            KeyError: A column is missing; the message names it.
        """
        missing = [column for column in self.columns if column not in frame.columns]
        if missing:
            raise KeyError(f"the rows lack the columns {', '.join(missing)}")
        categories = np.zeros((len(frame), len(self.categories)), dtype=np.int64)
        for i, column in enumerate(self.categories):
            index = pd.Index(self.vocabularies[column])
            categories[:, i] = index.get_indexer(pd.Index(_text(frame[column]))) + 1
        numbers = np.zeros((len(frame), len(self.number_columns)), dtype=np.float32)
        nulls = len(self.numbers)
        for i, column in enumerate(self.numbers):
            values = _numeric(frame[column])
            known = ~np.isnan(values)
            with np.errstate(over="ignore"):  # an infinite quotient is clipped like a large one
                scaled = (values - self.means[i]) / self.deviations[i]
            numbers[:, i] = np.where(known, np.clip(scaled, -self.clip, self.clip), 0.0)
            if column in self.nullable:
                numbers[:, nulls] = ~known
                nulls += 1
        return {"categories": categories, "numbers": numbers}

    def state_dict(self) -> dict[str, Any]:
        """Everything learned, as plain JSON-able data."""
        return {
            "format": "evertrain/tabular/1",
            "categories": self.categories,
            "numbers": self.numbers,
            "minimum_count": self.minimum_count,
            "clip": self.clip,
            "vocabularies": self.vocabularies,
            "means": self.means,
            "deviations": self.deviations,
            "nullable": self.nullable,
        }

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> TabularPreprocessor:
        """Rebuild a fitted preprocessor from `state_dict()`.

        Raises:
            ValueError: The state is of another format.
        """
        if state.get("format") != "evertrain/tabular/1":
            raise ValueError(f"not a tabular preprocessor's state: format {state.get('format')!r}")
        fitted = cls(
            categories=state["categories"],
            numbers=state["numbers"],
            minimum_count=state["minimum_count"],
            clip=state["clip"],
        )
        fitted.vocabularies = state["vocabularies"]
        fitted.means = state["means"]
        fitted.deviations = state["deviations"]
        fitted.nullable = state["nullable"]
        return fitted


def _text(values: pd.Series[Any]) -> pd.Series[Any]:
    """Categories as text, so that 7, 7.0 and "7" are one category; nulls stay null.

    Each value by itself: a row's category must not depend on the rows that come with it.
    """
    if pd.api.types.is_float_dtype(values.dtype):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        whole = (numbers == np.trunc(numbers)) & (np.abs(numbers) < 2.0**63)
        if (whole | np.isnan(numbers)).all():
            return pd.Series(numbers, index=values.index).astype("Int64").astype("string")
        values = values.astype(object)
    if values.dtype == object:
        # not values.map, which would make floats of them again
        values = pd.Series([_whole(v) for v in values], index=values.index, dtype=object)
    return values.astype("string")


def _whole(value: object) -> object:
    """7 for 7.0; anything else as it is."""
    return int(value) if isinstance(value, float | np.floating) and value.is_integer() else value


def _numeric(values: pd.Series[Any]) -> npt.NDArray[np.float64]:
    """Numbers as float64, with NaN for what is null."""
    return np.asarray(pd.to_numeric(values, errors="coerce"), dtype=np.float64)
