"""Small real trainings that the tests of checkpoints share: a model, its optimiser, its saver."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from infra.folder import FolderStore
from training_core.checkpoints.catalogue import Checkpoints
from training_core.checkpoints.saver import Saver
from training_core.checkpoints.settings import CheckpointSettings
from training_core.parallel.single import SingleProcess
from training_core.parallel.strategy import Strategy

CPU = torch.device("cpu")
NOTHING: dict[str, Any] = {"metrics": {}, "progress": {}, "extra": {}, "own": {}}


class Network(nn.Module):
    """Matrices, vectors, running statistics, a frozen weight, and a buffer of integers."""

    def __init__(self, *, hidden: int = 13, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.first = nn.Linear(5, hidden)
        self.norm = nn.BatchNorm1d(hidden)
        self.last = nn.Linear(hidden, 3)
        self.frozen = nn.Parameter(torch.randn(2, 3), requires_grad=False)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.last(self.norm(self.first(inputs)).relu())
        return outputs


class Training:
    """A model that is trained on noise, with its checkpoints.

    Args:
        place: A folder, or the checkpoints themselves.
        strategy: None: this process alone.
        seed: Of the initialisation.
    """

    def __init__(
        self,
        place: Path | Checkpoints,
        *,
        strategy: Strategy | None = None,
        seed: int = 0,
        model: nn.Module | None = None,
        optimisers: Sequence[Optimizer] | None = None,
        **settings: Any,
    ) -> None:
        self.strategy = strategy or SingleProcess(CPU)
        self.prepared = self.strategy.prepare(model or Network(seed=seed))
        self.model = self.strategy.unwrapped(self.prepared)
        trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimisers = optimisers or [torch.optim.AdamW(trained, lr=0.01, fused=True)]
        self.checkpoints = (
            place if isinstance(place, Checkpoints) else Checkpoints(FolderStore(place), "run")
        )
        self.steps = 0
        self.saver = Saver(
            self.checkpoints,
            model=self.model,
            optimisers=self.optimisers,
            strategy=self.strategy,
            settings=CheckpointSettings(**{"keep_last": 100, **settings}),
        )

    def train(self, steps: int = 1) -> None:
        """Take steps whose inputs depend on the step alone, the same on every rank."""
        for _ in range(steps):
            self.steps += 1
            inputs = torch.randn(7, 5, generator=torch.Generator().manual_seed(self.steps))
            self.prepared(inputs).square().sum().backward()
            self.saver.weights_may_change()
            for optimiser in self.optimisers:
                optimiser.step()
                optimiser.zero_grad()

    def save(self, **what: Any) -> None:
        """Begin a checkpoint of this step and wait for it."""
        self.begin(**what)
        self.saver.finish()

    def begin(self, **what: Any) -> None:
        """Begin a checkpoint of this step."""
        self.saver.begin(step=self.steps, samples=self.steps * 10, **{**NOTHING, **what})

    def resume(self, **which: Any) -> int:
        """Load the newest checkpoint and return its step; 0: there is none."""
        restored = self.saver.restore(**which)
        self.steps = restored.manifest.step if restored else 0
        return self.steps

    def state(self) -> dict[str, Tensor]:
        """A copy of everything, whole: weights, buffers, moments."""
        live = self.saver._live
        live.refresh()
        return {
            name: (t.full_tensor() if isinstance(t, DTensor) else t).clone()
            for name, t in live.tensors.items()
        }


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Whether two states are equal, bit for bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def steps_of(checkpoints: Checkpoints) -> list[int]:
    return [manifest.step for manifest in checkpoints.manifests()]


def shard_of(place: Path, step: int, *, rank: int = 0) -> Path:
    """Where a rank's shard of a step lies below a store's folder."""
    (found,) = place.glob(f"run/{step:09d}/shard-{rank}.*.bin")
    return found


def files_of(place: Path) -> set[str]:
    """Names of all files below a folder."""
    return {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}
