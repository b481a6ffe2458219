"""Written digits, 8×8 pixels: a small convolutional network with BatchNorm, shifted by a pixel."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.preprocessors import ImagePreprocessor
from tests.planted_bugs.tables import settings
from training_core.task import MulticlassTask, Preprocessor


@cache
def _digits() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    found = load_digits()
    return found.images, found.target


def rows(seed: int, count: int = 1_200) -> pd.DataFrame:
    images, digits = _digits()
    chosen = np.random.default_rng(seed).permutation(len(images))[:count]
    pixels = [image.astype(np.uint8) for image in images[chosen] * 15]
    return pd.DataFrame({"pixels": pixels, "digit": digits[chosen]})


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(128, 10),
        )

    def forward(self, image: Tensor) -> Tensor:
        return self.layers(image)


class Digits(MulticlassTask):
    label = "digit"
    classes = range(10)

    def preprocessor(self) -> Preprocessor:
        return ImagePreprocessor("pixels")

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Network()

    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Shift the batch's images by at most a pixel; what comes in is empty."""
        down, right = (int(torch.randint(-1, 2, (), generator=generator)) for _ in range(2))
        image = arrays["image"]
        empty = float(image.amin())
        padded = nn.functional.pad(image, (1, 1, 1, 1), value=empty)
        height, width = image.shape[2:]
        shifted = padded[:, :, 1 + down : 1 + down + height, 1 + right : 1 + right + width]
        return {"image": shifted.contiguous()}, target


HEALTHY = Healthy(name="digits", task=Digits, rows=rows, training=settings(epochs=10))
