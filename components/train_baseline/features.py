"""The network's own arrays as columns: what the linear model and the trees learn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Features:
    """N rows as flat columns.

    Attributes:
        categories: int64 [N, columns], what a network looks up: signed integers.
        numbers: float32 [N, columns], everything else; bytes, such as pixels, and booleans too.
    """

    categories: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.float32]

    @classmethod
    def of(cls, arrays: dict[str, npt.NDArray[Any]], *, rows: int) -> Self:
        """Flatten arrays whose first dimension is `rows`."""
        flat = [np.asarray(array).reshape(rows, -1) for array in arrays.values() if rows]
        whole = [array for array in flat if array.dtype.kind == "i"]
        others = [array for array in flat if array.dtype.kind != "i"]
        return cls(
            np.hstack([np.zeros((rows, 0), np.int64), *whole]),
            np.hstack([np.zeros((rows, 0), np.float32), *others]).astype(np.float32, copy=False),
        )

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.categories.shape[1] + self.numbers.shape[1])
