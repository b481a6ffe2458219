"""What the tests of transfer learning share: a network with BatchNorm, trained from a start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from ranks_models import blocks
from torch import Tensor
from training_samples import trainer, weights

from training_core.loop import Trainer


def run_of(start: dict[str, Any], folder: Path | None = None, **changes: Any) -> Trainer:
    changes = {"epochs": 3, "log_every": 1, **changes}
    return trainer(folder, model=blocks(norm=True, dropout=0.1), start=start, **changes)


def after(run: Trainer, step: int) -> dict[str, Tensor]:
    """The state after so many steps; the run goes no further."""
    run.should_stop = lambda: run.outcome.steps >= step
    run.fit()
    return {name: value.clone() for name, value in weights(run.model).items()}


def moved(one: dict[str, Tensor], other: dict[str, Tensor]) -> set[str]:
    return {name for name in one if not torch.equal(one[name], other[name])}


def begun() -> dict[str, Tensor]:
    return {name: value.clone() for name, value in blocks(norm=True).state_dict().items()}
