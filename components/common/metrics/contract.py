"""What a family of metrics is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from components.common.resampling import Draws

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
Truth = npt.NDArray[Any]


class Family(ABC):
    """Metrics of one model's predictions that are made of the same totals."""

    @abstractmethod
    def totals(self, draws: Draws, rows: Rows | None = None) -> Floats:
        """Return the totals of each cluster, float64 [clusters, F]; of some rows or all."""

    @abstractmethod
    def values(self, totals: Floats) -> dict[str, Floats]:
        """Return the metrics by name, each [...], of totals [..., F]; NaN where there is none."""

    @abstractmethod
    def exact(self, rows: Rows | None = None) -> dict[str, float]:
        """Return the metrics of some rows or all; NaN where there is none."""

    def settled(self, values: Floats, *, point: float, coarse: float) -> Floats:
        """Put the values of the draws around the exact number: totals may be coarser than rows.

        Args:
            values: float64 [resamples].
            point: The exact number.
            coarse: The number that the totals of all rows give.
        """
        return np.asarray(values + (point - coarse))
