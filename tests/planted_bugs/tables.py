"""What the healthy tasks on tables share: columns of numbers, a small network, settings."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from torch import Tensor, nn

from training_core.settings import TrainingSettings


class Layers(nn.Module):
    """Linear layers with ReLU between them; one output is [N], several are [N, outputs]."""

    def __init__(self, *widths: int, dropout: float = 0.0) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for wide, narrow in pairwise(widths[:-1]):
            layers += [nn.Linear(wide, narrow), nn.ReLU(), nn.Dropout(dropout)]
        self.layers = nn.Sequential(*layers, nn.Linear(widths[-2], widths[-1]))

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        outputs = self.layers(numbers)
        return outputs.squeeze(1) if outputs.shape[1] == 1 else outputs


def numbers_of(
    random: np.random.Generator, rows: int, columns: int
) -> tuple[npt.NDArray[np.float64], pd.DataFrame]:
    """Return standard normal values [rows, columns], and a frame of them in units of their own."""
    values = random.normal(size=(rows, columns))
    units = 10.0 ** (np.arange(columns) % 4)
    frame = pd.DataFrame(values * units + 3 * units, columns=number_names(columns))
    return values, frame


def number_names(columns: int) -> list[str]:
    """Names of the columns of such a frame."""
    return [f"x{i}" for i in range(columns)]


def settings(
    *, lr: float = 3e-3, batch_size: int = 64, epochs: float = 20, **optimiser: Any
) -> TrainingSettings:
    """How a small task would be trained: AdamW and a cosine, unless said otherwise."""
    return TrainingSettings.model_validate(
        {
            "epochs": epochs,
            "batch_size": batch_size,
            "threads": 1,
            "optimiser": {"lr": lr, **optimiser},
        }
    )
