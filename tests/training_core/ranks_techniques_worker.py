"""What each process of the tests of techniques does, scenario by scenario (ranks.py)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ranks_models import blocks
from ranks_worker import COUNT, NORMS, said, strategy_of, whole
from torch import Tensor
from torch.distributed.tensor import DTensor
from training_samples import CPU, Sales, examples_of, trainer

from training_core.evaluation import evaluate
from training_core.examples import Examples
from training_core.loop import Trainer
from training_core.parallel.single import SingleProcess
from training_core.parallel.topology import CanonicalMicrobatches

# ---- averaged weights --------------------------------------------------------------------------


def averages(folder: Path) -> dict[str, Any]:
    """Train with averaged weights: undisturbed, and stopped between two evaluations."""
    found: dict[str, Any] = {}
    for kind in ("ddp", "fsdp"):
        for averaging in (
            {"kind": "ema", "decay": 0.9, "warmup": False},
            {"kind": "swa", "start": 0.5, "every": 1},
        ):
            changes: dict[str, Any] = {
                **NORMS, "parallel": {"strategy": kind}, "averaging": averaging,
            }  # fmt: skip
            name = f"{kind} {averaging['kind']}"
            passed: list[dict[str, Tensor]] = []
            runs = []
            for place, stop in (("whole", 0), ("run", 9), ("run", 0)):
                strategy = strategy_of(**changes)
                run = trainer(
                    folder / name / place,
                    model=blocks(norm=True, dropout=0.1),
                    task=Sales(),
                    count=COUNT,
                    strategy=strategy,
                    **changes,
                )
                run.should_stop = lambda run=run, stop=stop: run.outcome.steps >= stop > 0
                if stop:
                    run.state._patience, run.state.next_question = stop, stop
                if place == "whole":
                    _keep(run, passed)
                run.fit()
                runs.append({**said(run), **_average_of(run)})
            found[name] = (runs[0], runs[2], passed)
            # evaluated, and not saved, which by the way would put gathered weights away
            run = trainer(
                model=blocks(norm=True, dropout=0.1),
                task=Sales(),
                count=COUNT,
                strategy=strategy_of(**changes),
                **changes,
            )
            run.fit()
            runs[0]["unsaved"] = whole(run)
    return found


def _keep(run: Trainer, passed: list[dict[str, Tensor]]) -> None:
    update = run.update.step

    def step(*, measure: bool = False) -> None:
        update(measure=measure)
        trained = dict(run.module.named_parameters())
        passed.append({n: v for n, v in whole(run).items() if n in trained})

    run.update.step = step  # type: ignore[method-assign]


def _average_of(run: Trainer) -> dict[str, Any]:
    average = {
        name.removeprefix("average."): value.full_tensor() if isinstance(value, DTensor) else value
        for name, value in run.techniques.tensors().items()
    }
    manifests = run.checkpoints.manifests() if run.checkpoints else []
    read = blocks(norm=True)
    state = run.checkpoints.model_state(manifests[-1]) if run.checkpoints else None
    read.load_state_dict(state or {})
    return {
        "average": {name: value.clone() for name, value in average.items()},
        "evaluated": evaluate(run.task, read, run.validation),
    }


# ---- synchronised BatchNorm --------------------------------------------------------------------

# the last step of an epoch has two rows, so of four ranks two have none
JOINED: dict[str, Any] = {
    "count": 42,
    "epochs": 2,
    "optimiser": {"name": "sgd", "lr": 0.05},
    "log_every": 4,
}


def synchronised(folder: Path) -> dict[str, Any]:
    """Train with BatchNorm over all ranks; also stopped between two evaluations."""
    found: dict[str, Any] = {}
    for kind in ("ddp", "fsdp"):
        changes: dict[str, Any] = {
            **JOINED,
            "parallel": {"strategy": kind},
            "regularisation": {"batch_norm": "synchronised"},
        }
        for place, stop in (("whole", 0), ("run", 9), ("run", 0)):
            strategy = strategy_of(**{n: v for n, v in changes.items() if n != "count"})
            run = trainer(
                folder / kind / place, model=blocks(norm=True), strategy=strategy, **changes
            )
            run.should_stop = lambda run=run, stop=stop: run.outcome.steps >= stop > 0
            if stop:
                run.state._patience, run.state.next_question = stop, stop
            run.fit()
            found[f"{kind} {place}"] = said(run)
    return found


# ---- curriculum by loss ------------------------------------------------------------------------


def by_loss(folder: Path) -> dict[str, Any]:
    """Train with a curriculum by loss; also stopped in the middle of its third epoch."""
    found: dict[str, Any] = {}
    common: dict[str, Any] = {
        "epochs": 4,
        "evaluate_every": 7,
        "sampling": {"curriculum": "loss", "start_share": 0.4, "full_at": 1.0},
    }
    for kind in ("ddp", "fsdp"):
        changes = {**common, "parallel": {"strategy": kind}}
        for place, stop in (("whole", 0), ("run", 14), ("run", 0)):
            run = trainer(
                folder / kind / place,
                model=blocks(dropout=0.1),
                task=Sales(),
                count=COUNT,
                strategy=strategy_of(**changes),
                **changes,
            )
            run.should_stop = lambda run=run, stop=stop: run.outcome.steps >= stop > 0
            if stop:
                run.state._patience, run.state.next_question = stop, stop
            run.fit()
            found[f"{kind} {place}"] = said(run)
        mine = run.techniques.state_dict()["curriculum.losses"]
        found[f"{kind} whole"]["curricula"] = run.strategy.gather(mine)
    changes = {**common, "deterministic": "topology"}
    run = trainer(model=blocks(), count=COUNT, strategy=strategy_of(**changes), **changes)
    run.fit()
    found["topology"] = said(run)
    alone = CanonicalMicrobatches(SingleProcess(CPU), parts=4, seed=0)
    run = trainer(model=blocks(), count=COUNT, strategy=alone, **changes)
    run.fit()
    found["topology alone"] = [point.loss for point in run.outcome.curve]
    return found


# ---- distillation ------------------------------------------------------------------------------

TAUGHT: dict[str, Any] = {
    "distillation": {"teacher": "champion", "weight": 0.6, "temperature": 2.0},
}


def sales_taught(count: int) -> Examples:
    """Rows with a teacher that goes by their first number."""
    examples = examples_of(Sales(), count)[1]
    return replace(examples, teacher=2 * examples.arrays["numbers"][:, 0])


def distilled(folder: Path) -> dict[str, Any]:
    """Learn from a teacher; also stopped between two evaluations."""
    found: dict[str, Any] = {}
    for kind in ("ddp", "fsdp"):
        changes = {**TAUGHT, "parallel": {"strategy": kind}}
        for place, stop in (("whole", 0), ("run", 9), ("run", 0)):
            run = trainer(
                folder / kind / place, model=blocks(), train=sales_taught(COUNT),
                strategy=strategy_of(**changes), **changes,
            )  # fmt: skip
            run.should_stop = lambda run=run, stop=stop: run.outcome.steps >= stop > 0
            if stop:
                run.state._patience, run.state.next_question = stop, stop
            run.fit()
            found[f"{kind} {place}"] = said(run)
    alone = trainer(model=blocks(), train=sales_taught(COUNT), **TAUGHT)
    alone.fit()
    found["alone"] = [point.loss for point in alone.outcome.curve]
    return found
