"""What a training process does, the same for one process and for each rank under torchrun."""

from __future__ import annotations

import os
import signal
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

from components.common.layout import fetch_object, home, project_store, tracking_uri
from components.common.project import open_project
from components.common.records import threads_of
from components.common.watchdog import end_with_parent
from components.train_distributed.progress import Progress
from components.train_distributed.tracker import Tracker

# A file whose appearance means that this machine will be taken away (a spot notice, written by
# whatever watches the provider's metadata service).
NOTICE = "EVERTRAIN_STOP_FILE"


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
) -> dict[str, Any]:
    """Train to the end and return what happened, as plain data (the same on every rank).

    Raises:
        TrainingFailed: It diverged.
        OutsideError: The store failed; checkpoints are kept.
        KeyboardInterrupt: It was asked to stop, and has saved.
    """
    import pandas as pd
    import torch

    from training_core.checkpoints.catalogue import Checkpoints
    from training_core.determinism import seed_everything
    from training_core.examples import Examples
    from training_core.loop import Trainer
    from training_core.parallel.choose import choose_device, choose_strategy

    end_with_parent()
    opened = open_project(project, overrides=overrides)
    settings = opened.settings.training
    torch.set_num_threads(threads_of(settings))
    objects, cache, task = project_store(opened, store), home(opened) / "cache", opened.task()

    def rows(part: str) -> pd.DataFrame:
        return pd.read_parquet(fetch_object(objects, splits["parts"][part]["sha256"], cache))

    train_rows = rows("train")
    preprocessor = task.preprocessor().fit(train_rows)
    strategy = choose_strategy(choose_device(settings.device), settings)
    seed_everything(settings.seed)
    model = task.build_model(preprocessor)
    stop = StopRequest()
    tracker = Tracker.open(opened, uri=tracking_uri(opened), run_key=run_key, rank=strategy.rank)
    checkpoints = Checkpoints(objects, checkpoint_prefix(run_key))
    trainer = Trainer(
        task=task,
        model=model,
        train=Examples.from_frame(task, preprocessor, train_rows),
        validation=Examples.from_frame(task, preprocessor, rows("validation")),
        settings=settings,
        strategy=strategy,
        checkpoints=checkpoints,
        should_stop=stop,
    )
    progress = Progress.open(total_steps=trainer.total_steps, rank=strategy.rank)
    trainer.on_point = lambda point: (progress.point(point), tracker.point(point))
    return {}


class StopRequest:
    """SIGTERM or a notice asks the loop to save and end; a second signal ends at once."""

    def __init__(self) -> None:
        self.asked = False
        self._notice = Path(os.environ[NOTICE]) if os.environ.get(NOTICE) else None
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask)

    def _ask(self, signum: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __call__(self) -> bool:
        if self._notice is not None and not self.asked and self._notice.exists():
            self.asked = True
        return self.asked
