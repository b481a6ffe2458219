"""A run whose steps are run here, and what they leave of its lease."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from components.common.records import StepRecord, step
from components.common.trigger_settings import LeaseSettings
from components.snapshot_data.step import Outputs
from components.snapshot_data.step import run as snapshot_data
from infra.folder import FolderStore
from infra.lease import KEY, Lease
from infra.lease_record import Holder, Seen
from tests.small_project.data_steps import as_a_step_of_its_own

RUN, OTHER = "20250101T000000Z-0001", Holder(run="another", who="eve", where="laptop")
SHORT = ["lease.seconds=5", "lease.between=600"]
SETTINGS = LeaseSettings(seconds=5, between=600)


@contextmanager
def in_a_run() -> Iterator[None]:
    """Let steps that are run here be those of RUN, in the project's own folder."""
    with as_a_step_of_its_own():
        for name in ("EVERTRAIN_HOME", "EVERTRAIN_STORE", "EVERTRAIN_PLACE"):
            os.environ.pop(name, None)
        os.environ["EVERTRAIN_RUN_ID"] = RUN
        yield


def store_of(project: Path) -> FolderStore:
    return FolderStore(project / ".evertrain" / "store")


def record_of(project: Path, name: str, run: str = RUN) -> StepRecord:
    return StepRecord.model_validate_json(store_of(project).get(f"runs/{run}/{name}.json"))


def take(project: Path, run: str = RUN, *more: str) -> Outputs:
    os.environ["EVERTRAIN_RUN_ID"] = run
    return snapshot_data(
        str(project), "", "", [*SHORT, *more], False, str(project / "snapshot.json")
    )


def do(project: Path, name: str = "split_data") -> Any:
    return step(name, project=str(project), store="", overrides=SHORT, run_key="k")


def seen(project: Path) -> Seen:
    found = Lease(store_of(project)).look()
    assert found is not None
    return found


def no_sign_of_life(project: Path) -> None:
    """As if a long time had gone by since the last one: a folder's clock is that of its files."""
    os.utime(project / ".evertrain" / "store" / KEY, (0, 0))
