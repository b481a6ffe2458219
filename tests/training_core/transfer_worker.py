"""What each process of test_transfer_ranks.py does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from ranks_models import blocks
from ranks_worker import said, strategy_of, whole
from torch.distributed.tensor import DTensor
from training_samples import trainer

from training_core.loop import Trainer

STARTS: dict[str, dict[str, Any]] = {
    "thawing": {"unfreeze": [0.3, 0.6], "lr_decay": 0.5, "freeze": ["blocks.0.*"]},
    "lora": {"lora": {"rank": 2}},
}
KINDS: dict[str, dict[str, Any]] = {
    "ddp": {"parallel": {"strategy": "ddp"}},
    "fsdp": {"parallel": {"strategy": "fsdp"}},
    "topology": {"deterministic": "topology"},
}
STOP = 9  # of 18 steps: within the schedule of thawing


def run_of(
    start: dict[str, Any], folder: Path | None, *, norm: bool = False, **changes: Any
) -> Trainer:
    given = {
        "epochs": 6,
        "batch_size": 16,
        "log_every": 1,
        "optimiser": {"lr": 0.02},
        "start": start,
        **changes,
    }
    model = blocks(norm=norm)
    torch.manual_seed(5)  # of the adapters
    return trainer(folder, model=model, count=48, **given)


def transfer(folder: Path) -> dict[str, Any]:
    """Train with each start on several ranks, whole and stopped within the schedule."""
    found: dict[str, Any] = {}
    for kind, changes in KINDS.items():
        for name, start in STARTS.items():
            for norm in (False, True):

                def make(
                    place: str, start: dict[str, Any] = start, norm: bool = norm,
                    changes: dict[str, Any] = changes, key: str = f"{kind}-{name}-{norm}",
                ) -> Trainer:  # fmt: skip
                    strategy = strategy_of(**changes)
                    return run_of(
                        start, folder / f"{key}-{place}", norm=norm, strategy=strategy, **changes
                    )

                undisturbed = make("whole")
                begun = whole(undisturbed)
                undisturbed.fit()
                state, named = (
                    undisturbed.update.optimisers[0].state,
                    [*undisturbed.module.named_parameters()],
                )
                found[f"{kind} {name} {norm}"] = {
                    "begun": begun,
                    "whole": said(undisturbed),
                    "frozen": [n for n, p in named if not p.requires_grad],
                    "state": [n for n, p in named if p in state],
                    "sharded": sum(isinstance(p, DTensor) for _, p in named),
                }
                if norm:
                    first = make("again")
                    first.should_stop = lambda run=first: run.outcome.steps >= STOP  # type: ignore[misc]
                    first.fit()
                    again = make("again")
                    again.fit()
                    stopped = {"stopped": first.outcome.steps, "again": said(again)}
                    found[f"{kind} {name} {norm}"] |= stopped
    return found
