"""How much two trainings differ by their seed alone: measured with replicas, and remembered.

A replica is the network of this run, trained with another seed on a share of the train split and
scored on the validation split, so that the holdout is not asked. The variance of k replicas' scores
has k - 1 degrees of freedom; those of earlier runs with the same settings and task are pooled with
it, and once there are enough of them no run trains replicas any more.

The noise errs on the side of caution, twice. Networks that were trained on fewer rows differ by
more. And some of what networks differ by on a fortnight is that one suits these days better, which
the interval of their difference holds as well; to subtract it, as an analysis of variance does,
left no noise at all on flights, and 17 % of twins were promoted over each other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

from components.common.decision_figures import NoiseFigure
from components.common.decision_settings import DecisionSettings
from components.common.layout import digest_of
from components.common.metrics import Floats
from components.common.shift import mean_shift
from infra.errors import OutsideError
from infra.store import ObjectStore
from training_core.settings import TrainingSettings
from training_core.task import Task

PREFIX = "noise/"
ENOUGH = 8  # degrees of freedom: the deviation is then known to a quarter


class Replicas(BaseModel):
    """The scores of one run's replicas.

    Attributes:
        metrics: Metric to its value on the validation split, replica by replica.
        rows: Each was trained on.
        shift: Mean difference of two replicas' predictions; None: not measured then.
    """

    model_config = ConfigDict(extra="forbid")

    format: Literal["evertrain/replicas/1"] = "evertrain/replicas/1"
    run: str
    rows: int
    metrics: dict[str, list[float]]
    shift: float | None = None


def settings_digest(training: TrainingSettings, decision: DecisionSettings, task: Task) -> str:
    """Hash of what the noise depends on, but for the data: the task and its training."""
    return digest_of(
        {
            "training": training.model_dump(mode="json", exclude={"seed", "checkpoints", "device"}),
            "share": decision.noise_share,
            "task": f"{type(task).__module__}.{type(task).__qualname__}",
            "options": task.options.model_dump(mode="json"),
        }
    )[:32]


def retraining_noise(
    store: ObjectStore,
    *,
    run: str,
    run_key: str,
    digest: str,
    settings: DecisionSettings,
    train: Callable[[], Replicas],
) -> NoiseFigure:
    """Return the noise: as the settings say, else pooled from replicas of this run and earlier.

    Args:
        store: The project's object store.
        run, run_key: Of this run.
        digest: Of the settings that the noise depends on.
        settings: Of the decision.
        train: Trains this run's replicas, if there are not enough.

    Raises:
        OutsideError: What an earlier run left cannot be read.
    """
    if settings.retraining_noise is not None:
        return NoiseFigure(deviation=settings.retraining_noise, source="settings")
    known = _known(store, digest)
    if run_key not in known and _freedom(known.values(), settings.metric) < ENOUGH:
        made = train()
        store.put(_key(digest, run_key), made.model_dump_json(indent=1).encode())
        known[run_key] = made
    return pooled(list(known.values()), settings.metric)


def pooled(known: Sequence[Replicas], metric: str) -> NoiseFigure:
    """Return the standard deviation of the difference of two trainings: √2 that of one.

    Raises:
        OutsideError: No two replicas have the metric.
    """
    squares, freedom, runs = 0.0, 0, []
    for each in known:
        values = each.metrics.get(metric, [])
        if len(values) > 1:
            mean = math.fsum(values) / len(values)
            squares += math.fsum((value - mean) ** 2 for value in values)
            freedom += len(values) - 1
            runs.append(each.run)
    if not freedom:
        raise OutsideError(
            f"no two replicas have a {metric}, so the retraining noise is not known",
            hint="say it in evertrain.yaml: decision.retraining_noise",
        )
    deviation = math.sqrt(2 * squares / freedom)
    shifts = [each.shift for each in known if each.shift is not None]
    return NoiseFigure(
        deviation=deviation, source="replicas", freedom=freedom, runs=runs,
        shift=math.fsum(shifts) / len(shifts) if shifts else None,
    )  # fmt: skip


def train_replicas(
    task: Task,
    train: pd.DataFrame,
    validation: pd.DataFrame,
    *,
    training: TrainingSettings,
    settings: DecisionSettings,
    run: str,
) -> Replicas:
    """Train this run's replicas, one after another, in this process.

    Args:
        task: The run's.
        train, validation: Raw rows of the splits; each replica is trained on a share of `train`
            of its own.
        training: The run's; the seed is replaced.
        settings: How many replicas, and the share.
        run: Kept beside the scores.
    """
    from components.common.metrics import measured

    metrics: dict[str, list[float]] = {}
    rows = min(len(train), max(2, round(settings.noise_share * len(train))))
    truth = task.target(validation)
    before: Floats | None = None
    shifts: list[float] = []
    for replica in range(settings.noise_replicas):
        planned = training.model_copy(update={"seed": (training.seed + 1 + replica) % 2**32})
        some = train.sample(n=rows, random_state=planned.seed).sort_index()
        predictions = _trained(task, some, validation, planned)
        for name, value in measured(task.kind, truth, predictions).items():
            metrics.setdefault(name, []).append(value)
        if before is not None:
            shifts.append(mean_shift(before, predictions, truth, kind=task.kind))
        before = predictions
    shift = math.fsum(shifts) / len(shifts)
    return Replicas(
        run=run, rows=rows, metrics=metrics, shift=shift if math.isfinite(shift) else None
    )


def _trained(
    task: Task, rows: pd.DataFrame, validation: pd.DataFrame, training: TrainingSettings
) -> Floats:
    """Train as planned, in one process; return the predictions of the validation split."""
    from training_core.determinism import seed_everything
    from training_core.evaluation import outputs_of
    from training_core.examples import Examples
    from training_core.loop import Trainer
    from training_core.parallel.choose import choose_device, choose_strategy
    from training_core.parallel.settings import ParallelSettings
    from training_core.prior_bias import set_prior_bias

    alone = {"processes": 1, "nodes": 1, "parallel": ParallelSettings()}
    planned = training.cold.model_copy(update=alone)
    preprocessor = task.preprocessor().fit(rows)
    examples, scored = (
        Examples.from_frame(task, preprocessor, each) for each in (rows, validation)
    )
    seed_everything(planned.seed)
    model = task.build_model(preprocessor)
    if planned.bias_from_prior:
        set_prior_bias(task, model, examples)
    strategy = choose_strategy(choose_device(planned.device), planned)
    trainer = Trainer(
        task=task, model=model, train=examples, validation=scored, settings=planned,
        strategy=strategy,
    )  # fmt: skip
    trainer.fit()
    predicted = task.predict(outputs_of(trainer.module, scored, device=strategy.device))
    return np.asarray(predicted.double().numpy())


def _known(store: ObjectStore, digest: str) -> dict[str, Replicas]:
    found = {}
    for info in store.list(f"{PREFIX}{digest}/"):
        try:
            replicas = Replicas.model_validate_json(store.get(info.key))
        except (ValidationError, json.JSONDecodeError) as error:
            raise OutsideError(
                f"{info.key} in {store.uri} holds no replicas' scores",
                hint="delete it: the next run trains replicas anew",
            ) from error
        found[info.key.rpartition("/")[2].removesuffix(".json")] = replicas
    return found


def _freedom(known: Any, metric: str) -> int:
    return sum(max(0, len(each.metrics.get(metric, [])) - 1) for each in known)


def _key(digest: str, run_key: str) -> str:
    return f"{PREFIX}{digest}/{run_key}.json"
