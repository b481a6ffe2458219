"""The three data steps of a project, run in this process up to the one that stops."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from components.common.records import StepRecord, read_records
from infra.folder import FolderStore

RUN = "20250101T000000Z-0001"  # the id under which steps run here


class Metrics:
    """What KFP hands a step for its figures."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.logged: dict[str, float] = {}

    def log_metric(self, metric: str, value: float) -> None:
        self.logged[metric] = value


def run_data_steps(project: Path, *overrides: str) -> dict[str, StepRecord]:
    """Take a snapshot of a project's data, validate it, split it; return the steps' records.

    A step that stops ends the run here as it does in the pipeline: later ones leave no record.
    """
    from components.snapshot_data import step as snapshot_data
    from components.split_data import step as split_data
    from components.validate_data import step as validate_data

    place, given = project / "artifacts", list(overrides)
    place.mkdir(exist_ok=True)
    names = ("snapshot", "validated", "docs", "splits")
    snapshot, validated, docs, splits = (str(place / f"{name}.json") for name in names)
    name = str(project)
    with as_a_step_of_its_own():
        try:
            seen = snapshot_data.run(name, "", "", given, True, snapshot)
            key = seen.run_key
            metrics = Metrics(place / "metrics")
            validate_data.run(name, "", given, key, seen.data_digest, validated, docs, metrics)
            split_data.run(name, "", given, key, validated, splits, metrics)
        except SystemExit:
            pass
    return read_records(FolderStore(project / ".evertrain" / "store"), RUN)


@contextmanager
def as_a_step_of_its_own() -> Iterator[None]:
    """Give a step its run's id, and take back what it does to its process."""
    handlers = [(each, signal.getsignal(each)) for each in (signal.SIGTERM, signal.SIGINT)]
    before = dict(os.environ)
    os.environ["EVERTRAIN_RUN_ID"] = RUN
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        for number, handler in handlers:
            signal.signal(number, handler)
