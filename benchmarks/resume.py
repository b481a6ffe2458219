"""Time to the first step when a training goes on, early and late in its run.

    make bench-resume        # or: python -m benchmarks.resume --count 7

A training of two epochs over a million rows is stopped after 20 steps and, a copy of it, after
nearly all of its steps. What is timed is `fit()` up to the first forward of a training step:
finding, verifying and loading the checkpoint, and finding the place in the order of samples. A feed
that walked to its place would take longer the later it is.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.reporting import last_line
from infra.folder import FolderStore
from training_core.checkpoints.catalogue import Checkpoints
from training_core.examples import Examples
from training_core.loop import Trainer
from training_core.parallel.single import SingleProcess
from training_core.settings import TrainingSettings

ROWS = 1_000_000
BATCH = 512
STEPS = {"early": 20, "late": 2 * -(-ROWS // BATCH) - 20}


class _FirstStepError(Exception):
    """Training has come to its first step."""


class _Task:
    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return (outputs - target).square()

    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        return {}


class _Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 1)
        self.leave = False

    def forward(self, inputs: Tensor) -> Tensor:
        if self.training and self.leave:
            raise _FirstStepError
        outputs: Tensor = self.head(inputs)
        return outputs.squeeze(1)


def trainer(folder: Path, examples: Examples, **hooks: Any) -> Trainer:
    """Return a trainer whose checkpoints lie in a folder."""
    torch.manual_seed(0)
    return Trainer(
        task=_Task(),
        model=_Model(),
        train=examples,
        validation=examples.take(slice(0, 1000)),
        settings=TrainingSettings(epochs=2, batch_size=BATCH, device="cpu", evaluate_every=10**6),
        strategy=SingleProcess(torch.device("cpu")),
        checkpoints=Checkpoints(FolderStore(folder), "run"),
        **hooks,
    )


def stop_at(step: int, folder: Path, examples: Examples) -> None:
    """Train from the beginning up to a step, and save."""
    run = trainer(folder, examples)
    run.should_stop = lambda: run.outcome.steps >= step
    run.fit()
    assert run.outcome.steps == step


def first_step(folder: Path, examples: Examples, expected: int) -> float:
    """Return the seconds from going on to the first forward."""
    run = trainer(folder, examples)
    run.model.leave = True
    began = time.perf_counter()
    try:
        run.fit()
    except _FirstStepError:
        seconds = time.perf_counter() - began
    assert run.outcome.resumed_from == expected
    return seconds


def main() -> None:
    """Print the table and the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=7, help="rounds")
    count = parser.parse_args().count
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(ROWS, 4, generator=generator)
    examples = Examples({"inputs": inputs}, inputs.sum(1))
    ratios = []
    with tempfile.TemporaryDirectory(prefix="resume-") as place:
        for name, step in STEPS.items():
            stop_at(step, Path(place, name), examples)
        for _ in range(count):
            turn = random.sample(sorted(STEPS), k=len(STEPS))  # the first one runs colder
            seconds = {name: first_step(Path(place, name), examples, STEPS[name]) for name in turn}
            print("  ".join(f"{name} {seconds[name] * 1000:.0f} ms" for name in turn))
            ratios.append(seconds["late"] / seconds["early"])
    print(last_line("resume", {"resume_ratio": ratios}))


if __name__ == "__main__":
    main()
