"""Which way an arrow points, in 12×12 pixels of a byte; mirrored at random, the label with it.

The rows are sorted by class, as files in a folder for each class are.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from tests.planted_bugs.contract import Healthy
from tests.planted_bugs.preprocessors import ImagePreprocessor
from tests.planted_bugs.tables import settings
from training_core.task import MulticlassTask, Preprocessor

WAYS = ["right", "left", "up", "down"]
MIRRORED = torch.tensor([1, 0, 2, 3])  # the class of the mirrored image


def rows(seed: int, count: int = 800) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    way = np.sort(random.integers(0, 4, count))
    images = []
    for each in way:
        image = random.integers(0, 40, (12, 12))
        top, left = random.integers(0, 6, 2)
        for line in range(7):  # a wedge that points right
            tip = min(line, 6 - line)
            image[top + line, left : left + 2 * tip + 1] += 160
        turned = {0: image, 1: image[:, ::-1], 2: image.T[::-1], 3: image.T}[int(each)]
        images.append(turned.astype(np.uint8))
    return pd.DataFrame({"picture": images, "way": np.array(WAYS)[way]})


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.GroupNorm(4, 24),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.out = nn.Linear(24 * 9, len(WAYS))

    def forward(self, image: Tensor) -> Tensor:
        return self.out(self.convolutions(image.float() / 64 - 1).flatten(1))


class Arrows(MulticlassTask):
    label = "way"
    classes = WAYS

    def preprocessor(self) -> Preprocessor:
        return ImagePreprocessor("picture", standardise=False)

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Network()

    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> tuple[dict[str, Tensor], Tensor]:
        chosen = torch.rand(len(target), generator=generator) < 0.5
        image = arrays["image"]
        image[chosen] = image[chosen].flip(3)
        target[chosen] = MIRRORED[target[chosen]]
        return {"image": image}, target


HEALTHY = Healthy(
    name="arrows", task=Arrows, rows=rows, training=settings(lr=2e-3, batch_size=32, epochs=15)
)
