"""What each process of the tests with several ranks does, scenario by scenario (ranks.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from ranks_models import Averaging, Backwards, Blocks, blocks
from torch import Tensor
from torch.distributed.tensor import DTensor
from training_samples import CPU, Certain, Noisy, Sales, examples_of, settings, trainer

from infra.folder import FolderStore
from training_core.checkpoints.catalogue import Checkpoints
from training_core.errors import EvertrainError
from training_core.evaluation import evaluate
from training_core.loop import Trainer
from training_core.parallel.choose import choose_strategy
from training_core.parallel.ddp import DataParallel
from training_core.parallel.strategy import Strategy

COUNT = 41  # in batches of 8 the last one of an epoch has a single row, so most ranks have none


def whole(run: Trainer) -> dict[str, Tensor]:
    """The weights, put together where they are sharded; a collective."""
    return {
        name: (value.full_tensor() if isinstance(value, DTensor) else value).detach().clone()
        for name, value in run.module.state_dict().items()
    }


def said(run: Trainer) -> dict[str, Any]:
    return {
        "weights": whole(run),
        "losses": [point.loss for point in run.outcome.curve],
        "norms": [point.gradient_norm for point in run.outcome.curve],
        "updates": [point.update_norm for point in run.outcome.curve],
        "evaluations": run.outcome.evaluations,
        "steps": run.outcome.steps,
        "skipped": run.outcome.skipped_steps,
        "resumed_from": run.outcome.resumed_from,
        "damaged": run.strategy.gather(run.checkpoints.damaged if run.checkpoints else []),
    }


def strategy_of(**changes: Any) -> Strategy:
    return choose_strategy(CPU, settings(**changes))


# ---- agreement with one process --------------------------------------------------------------


def agreement(folder: Path) -> dict[str, Any]:
    """Train the same on several ranks in several ways."""
    found: dict[str, Any] = {}
    for kind in ("ddp", "fsdp"):
        for accumulation in (1, 3):
            changes: dict[str, Any] = {"accumulation": accumulation, "parallel": {"strategy": kind}}
            run = trainer(model=blocks(), count=COUNT, strategy=strategy_of(**changes), **changes)
            run.fit()
            found[f"{kind} {accumulation}"] = said(run)
    for optimiser in ("sgd", "nadam", "muon"):
        changes = {"optimiser": {"name": optimiser, "lr": 0.01}, "parallel": {"strategy": "fsdp"}}
        run = trainer(model=blocks(), count=COUNT, strategy=strategy_of(**changes), **changes)
        run.fit()
        found[f"fsdp {optimiser}"] = said(run)
    changes = {"parallel": {"strategy": "ddp", "static_graph": True}}
    run = trainer(model=blocks(), count=COUNT, strategy=strategy_of(**changes), **changes)
    run.fit()
    found["ddp static"] = said(run)
    changes = {"activation_checkpointing": True, "parallel": {"strategy": "fsdp"}}
    run = trainer(model=blocks(), count=COUNT, strategy=strategy_of(**changes), **changes)
    run.fit()
    found["fsdp recomputed"] = said(run)
    sharded = [p for p in run.module.parameters() if isinstance(p, DTensor)]
    state = [v for o in run.update.optimisers for s in o.state.values() for v in s.values()]
    found["own numbers"] = run.strategy.gather(
        [
            sum(p.to_local().numel() for p in sharded),
            sum(v.to_local().numel() for v in state if isinstance(v, DTensor)),
        ]
    )
    found["all numbers"] = sum(p.numel() for p in sharded)
    return found


# ---- evaluation, statistics, faults ----------------------------------------------------------


def augmented(folder: Path) -> dict[str, Any]:
    """Train with augmentation on all ranks, and on rank 0 alone with as many microbatches."""
    strategy = strategy_of()
    together = trainer(task=Noisy(), strategy=strategy)
    together.fit()
    alone = trainer(task=Noisy(), accumulation=strategy.world_size)
    alone.fit()
    return {"ranks": whole(together), "one process": whole(alone)}


def faults(folder: Path) -> dict[str, Any]:
    """Evaluation, pooled statistics, stops, damage and failures on two ranks."""
    found: dict[str, Any] = {}
    strategy = strategy_of()
    assert isinstance(strategy, DataParallel)
    common: dict[str, Any] = {"count": COUNT, "strategy": strategy}

    run = trainer(noting=True, **common)
    evaluate(run.task, run.module, run.validation, strategy=strategy)
    found["evaluated"] = strategy.gather(run.module.evaluated)

    run = trainer(model=blocks(norm=True), count=COUNT, strategy=strategy, **NORMS)
    norm = run.module.blocks[0][1]
    norm.running_mean.fill_(float(strategy.rank))
    norm.running_var.fill_(2.0)
    strategy.synchronise_statistics()
    found["statistics"] = [norm.running_mean.clone(), norm.running_var.clone()]

    dropout: dict[str, Any] = {**common, "task": Sales()}  # its masks need each rank's state

    def fit(name: str, place: str, stop_at: int = 0) -> Trainer:
        norms = {"model": blocks(norm=True, dropout=0.1), **NORMS} if name == "norms" else {}
        run = trainer(folder / name / place, **dropout, **norms)
        run.should_stop = lambda: strategy.rank == 1 and run.outcome.steps >= stop_at > 0
        run.fit()
        return run

    for name in ("dropout", "norms"):
        found[f"{name} undisturbed"] = said(fit(name, "undisturbed"))
        found[f"{name} stopped"] = said(fit(name, "resumed", stop_at=5))
        found[f"{name} resumed"] = said(fit(name, "resumed"))

    found |= _kept_apart(folder / "buffers", strategy)
    found["bf16 norms"] = _sixteen_bits_with_norms()
    run = topology_trainer(None, strategy_of(**TOPOLOGY), seed=3 + strategy.rank)
    found["first sums"] = strategy.gather(
        [float(p.double().sum()) for p in run.module.parameters()]
    )

    place = folder / "damaged"
    run = trainer(place, **dropout)
    run.should_stop = lambda: run.outcome.steps >= 5
    run.fit()
    if strategy.rank == 0:
        (shard,) = place.glob(f"run/{run.outcome.steps:09d}/shard-1.*.bin")
        shard.write_bytes(shard.read_bytes()[:-1])
    strategy.gather(None)
    run = trainer(place, **dropout)
    run.fit()
    found["damaged"] = said(run)

    kind = _FailingStore if strategy.rank == 1 else FolderStore
    run = trainer(place=Checkpoints(kind(folder / "failing"), "run"), **common)
    try:
        run.fit()
    except (EvertrainError, MemoryError) as error:
        found["failing"] = strategy.gather(type(error).__name__)

    for kind_of in ("ddp", "fsdp"):
        found[f"fp16 {kind_of}"] = _overflow(kind_of, infinite=True)
        found[f"fp16 {kind_of} finite"] = _overflow(kind_of, infinite=False)
    return found


def _kept_apart(folder: Path, strategy: Strategy) -> dict[str, Any]:
    sums = []
    for place, stop_at in (("whole", 0), ("resumed", 6), ("resumed", 0)):
        run = trainer(folder / place, model=Averaging(), count=COUNT, strategy=strategy)
        run.should_stop = lambda run=run, at=stop_at: run.outcome.steps >= at > 0
        run.fit()
        sums.append([run.module.seen.tolist(), float(whole(run)["inner.head.weight"].sum())])
    return {"own buffers": strategy.gather(sums)}


def _sixteen_bits_with_norms() -> list[float]:
    changes: dict[str, Any] = {**NORMS, "precision": "bf16", "parallel": {"strategy": "fsdp"}}
    strategy = strategy_of(**changes)
    run = trainer(model=blocks(norm=True), count=COUNT, strategy=strategy, **changes)
    run.fit()
    return [point.loss for point in run.outcome.curve]


class _FailingStore(FolderStore):
    """Fails without a word, on one rank."""

    def put(self, key: str, data: Any) -> None:
        raise MemoryError


class _Infinite(Certain):
    """One row of the split has an infinite loss."""

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        values = super().loss(outputs, target)
        return values * torch.where(target > 5, torch.inf, 1.0)


def _overflow(kind: str, *, infinite: bool) -> dict[str, Any]:
    changes: dict[str, Any] = {
        "precision": "fp16", "epochs": 1, "log_every": 1, "parallel": {"strategy": kind},
    }  # fmt: skip
    _, examples = examples_of(Certain(), COUNT)
    if infinite:
        examples.target[0] = 9.0
    strategy = strategy_of(**changes)
    run = trainer(
        task=_Infinite(), model=blocks(), train=examples, count=COUNT, strategy=strategy, **changes
    )
    run.fit()
    return {
        "skipped": strategy.gather(int(run.update.skipped.item())),
        "scales": strategy.gather(run.precision.scaler.get_scale()),
        "finite": all(bool(value.isfinite().all()) for value in whole(run).values()),
        "sums": strategy.gather(sum(float(value.double().sum()) for value in whole(run).values())),
    }


# ---- the same weights on any number of ranks -------------------------------------------------

# BatchNorm needs two rows: 16, 16 and 9 in four parts
NORMS: dict[str, Any] = {"batch_size": 16, "epochs": 4}
TOPOLOGY: dict[str, Any] = {"deterministic": "topology", "log_every": 3, **NORMS}
STOPS = {2: 4, 4: 9}  # ranks: the step at which they are stopped


def topology_trainer(folder: Path | None, strategy: Strategy, *, seed: int = 3) -> Trainer:
    """Dropout and BatchNorm, on 41 rows; another seed gives other initial weights."""
    torch.manual_seed(seed)
    model = Blocks(norm=True, dropout=0.2)
    return trainer(folder, model=model, count=COUNT, strategy=strategy, **TOPOLOGY)


def going_on(folder: Path) -> dict[str, Any]:
    """DDP on more than two ranks, undisturbed, and stopped on the way."""
    strategy = strategy_of()

    def fit(place: str, stop_at: int = 0) -> dict[str, Any]:
        torch.manual_seed(3)
        run = trainer(folder / place, model=Backwards(), count=COUNT, strategy=strategy)
        run.should_stop = lambda: run.outcome.steps >= stop_at > 0
        run.fit()
        return said(run)

    return {
        "undisturbed": fit("undisturbed"),
        "stopped": fit("resumed", stop_at=5),
        "resumed": fit("resumed"),
    }


def topology(folder: Path) -> dict[str, Any]:
    """Train undisturbed, and go on with what other ranks have begun, to a stop."""
    strategy = strategy_of(**TOPOLOGY)
    run = topology_trainer(None, strategy)
    run.fit()
    found = {"undisturbed": said(run)}
    run = topology_trainer(folder / "elastic", strategy)
    run.should_stop = lambda: run.outcome.steps >= STOPS[strategy.world_size]
    run.fit()
    return {**found, "elastic": said(run)}


def hybrid(folder: Path) -> dict[str, Any]:
    """HSDP: two groups of two."""
    changes: dict[str, Any] = {"parallel": {"strategy": "fsdp", "replicas": 2}}
    run = trainer(model=blocks(), count=COUNT, strategy=strategy_of(**changes), **changes)
    run.fit()
    return {"hybrid": said(run), **topology(folder)}
