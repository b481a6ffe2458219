"""The candidates of a training, opened with all that its checkpoints leave out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from components.common.layout import fetch_object
from components.common.records import StepContext
from components.common.rows import sample_part
from components.select_checkpoint.averaging import State
from components.select_checkpoint.candidates import Candidates
from training_core.checkpoints.catalogue import Checkpoints
from training_core.examples import Examples
from training_core.task import Preprocessor, Task
from training_core.transfer.settings import StartSettings
from training_core.transfer.shaping import still_layers

_STATISTICS_ROWS = 4096  # of the train split, for the statistics of normalising layers


def candidates_of(
    context: StepContext,
    task: Task,
    preprocessor: Preprocessor,
    parts: dict[str, Any],
    *,
    prefix: str,
    base: str,
) -> tuple[Checkpoints, Candidates]:
    """Return a training's checkpoints, and what makes networks of them.

    Args:
        context: Of the step; its project has the training's settings.
        task: Builds the network.
        preprocessor: As the training has fitted it.
        parts: As split_data left them; statistics are estimated on the train part.
        prefix: Where the checkpoints lie.
        base: sha256 of what a LoRA training began with; empty: it was none.
    """

    def train() -> Examples:
        rows = sample_part(context, parts, "train", rows=_STATISTICS_ROWS)
        return Examples.from_frame(task, preprocessor, rows)

    start = context.project.settings.training.start
    checkpoints = Checkpoints(context.store, prefix)
    found = Candidates(
        checkpoints,
        build=lambda: task.build_model(preprocessor),
        train=train,
        complete=_completing(context, base, start) if start.lora.rank else None,
        still=still_layers(task.build_model(preprocessor), start) if start.adapts else (),
    )
    return checkpoints, found


def _completing(context: StepContext, base: str, start: StartSettings) -> Callable[[State], State]:
    """Return what makes a plain network's state of a LoRA training's checkpoint."""
    from training_core.transfer.lora import merged
    from training_core.transfer.safetensors import read_safetensors

    began = read_safetensors(fetch_object(context.store, base, context.cache))
    return lambda state: merged(state, began, start.lora)
