"""Which digit is it? A small convolutional network with BatchNorm, on images that are moved."""

from __future__ import annotations

import torch
from augmentation import moved
from images import ImagePreprocessor
from network import Network
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from training_core import MulticlassTask, Preprocessor


class DigitsOptions(BaseModel):
    """The network's shape and the augmentation; `evertrain.yaml` sets them under `task.options`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    channels: list[int] = Field([24, 48], min_length=1, description="Of each stage.")
    dropout: float = Field(0.2, ge=0, lt=1, description="Before the last layer.")
    turn: float = Field(8.0, ge=0, description="Degrees that an image is turned by, at most.")
    zoom: float = Field(0.1, ge=0, lt=1, description="Share that it is zoomed by, at most.")
    shift: float = Field(0.8, ge=0, description="Pixels that it is shifted by, at most.")


class DigitsTask(MulticlassTask):
    """0 to 9, from the pixels alone."""

    label = "digit"
    classes = range(10)
    Options = DigitsOptions

    def preprocessor(self) -> Preprocessor:
        return ImagePreprocessor("pixels")

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        if not isinstance(preprocessor, ImagePreprocessor):
            raise TypeError(f"DigitsTask reads images, not {type(preprocessor).__name__}")
        return Network(
            preprocessor.height,
            preprocessor.width,
            channels=self.options.channels,
            classes=len(self.classes),
            dropout=self.options.dropout,
        )

    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Move each image by its own draw: no two people write at one angle, size and place."""
        options = self.options
        image = moved(
            arrays["image"],
            generator,
            turn=options.turn,
            zoom=options.zoom,
            shift=options.shift,
        )
        return {"image": image}, target
