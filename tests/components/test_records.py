"""Every step leaves its record, whatever the end, and does not outlive the command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.common.layout import key_record
from components.common.records import StepRecord, current_run, read_records, step
from components.common.run_record import compose
from components.common.watchdog import VARIABLE, is_alive, this_process
from infra.errors import ObjectMissing, OutsideError, StoreFull
from infra.folder import FolderStore
from tests.small_project.command import environment
from training_core.errors import ConfigurationError, StoppedByGate, TrainingFailed

RUN = "20250101T000000Z-abcd"


@pytest.fixture(autouse=True)
def in_a_run(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("EVERTRAIN_RUN_ID", RUN)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for name in ("EVERTRAIN_HOME", "EVERTRAIN_STORE"):
        monkeypatch.delenv(name, raising=False)
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def store_of(project: Path) -> FolderStore:
    return FolderStore(project / ".evertrain" / "store")


def record_of(project: Path, name: str) -> StepRecord:
    return StepRecord.model_validate_json(store_of(project).get(f"runs/{RUN}/{name}.json"))


def do(project: Path, name: str = "split_data", **settings: Any) -> Any:
    given = {"project": str(project), "store": "", "overrides": [], "run_key": "k", **settings}
    return step(name, **given)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (StoppedByGate("bad data", hint="mend it"), "stopped", 1),
        (TrainingFailed("it diverged", hint="lower the rate"), "failed", 1),
        (ConfigurationError("no such key", hint="look"), "failed", 2),
        (OutsideError("no server", hint="start it"), "failed", 3),
        (StoreFull("no space", hint="free some"), "failed", 3),
        (ObjectMissing("no object", hint="look"), "failed", 3),
        (OSError(5, "input/output error"), "failed", 3),
        (MemoryError(), "failed", 3),
        (KeyboardInterrupt(), "interrupted", 130),
        (ZeroDivisionError("division by zero"), "failed", 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_each_kind_of_end_has_its_status_and_exit_code(
    fresh_project: Path,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    status: str,
    code: int,
) -> None:
    def fail() -> None:
        with do(fresh_project):
            assert record_of(fresh_project, "split_data").status == "running"
            raise error

    with pytest.raises(SystemExit) as ended:
        fail()
    assert ended.value.code == code
    record = record_of(fresh_project, "split_data")
    assert (record.status, record.exit_code) == (status, code)
    assert record.reason
    assert record.hint
    said = capsys.readouterr().err
    assert f"split_data: {record.reason}\nhint: {record.hint}" in said
    foreseen = not isinstance(error, (OSError, MemoryError, ZeroDivisionError))
    assert ("Traceback" not in said) == foreseen
    assert not list(store_of(fresh_project).list("keys/")), "only what is done is kept by its key"


def test_a_step_that_is_done_is_kept_by_run_and_by_key(fresh_project: Path) -> None:
    with do(fresh_project) as context:
        context.record.figures = {"rows": 3}
    record = record_of(fresh_project, "split_data")
    assert (record.status, record.exit_code, record.figures) == ("done", 0, {"rows": 3})
    by_key = StepRecord.model_validate_json(
        store_of(fresh_project).get(key_record("k", "split_data"))
    )
    assert by_key == record


def test_a_project_that_cannot_be_read_ends_the_step_with_2(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended, do(tmp_path):
        raise AssertionError("never reached")
    assert ended.value.code == 2


def test_a_step_outside_of_a_run_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVERTRAIN_RUN_ID")
    with pytest.raises(OutsideError, match="EVERTRAIN_RUN_ID is not set"):
        current_run()


def test_cached_steps_are_filled_in_from_the_key(fresh_project: Path) -> None:
    for name in ("snapshot_data", "validate_data", "split_data"):
        with do(fresh_project, name):
            pass
    store = store_of(fresh_project)
    store.delete(f"runs/{RUN}/validate_data.json")
    store.delete(f"runs/{RUN}/split_data.json")
    assert list(read_records(store, RUN)) == ["snapshot_data"], "how far it came is not known"
    with do(fresh_project, "check_training"):
        pass
    found = read_records(store, RUN)
    assert {name: record.cache_hit for name, record in found.items()} == {
        "snapshot_data": False, "validate_data": True, "split_data": True, "check_training": False
    }  # fmt: skip


def test_a_killed_step_makes_the_run_interrupted_with_3(fresh_project: Path) -> None:
    store = store_of(fresh_project)
    running = StepRecord(step="split_data", run=RUN, run_key="k")
    store.put(f"runs/{RUN}/split_data.json", running.model_dump_json().encode())
    record = compose(store, run=RUN, project="small", champion="4")
    assert (record.status, record.exit_code) == ("interrupted", 3)
    assert "split_data was killed" in record.reasons[0]
    assert (record.champion_before, record.champion_after) == ("4", "4")


def test_the_gates_word_is_the_runs_reason_hint_and_exit_code(fresh_project: Path) -> None:
    with pytest.raises(SystemExit), do(fresh_project, "validate_data"):
        raise StoppedByGate("the data fails", hint="mend it")
    record = compose(store_of(fresh_project), run=RUN, project="small", champion="")
    assert (record.status, record.exit_code) == ("stopped", 1)
    assert (record.reasons, record.hint) == (["the data fails"], "mend it")
    assert [s.status for s in record.steps].count("not_run") == 9


ORPHAN = """
import time
from components.common.watchdog import end_with_parent
end_with_parent()
print("watching", flush=True)
time.sleep(60)
"""


def test_a_step_ends_when_the_command_that_started_it_is_gone() -> None:
    """Also when the command was killed and could tell nobody."""
    command = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    name = f"{command.pid}:{this_process().partition(':')[2]}"
    assert is_alive(this_process())
    assert not is_alive(name), "a process of this number that started at another time is another"
    started = Path(f"/proc/{command.pid}/stat").read_text().rpartition(")")[2].split()[19]
    child = subprocess.Popen(
        [sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, text=True,
        env=environment() | {VARIABLE: f"{command.pid}:{started}"},
    )  # fmt: skip
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "watching\n"
        time.sleep(0.5)
        assert child.poll() is None, "the command lives, so does its step"
        os.kill(command.pid, signal.SIGKILL)  # left a zombie: it must count as gone
        assert child.wait(timeout=10) == -signal.SIGKILL
    finally:
        for process in (child, command):
            process.kill()
            process.communicate()


def test_records_are_plain_json(fresh_project: Path) -> None:
    with do(fresh_project):
        pass
    content = json.loads(store_of(fresh_project).get(f"runs/{RUN}/split_data.json"))
    assert content["format"] == "evertrain/step/1"
