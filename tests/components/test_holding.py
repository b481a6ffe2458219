"""A step keeps its run's lease alive, and one that has lost it writes nothing any more."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lease_steps import (
    OTHER,
    RUN,
    SETTINGS,
    SHORT,
    do,
    in_a_run,
    record_of,
    seen,
    store_of,
    take,
)

from components.common.holding import Holding
from components.common.records import StepContext
from components.report_run.step import let_go
from infra.errors import LeaseLost, OutsideError
from infra.lease import KEY, Lease
from infra.lease_record import Holder, Seen
from tests.small_project.command import environment

# A step that writes into the object store as fast as it can, or sits still.
STEP = """
import sys, time
from components.common.records import step
project, writes, overrides = sys.argv[1], sys.argv[2] == "writes", sys.argv[3:]
given = dict(project=project, store="", overrides=overrides)
with step("snapshot_data", **given) as context:
    assert context.holding.take(floor=0) is None
with step("split_data", **given, run_key="k") as context:
    print("works", flush=True)
    for number in range(10**9):
        if writes:
            context.store.put(f"work/{number}", b"x")
        time.sleep(0.02)
"""


@pytest.fixture(autouse=True)
def _in_a_run() -> Iterator[None]:
    with in_a_run():
        yield


def wait_for(what: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)


@contextmanager
def working(project: Path, how: str) -> Iterator[subprocess.Popen[str]]:
    """Run STEP until it works; end it with the block."""
    process = subprocess.Popen(
        [sys.executable, "-c", STEP, str(project), how, *SHORT],
        env=environment() | {"EVERTRAIN_RUN_ID": RUN}, cwd="/", text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "works\n", process.communicate()[1]
        yield process
    finally:
        process.kill()
        process.communicate()


def work(project: Path) -> list[str]:
    return [info.key for info in store_of(project).list("work/")]


def test_a_step_that_was_paused_for_too_long_writes_nothing_when_it_goes_on(
    fresh_project: Path,
) -> None:
    lease = Lease(store_of(fresh_project))
    with working(fresh_project, "writes") as process:
        wait_for(lambda: len(work(fresh_project)) > 3)
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: not isinstance(lease.take(OTHER, seconds=60), Seen))
        before = work(fresh_project)
        process.send_signal(signal.SIGCONT)
        _, said = process.communicate(timeout=30)
        assert process.returncode == 3, said
        assert work(fresh_project) == before, "not one write more"
    record = record_of(fresh_project, "split_data")
    assert (record.status, record.exit_code) == ("failed", 3)
    assert record.reason.startswith(f"run {RUN} has lost the lease: run another of eve@laptop hold")
    assert record.hint
    assert f"split_data: {record.reason}" in said
    assert seen(fresh_project).record.holder.run == "another", "it let go of nothing"


def test_a_step_that_writes_nothing_notices_by_its_next_sign_of_life(fresh_project: Path) -> None:
    lease = Lease(store_of(fresh_project))
    signs: set[str] = set()

    def lives() -> bool:
        signs.add(seen(fresh_project).record.nonce)
        return len(signs) > 2

    with working(fresh_project, "sits still") as process:
        wait_for(lives)
        lease.release(RUN, fence="eve took it", broken="eve")
        _, said = process.communicate(timeout=30)
    assert process.returncode == 3, said
    assert "has lost the lease: eve took it away" in said
    assert "Traceback" not in said


def test_between_steps_it_lives_as_long_as_the_next_pod_may_take(fresh_project: Path) -> None:
    first = take(fresh_project)
    assert first.Output == "train"
    for name in ("validate_data", "split_data"):
        assert 590 < seen(fresh_project).expires_in <= 599
        with do(fresh_project, name) as context:
            assert context.holding.token == 1
            assert seen(fresh_project).expires_in <= 4, "beside a step, a sign of life is due"
    let_go(context.project, store_of(fresh_project), run=RUN)
    assert seen(fresh_project).free
    assert seen(fresh_project).record.fence == ""


def test_a_failed_step_leaves_it_to_its_next_attempt(fresh_project: Path) -> None:
    take(fresh_project)

    def fail() -> None:
        with do(fresh_project):
            raise OutsideError("no server")

    with pytest.raises(SystemExit):
        fail()
    assert seen(fresh_project).expires_in > 590
    with do(fresh_project) as context:
        assert context.holding.token == 1


def test_a_later_step_of_a_run_that_lost_it_does_not_begin(
    fresh_project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    take(fresh_project)
    lease = Lease(store_of(fresh_project))
    lease.release(RUN, fence="broken")
    lease.take(OTHER, seconds=60)
    with pytest.raises(SystemExit) as ended, do(fresh_project):
        raise AssertionError("never reached")
    assert ended.value.code == 3
    assert "has lost the lease: run another of eve@laptop holds it" in capsys.readouterr().err
    assert record_of(fresh_project, "split_data").status == "failed"


def test_a_run_that_finds_another_one_is_skipped_and_says_who_it_is(fresh_project: Path) -> None:
    take(fresh_project)
    store_of(fresh_project).delete("snapshots/latest.json")
    skipped = take(fresh_project, "second")
    assert skipped == ("busy", "", "")
    record = record_of(fresh_project, "snapshot_data", "second")
    assert (record.status, record.exit_code, record.figures) == ("skipped", 0, {})
    assert record.reason.startswith(f"run {RUN} of ")
    assert "holds the lease since 20" in record.reason
    assert store_of(fresh_project).info("snapshots/latest.json") is None, "no data was looked at"
    assert seen(fresh_project).record.holder.run == RUN


def test_a_queued_run_waits_and_then_sees_the_data_that_is_there(fresh_project: Path) -> None:
    first = take(fresh_project)
    program = (
        "import sys; from components.snapshot_data.step import run;"
        "print(run(sys.argv[1], '', '', sys.argv[3:], False, sys.argv[2]).data_digest)"
    )
    queue = [*SHORT, "lease.busy=queue", "lease.patience=60"]
    waiting = subprocess.Popen(
        [sys.executable, "-c", program, str(fresh_project), str(fresh_project / "s.json"), *queue],
        env=environment() | {"EVERTRAIN_RUN_ID": "queued"}, cwd="/", text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        store = store_of(fresh_project)
        wait_for(lambda: store.info("runs/queued/snapshot_data.json") is not None)
        wait_for(lambda: record_of(fresh_project, "snapshot_data", "queued").reason != "")
        record = record_of(fresh_project, "snapshot_data", "queued")
        assert record.status == "running"
        assert record.reason.startswith(f"waits for its turn: run {RUN} of ")
        (fresh_project / "data" / "2025-02.parquet").unlink()
        Lease(store).release(RUN)
        out, said = waiting.communicate(timeout=60)
    finally:
        waiting.kill()
        waiting.communicate()
    assert waiting.returncode == 0, said
    assert f"lease: waits for its turn: run {RUN} of " in said
    assert out.strip() not in ("", first.data_digest), "what had gone meanwhile is not in it"
    record = record_of(fresh_project, "snapshot_data", "queued")
    assert (record.status, record.figures["object_count"]) == ("done", 1)
    assert record.reason.startswith("waited ")


def test_patience_that_is_at_its_end_is_a_skip(fresh_project: Path) -> None:
    take(fresh_project)
    assert take(fresh_project, "second", "lease.busy=queue", "lease.patience=1").Output == "busy"
    record = record_of(fresh_project, "snapshot_data", "second")
    assert record.status == "skipped"
    assert "; this one waited 1 s" in record.reason


def test_what_a_step_has_started_writes_only_as_long_as_the_run_has_the_lease(
    fresh_project: Path,
) -> None:
    store = store_of(fresh_project)
    lease = Lease(store)
    lease.take(Holder(run=RUN), seconds=5)
    rank = Holding.joined(store, run=RUN, settings=SETTINGS, token=1)
    rank.ensure()
    lease.release(RUN)
    rank.ensure()  # a sign of life was fresh: no question was asked
    later = Holding.joined(store, run=RUN, settings=SETTINGS, token=1)
    with pytest.raises(LeaseLost):
        later.ensure()
    Holding.joined(store, run=RUN, settings=SETTINGS, token=0).ensure()


def test_a_store_that_is_away_for_a_while_does_not_end_a_step(
    fresh_project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    take(fresh_project)
    file = fresh_project / ".evertrain" / "store" / KEY
    aside = file.with_name("aside")

    def away_for(seconds: float, context: StepContext) -> None:
        file.rename(aside)
        file.symlink_to(file)  # what is there cannot be read, and says nothing
        time.sleep(seconds)
        with pytest.raises(OutsideError):
            context.holding.confirm()
        file.unlink()
        aside.rename(file)

    with do(fresh_project) as context:
        away_for(2.5, context)
        time.sleep(2)
        context.store.put("work/1", b"x")
    assert record_of(fresh_project, "split_data").status == "done"
    assert capsys.readouterr().err.count("no sign of life could be given") == 1
