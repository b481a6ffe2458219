"""What a training process does, the same for one process and for each rank under torchrun."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from components.common.holding import guarded
from components.common.layout import (
    checkpoint_prefix,
    fetch_object,
    home,
    project_store,
    tracking_uri,
)
from components.common.project import open_project
from components.common.records import threads_of
from components.common.training_start import TrainingStart, TrainingTeacher
from components.common.watchdog import end_with_parent
from components.train_distributed.progress import Progress
from components.train_distributed.results import keep_result, made_of
from components.train_distributed.starting import begin, keep_base
from components.train_distributed.stop import Marker, StopRequest
from components.train_distributed.told import Told
from components.train_distributed.tracker import Tracker


def train(
    *,
    project: str,
    store: str,
    overrides: list[str],
    run_key: str,
    splits: dict[str, Any],
    lease: int = 0,
    start: dict[str, Any] | None = None,
    teacher: dict[str, Any] | None = None,
    trial: dict[str, Any] | None = None,
    until: int = 0,
) -> dict[str, Any]:
    """Train to the end and return what happened, as plain data (the same on every rank).

    Args:
        project, store, overrides, run_key: As of the step.
        splits: What split_data left.
        lease: Number of the run's lease, without which no checkpoint is written; 0: there is none.
        start: What snapshot_data has settled (`TrainingStart`); None: the network as initialised.
        teacher: What snapshot_data has settled (`TrainingTeacher`); None: labels alone teach.
        trial: Of a training beside the run's own: `name` and `tags` of its run in MLflow, and of a
            search (`components/tune/`) the file that evaluations are `told` in.
        until: As of the trainer.

    Raises:
        TrainingFailed: It diverged, or a checkpoint could not be written.
        OutsideError: The store failed; checkpoints are kept.
        KeyboardInterrupt: It was asked to stop, and has saved.
    """
    import pandas as pd
    import torch

    from components.train_distributed.feeding import first_examples, train_feed
    from components.train_distributed.teaching import Teacher
    from training_core.checkpoints.catalogue import Checkpoints
    from training_core.determinism import seed_everything
    from training_core.distillation.settings import DistillationSettings
    from training_core.examples import Examples
    from training_core.loop import Trainer
    from training_core.parallel.choose import choose_device, choose_strategy
    from training_core.prior_bias import set_prior_bias

    end_with_parent()
    opened = open_project(project, overrides=overrides)
    settings = opened.settings.training
    torch.set_num_threads(threads_of(settings))
    objects = guarded(project_store(opened, store), opened, token=lease)
    cache, task = home(opened) / "cache", opened.task()
    files = {
        part: fetch_object(objects, splits["parts"][part]["sha256"], cache)
        for part in ("train", "validation")
    }
    strategy = choose_strategy(choose_device(settings.device), settings)
    taught = Teacher.of(teacher, task, store=objects, cache=cache)
    if taught is None:  # a trial of a search has none, nor has the run before the first champion
        settings = settings.model_copy(update={"distillation": DistillationSettings()})
    time = opened.settings.data.time_column
    feed, preprocessor = train_feed(
        task, files["train"], settings, strategy, cache, time_column=time, teacher=taught
    )
    validation = Examples.from_frame(task, preprocessor, pd.read_parquet(files["validation"]))
    seed_everything(settings.seed)
    model = task.build_model(preprocessor)
    if settings.bias_from_prior:
        set_prior_bias(task, model, first_examples(feed, seed=settings.seed))
    settled = None if start is None else TrainingStart.model_validate(start)
    began = begin(
        model, preprocessor, task, start=settled, settings=settings, store=objects, cache=cache
    )
    parameters = sum(p.numel() for p in model.parameters())  # before they are sharded
    base = ""
    if settings.start.lora.rank and strategy.rank == 0:
        base = keep_base(model, objects, cache)
    checkpoints = Checkpoints(objects, checkpoint_prefix(run_key))
    stop = StopRequest()  # until here a signal ends it at once, whatever torch waits for
    tracker = Tracker.open(
        opened, uri=tracking_uri(opened), run_key=run_key, rank=strategy.rank, store=objects,
        name=(trial or {}).get("name", ""), tags=(trial or {}).get("tags", {}),
    )  # fmt: skip
    trainer = Trainer(
        task=task,
        model=model,
        train=feed,
        validation=validation,
        settings=settings,
        strategy=strategy,
        checkpoints=checkpoints,
        should_stop=stop,
        until=until,
    )
    progress = Progress.open(total_steps=trainer.end, rank=strategy.rank)
    for name in ("point", "evaluation", "rollback"):
        setattr(trainer, f"on_{name}", _both(getattr(tracker, name), getattr(progress, name)))
    if trial is not None and "told" in trial and strategy.rank == 0:
        told = Told(Path(trial["told"]), every=trainer.evaluate_every)
        trainer.on_evaluation = _both(trainer.on_evaluation, told.evaluation)
    marker = Marker(objects, checkpoint_prefix(run_key))
    try:
        outcome = trainer.fit()
    except Exception as error:
        tracker.close("FAILED", reason=str(error))
        raise
    finally:
        progress.close()
    if outcome.stop_reason == "asked to stop":
        if strategy.rank == 0:
            marker.leave(step=outcome.steps, samples=outcome.samples)
        tracker.close("KILLED", reason=outcome.stop_reason)
        strategy.close()
        raise KeyboardInterrupt
    if strategy.rank == 0:
        marker.remove()
    tracker.close("FINISHED", reason=outcome.stop_reason)
    strategy.close()
    result = {
        "preprocessor": preprocessor.state_dict(),
        "parameters": parameters,
        "start": began,
        "teacher": _words_of(teacher),
        "base": base,
        "processes": strategy.world_size,
        "device": strategy.device.type,
        "precision": trainer.precision.name,
        "averaging": settings.averaging.kind,
        "checkpoints": [m.step for m in checkpoints.manifests()],
        "damaged": checkpoints.damaged,
        "outcome": asdict(outcome),
    }
    if strategy.rank == 0:
        keep_result(objects, run_key, result, made_of=made_of(opened, splits))
    return result


def _words_of(teacher: dict[str, Any] | None) -> str:
    return "" if teacher is None else TrainingTeacher.model_validate(teacher).words


def _both(one: Any, other: Any) -> Any:
    def tell(*arguments: Any) -> None:
        one(*arguments)
        other(*arguments)

    return tell
