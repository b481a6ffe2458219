"""Images as Parquet holds them: lists of rows of pixels. This file travels inside packages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd


@dataclass
class PixelPreprocessor:
    """A dataclass looks its own module up by name: it must be found where it is served."""

    mean: float = 0.0

    @property
    def columns(self) -> list[str]:
        return ["pixels"]

    def fit(self, train: pd.DataFrame) -> Self:
        self.mean = float(_stacked(train).mean())
        return self

    def transform(self, frame: pd.DataFrame) -> dict[str, npt.NDArray[Any]]:
        """`image`: float32 [N, 1, height, width]."""
        return {"image": (_stacked(frame)[:, None] - self.mean).astype(np.float32) / 255}

    def state_dict(self) -> dict[str, Any]:
        return {"mean": self.mean}

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Self:
        return cls(**state)


def _stacked(frame: pd.DataFrame) -> npt.NDArray[np.float64]:
    return np.stack([np.stack(list(image)) for image in frame["pixels"]]).astype(np.float64)
