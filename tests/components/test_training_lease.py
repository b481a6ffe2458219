"""A training whose run has lost the lease ends, whether it runs here or under torchrun."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_training_step import Step

from infra.folder import FolderStore
from infra.lease import Lease
from infra.lease_record import Holder
from tests.small_project.splits import write_splits

pytestmark = pytest.mark.slow

RUN = "20250101T000000Z-aaaa"


@pytest.mark.smoke  # two trainings; test_holding.py has the rest
@pytest.mark.timeout(200)
@pytest.mark.parametrize("processes", [1, 2])
def test_a_training_ends_when_its_run_has_lost_the_lease(
    fresh_project: Path, processes: int
) -> None:
    store = FolderStore(fresh_project / ".evertrain" / "store")
    lease = Lease(store)
    lease.take(Holder(run=RUN), seconds=600)
    settings = [f"training.processes={processes}", "training.epochs=4000", "lease.seconds=5"]
    step = Step(fresh_project, write_splits(fresh_project), RUN, *settings)
    step.wait_until_it_trains()
    lease.release(RUN, fence="eve took it", broken="eve")
    lease.take(Holder(run="another"), seconds=600)
    code = step.process.wait(timeout=120)
    assert step.processes() == []
    record = json.loads(step.record.read_text())
    assert (record["status"], record["exit_code"], code) == ("failed", 3, 3)
    assert record["reason"].startswith(f"run {RUN} has lost the lease: run another holds it since")
    seen = lease.look()
    assert seen is not None
    assert seen.record.holder.run == "another"
