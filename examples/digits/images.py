"""Turns a column of images into the network's input: scaled by what the train split holds.

This file imports nothing of the project: a packaged model carries a copy of it.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

Arrays = dict[str, npt.NDArray[Any]]


class ImagePreprocessor:
    """Stacks grey images of one size, and takes off the train split's mean, in its deviations.

    Args:
        column: Of images, each a list of rows, each a list of whole numbers.
    """

    def __init__(self, column: str) -> None:
        self.column = column
        self.height, self.width = 0, 0
        self.mean, self.deviation = 0.0, 1.0

    @property
    def columns(self) -> list[str]:
        """Raw columns that `transform` reads."""
        return [self.column]

    def fit(self, train: pd.DataFrame) -> Self:
        """Learn size, mean and deviation from the train split; return itself.

        Raises:
            ValueError: There is no image, or the images have several sizes.
        """
        if train.empty:
            raise ValueError(f"no row, so no image in {self.column!r} to learn the size from")
        first = train[self.column].iloc[0]
        self.height, self.width = len(first), len(first[0])
        pixels = self._stacked(train)
        self.mean = float(pixels.mean())
        self.deviation = float(pixels.std()) or 1.0  # of one colour: nothing to scale
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        """Turn N rows into `image`: float32 [N, 1, height, width].

        Raises:
            ValueError: An image is missing, or has another size than those of the train split.
        """
        scaled = (self._stacked(frame) - self.mean) / self.deviation
        return {"image": scaled.astype(np.float32)[:, None]}

    def _stacked(self, frame: pd.DataFrame) -> npt.NDArray[np.float64]:
        """float64 [N, height, width]."""
        stacked = np.empty((len(frame), self.height, self.width))
        for i, image in enumerate(frame[self.column]):
            size = "none" if image is None else f"{len(image)}×{len(image[0]) if len(image) else 0}"
            if size != f"{self.height}×{self.width}":
                raise ValueError(
                    f"image {i} of {self.column!r} is {size}, not {self.height}×{self.width}"
                )
            stacked[i] = np.stack(list(image))
        return stacked

    def state_dict(self) -> dict[str, Any]:
        """Everything learned, as JSON-able data."""
        return dict(vars(self))

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Self:
        """Rebuild a fitted preprocessor."""
        fitted = cls(state["column"])
        vars(fitted).update(state)
        return fitted
