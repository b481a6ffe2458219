"""What each process of test_update_ranks.py does."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from training_core.errors import ConfigurationError
from training_core.optim.settings import OptimiserSettings
from training_core.optim.update import Update
from training_core.parallel.ddp import DataParallel
from training_core.parallel.fsdp import ShardedDataParallel
from training_core.parallel.strategy import Strategy

CPU = torch.device("cpu")
NAMES = get_args(OptimiserSettings.model_fields["name"].annotation)
STEPS, OVERFLOW = 6, 2


class Words(nn.Module):
    """Sizes that two ranks cannot share equally."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(7, 6)
        self.hidden = nn.Linear(6, 9)
        self.norm = nn.LayerNorm(9)
        self.more = nn.Linear(9, 10)
        self.head = nn.Linear(10, 1)

    def forward(self, words: Tensor) -> Tensor:
        hidden = torch.relu(self.norm(self.hidden(self.embedding(words))))
        outputs: Tensor = self.head(torch.relu(self.more(hidden)))
        return outputs


def train(
    strategy: Strategy, name: str, *, overflow: bool, scaled: bool, on_host: bool | None = None
) -> dict[str, Any]:
    """Six steps on eight examples each; in one of them the last rank's loss may be infinite."""
    model = strategy.prepare(Words())
    module = strategy.unwrapped(model)
    scaler = torch.amp.GradScaler("cpu", enabled=scaled, init_scale=1024.0, growth_interval=2)
    update = Update(
        module,
        OptimiserSettings.model_validate(
            {"name": name, "lr": 0.01, "clip_norm": 0.5, "clip_percentile": 90}
        ),
        strategy=strategy,
        scaler=scaler,
        on_host=on_host,
    )
    scales = []
    for step in range(STEPS):
        generator = torch.Generator().manual_seed(step)
        words = torch.randint(0, 7, (8,), generator=generator)[strategy.rank :: strategy.world_size]
        target = torch.randn(8, 1, generator=generator)[strategy.rank :: strategy.world_size]
        loss = (model(words) - target).square().sum() * (strategy.gradient_factor / 8)
        if overflow and step == OVERFLOW and strategy.rank == strategy.world_size - 1:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        update.step(measure=True)
        scales.append(scaler.get_scale())
    with torch.no_grad():
        weights = {
            name: (value.full_tensor() if isinstance(value, DTensor) else value).clone()
            for name, value in module.named_parameters()
        }
    return {
        "weights": weights,
        "norms": float(update.norm_sum),
        "moved": float(update.update_norm),
        "skipped": strategy.gather(float(update.skipped)),
        "scales": strategy.gather(scales),
    }


def update(folder: Path) -> dict[str, Any]:
    """Every optimiser, replicated and sharded, undisturbed and with an overflow."""
    strategies = {"ddp": DataParallel(CPU), "fsdp": ShardedDataParallel(CPU)}
    found: dict[str, Any] = {}
    for kind, strategy in strategies.items():
        for name in NAMES:
            for overflow in (False, True):
                key = f"{kind} {name} {'overflow' if overflow else 'whole'}"
                try:
                    found[key] = train(strategy, name, overflow=overflow, scaled=overflow)
                except ConfigurationError as error:
                    found[key] = str(error)
        found[f"{kind} adamw on the device"] = train(
            strategy, "adamw", overflow=True, scaled=True, on_host=False
        )
    return found
