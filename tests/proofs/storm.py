"""One training process of the storm: trains a small network until it ends or is killed.

Each forward of a training step notes which samples it saw, in a file that outlives a SIGKILL.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from infra.folder import FolderStore
from training_core.checkpoints.catalogue import Checkpoints
from training_core.determinism import seed_everything
from training_core.examples import Examples
from training_core.loop import Trainer
from training_core.parallel.choose import choose_strategy
from training_core.settings import TrainingSettings

SAMPLES = 1003  # in batches of 32 the last one of an epoch has 11
EPOCHS = 4
_FEATURES = 32
_WIDTH = 384  # some megabytes of state, so that writing a checkpoint takes a while


@dataclass(frozen=True)
class Attempt:
    """One process of one attempt at a training.

    Attributes:
        folder: Of the training: its checkpoints, and what was seen.
        number: Of the attempt, from 0.
        deterministic: As in the settings.
    """

    folder: Path
    number: int
    rank: int
    world_size: int
    port: int
    deterministic: str


class Task:
    """A loss for each row."""

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return nn.functional.mse_loss(outputs, target, reduction="none")

    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        return {"error": (outputs - target).abs()}


class Network(nn.Module):
    """Dropout needs random states, BatchNorm running statistics: both must survive."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(_FEATURES, _WIDTH), nn.BatchNorm1d(_WIDTH), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(_WIDTH, _WIDTH), nn.ReLU(), nn.Dropout(0.1), nn.Linear(_WIDTH, 1),
        )  # fmt: skip
        self.note: Any = None

    def forward(self, features: Tensor, row: Tensor) -> Tensor:
        if self.training and self.note is not None:
            self.note(row)
        outputs: Tensor = self.body(features).squeeze(1)
        return outputs


def examples(count: int, seed: int) -> Examples:
    """Rows whose target depends on their features."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(count, _FEATURES, generator=generator)
    target = features[:, :4].sum(1).sin()
    return Examples({"features": features, "row": torch.arange(count)}, target)


def settings(deterministic: str, processes: int) -> TrainingSettings:
    """Four epochs, a checkpoint every eight steps, an evaluation every sixteen."""
    return TrainingSettings.model_validate(
        {
            "epochs": EPOCHS, "batch_size": 32, "device": "cpu", "processes": processes,
            "deterministic": deterministic, "log_every": 5, "evaluate_every": 16,
            "checkpoints": {"every": 8},
        }
    )  # fmt: skip


def run(attempt: Attempt) -> None:
    """Train to the end; rank 0 then leaves `final.json`."""
    os.environ |= {
        "RANK": str(attempt.rank), "WORLD_SIZE": str(attempt.world_size),
        "LOCAL_RANK": str(attempt.rank), "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(attempt.port),
    }  # fmt: skip
    # what a rank says when its neighbours die is of no interest, unless nothing works
    words = attempt.folder / f"words-{attempt.number:04d}-{attempt.rank}.txt"
    os.dup2(os.open(words, os.O_WRONLY | os.O_CREAT), 2)
    torch.set_num_threads(1)
    wanted = settings(attempt.deterministic, attempt.world_size)
    strategy = choose_strategy(torch.device("cpu"), wanted)
    seed_everything(1)
    model = Network()
    trainer = Trainer(
        task=Task(),
        model=model,
        train=examples(SAMPLES, 0),
        validation=examples(200, 1),
        settings=wanted,
        strategy=strategy,
        checkpoints=Checkpoints(FolderStore(attempt.folder / "store"), "run"),
    )
    seen = attempt.folder / f"seen-{attempt.number:04d}-{attempt.rank}"
    file = os.open(seen, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(rows: Tensor) -> None:
        record = np.array([trainer.outcome.steps, len(rows), *rows.tolist()], dtype=np.int32)
        os.write(file, record.tobytes())

    model.note = note
    outcome = trainer.fit()
    if attempt.rank == 0:
        state = hashlib.sha256()
        for name, value in sorted(model.state_dict().items()):
            state.update(name.encode() + value.numpy().tobytes())
        final = {
            "weights": state.hexdigest(),
            "steps": outcome.steps,
            "curve": [[point.step, point.loss] for point in outcome.curve],
            "evaluations": outcome.evaluations,
        }
        (attempt.folder / "final.json").write_text(json.dumps(final))
    strategy.close()


def steps_seen(file: Path) -> list[tuple[int, list[int]]]:
    """Return (step, samples) of each forward that a process noted."""
    numbers = np.frombuffer(file.read_bytes(), dtype=np.int32).tolist()
    found, place = [], 0
    while place < len(numbers):
        step, count = numbers[place : place + 2]
        found.append((step, numbers[place + 2 : place + 2 + count]))
        place += 2 + count
    return found
