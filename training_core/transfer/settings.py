"""Settings of the start of a training. No torch here: the command line reads them."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, model_validator

from training_core.base_settings import Settings


class LoraSettings(Settings):
    """Low-rank adapters (Hu et al. 2021, arXiv:2106.09685): all other weights are frozen."""

    rank: int = Field(0, ge=0, description="Rank of each adapter; 0: none.")
    alpha: float = Field(16.0, gt=0, description="Adapters are scaled by alpha / rank.")
    dropout: float = Field(0.0, ge=0, lt=1, description="Of what goes into an adapter.")
    patterns: tuple[str, ...] = Field(
        ("*",),
        min_length=1,
        description="Names of the nn.Linear layers that get one, as in `freeze`.",
    )


class StartSettings(Settings):
    """Where training starts, what of the network moves, and how fast (docs/transfer.md).

    Patterns are of parameters' names, with `*` for anything, dots included: `embeddings.*`.
    """

    weights: Literal["none", "champion", "file"] = Field(
        "none",
        description="none: as initialised; champion: those of the model in production (as "
        "initialised while there is none); file: those of `file`.",
    )
    file: str = Field(
        "",
        description="A safetensors file: a path, seen from the project, or store://KEY, an object "
        "of the object store. Its sha256 is part of the run's key.",
    )
    names: dict[str, str] = Field(
        default_factory=dict,
        description="Regular expressions and what replaces them in the file's names, one after "
        "another, until they are the model's: {'^module\\.': ''}.",
    )
    replace: tuple[str, ...] = Field(
        (),
        description="Patterns of what stays as initialised (a new head), whatever the start has.",
    )
    shrink: float = Field(
        1.0, ge=0, le=1, description="What weights of the start are multiplied with (see perturb)."
    )
    perturb: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Then as much of a fresh initialisation is added: shrink and perturb (Ash & "
        "Adams 2020, arXiv:1910.08475).",
    )
    freeze: tuple[str, ...] = Field(
        (), description="Patterns of what is not trained; BatchNorm there keeps its statistics."
    )
    stages: tuple[str, ...] = Field(
        (),
        description="Patterns, one a stage, from the input to the output, for lr_decay and "
        "unfreeze; empty: by the model's own structure.",
    )
    lr_decay: float = Field(
        1.0,
        gt=0,
        le=1,
        description="Each stage's learning rate is that of the stage above it times this "
        "(discriminative rates: Howard & Ruder 2018, arXiv:1801.06146, have 1 / 2.6).",
    )
    unfreeze: tuple[float, ...] = Field(
        (),
        description="Shares of all steps at which one stage after another thaws, from the top "
        "down; the topmost is trained from the start, the last share thaws all that is left.",
    )
    lora: LoraSettings = LoraSettings()

    @property
    def adapts(self) -> bool:
        """Whether the training itself differs from a plain one, wherever it starts."""
        return bool(self.freeze or self.unfreeze or self.lr_decay != 1 or self.lora.rank)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.weights == "file") != bool(self.file):
            raise ValueError("start.weights: file and start.file belong together")
        changed = [n for n in ("names", "replace", "shrink", "perturb") if n in self._given()]
        if changed and self.weights == "none":
            raise ValueError(f"start.{changed[0]} needs a start: weights: champion or file")
        if self.names and self.weights != "file":
            raise ValueError("start.names is for the names in a file")
        frozen = [n for n in ("freeze", "unfreeze", "shrink", "perturb") if n in self._given()]
        if self.lora.rank and frozen:
            raise ValueError(f"start.lora freezes all weights of the start: no start.{frozen[0]}")
        for pattern in self.names:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"start.names: {pattern!r} is no regular expression: {error}")  # noqa: B904
        bounds = (0.0, *self.unfreeze, 1.0)
        if not all(a < b for a, b in pairwise(bounds)):
            raise ValueError(
                f"start.unfreeze must rise, between 0 and 1, not {list(self.unfreeze)}"
            )
        return self

    def _given(self) -> set[str]:
        """Names of what differs from the default."""
        fields = type(self).model_fields
        return {
            name
            for name in fields
            if getattr(self, name) != fields[name].get_default(call_default_factory=True)
        }
