"""What a training process does, the same for one process and for each rank under torchrun."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from types import FrameType
from typing import Any

from components.common.layout import fetch_object, home, project_store, tracking_uri
from components.common.project import open_project
from components.common.records import threads_of
from components.common.watchdog import end_with_parent


def checkpoint_prefix(run_key: str) -> str:
    """Where a training's checkpoints lie."""
    return f"checkpoints/{run_key}"


def train(
    *,
    project: str,
    store: str,
    overrides: list[str],
    run_key: str,
    splits: dict[str, Any],
    progress: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
) -> dict[str, Any]:
    """Train to the end and return what happened, as plain data (the same on every rank).

    Raises:
        TrainingFailed: It diverged.
        OutsideError: The store or MLflow failed; checkpoints are kept.
    """
    import pandas as pd
    import torch

    from training_core.checkpoint import Checkpoints
    from training_core.examples import Examples
    from training_core.loop import Trainer, seed_everything
    from training_core.parallel import choose_device, choose_strategy

    end_with_parent()
    opened = open_project(project, overrides=overrides)
    settings = opened.settings.training
    torch.set_num_threads(threads_of(settings))
    objects, cache, task = project_store(opened, store), home(opened) / "cache", opened.task()

    def rows(part: str) -> pd.DataFrame:
        return pd.read_parquet(fetch_object(objects, splits["parts"][part]["sha256"], cache))

    train_rows = rows("train")
    preprocessor = task.preprocessor().fit(train_rows)
    strategy = choose_strategy(choose_device(settings.device))
    seed_everything(settings.seed)
    model = task.build_model(preprocessor)
    stop = _StopRequest()
    tracker = (
        _Tracker(opened.settings.name, tracking_uri(opened), opened, run_key)
        if strategy.rank == 0
        else None
    )
    checkpoints = Checkpoints(objects, checkpoint_prefix(run_key))
    trainer = Trainer(
        task=task,
        model=model,
        train=Examples.from_frame(task, preprocessor, train_rows),
        validation=Examples.from_frame(task, preprocessor, rows("validation")),
        settings=settings,
        strategy=strategy,
        checkpoints=checkpoints,
        on_point=lambda p: progress(
            f"step {p.step}/{trainer.total_steps}  loss {p.loss:.4f}  lr {p.lr:.2g}  "
            f"gradient {p.gradient_norm:.2f}  {p.samples_per_second:,.0f} samples/s"
        ),
        on_evaluation=lambda step, m: progress(f"step {step}  validation loss {m['loss']:.4f}"),
        should_stop=stop,
    )
    try:
        outcome = trainer.fit()
        if stop.asked:
            raise KeyboardInterrupt
        if tracker is not None:
            tracker.send(outcome, settings.model_dump(mode="json"))
    finally:
        strategy.close()
    return {
        "preprocessor": preprocessor.state_dict(),
        "parameters": sum(p.numel() for p in model.parameters()),
        "processes": strategy.world_size,
        "device": strategy.device.type,
        "precision": trainer.precision.name,
        "checkpoints": [m.step for m in checkpoints.manifests()],
        "damaged": checkpoints.damaged,
        "outcome": asdict(outcome),
    }


class _StopRequest:
    """SIGTERM asks the loop to save and end; a second one ends at once."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask)

    def _ask(self, signum: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __call__(self) -> bool:
        return self.asked


class _Tracker:
    """Sends the whole training to MLflow, in batches, when it has ended.

    Training never waits for MLflow: the checkpoints are the work, and if MLflow is away now the
    same command sends the metrics again, without training again.
    """

    def __init__(self, name: str, uri: str, project: Any, run_key: str) -> None:
        self.name, self.uri, self.run_key = name, uri, run_key
        self.experiment = project.settings.tracking.experiment or project.settings.name

    def send(self, outcome: Any, parameters: dict[str, Any]) -> None:
        from infra.tracking import Tracking

        tracking = Tracking(uri=self.uri, experiment=self.experiment)
        run = tracking.open_run(
            key=self.run_key,
            name=f"{self.name} {self.run_key[:8]}",
            tags={"evertrain.run": os.environ.get("EVERTRAIN_RUN_ID", "")},
        )
        tracking.log_params(run, _flat(parameters, "training"))
        rows = [
            (name, value, point.step)
            for point in outcome.curve
            for name, value in asdict(point).items()
            if name != "step"
        ]
        rows += [
            (f"validation_{name}", value, step)
            for step, values in outcome.evaluations
            for name, value in values.items()
        ]
        tracking.log_metrics(run, rows)
        tracking.finish(run, "FINISHED")


def _flat(values: dict[str, Any], prefix: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}.{key}"
        flat |= _flat(value, name) if isinstance(value, dict) else {name: value}
    return flat
