"""`evertrain deploy --run --wait`: a run is followed, and its own record says how it ended."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from components.common.records import StepRecord
from components.common.run_record import RunRecord, StepSummary
from infra.folder import FolderStore
from infra.kubeflow import Kubeflow, Run
from pipelines.deploy.follow import Follower, outcome
from tests.cluster.conftest import kfp_home as kfp_home
from tests.cluster.conftest import kfp_server as kfp_server
from tests.cluster.faults import answer
from tests.cluster.kfp_server import KfpServer, RunHandle
from tests.pipelines.deploy_case import Case, impatient, new_case


@pytest.fixture
def case(tmp_path: Path, kfp_server: KfpServer, monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    made = new_case(tmp_path, kfp_server, monkeypatch)
    impatient(made)
    return made


def record_of(run: str, **more: Any) -> RunRecord:
    told: dict[str, Any] = {
        "run": run, "project": "small", "key": "k", "status": "finished", "exit_code": 0,
        "verdict": "hold", "reasons": ["the challenger is not better"], "hint": "",
        "started": None, "seconds": 1.0, "data_digest": "d", "data_rows": 1,
        "steps": [StepSummary(step="snapshot_data", status="done", seconds=1.0, cache_hit=False,
                              reason="")],
        "champion_before": "1", "champion_after": "1", "commit": "", "report": "r",
    }  # fmt: skip
    return RunRecord.model_validate(told | more)


def kept(store: FolderStore, record: RunRecord) -> None:
    store.put(f"runs/{record.run}/run.json", record.model_dump_json().encode())


def ended(state: str, **more: Any) -> Run:
    told: dict[str, Any] = {"id": "r1", "name": "n", "state": state, "created": None, **more}
    return Run(**told)


def test_a_run_that_is_started_has_what_was_asked_for(case: Case) -> None:
    done = case.deploy("--run", "--force", "--set", "training.epochs=1", "--json")
    assert done.code == 0, done.err
    (run,) = case.server.runs.values()
    assert done.json["run"] == run.key
    assert run.name.startswith("small by hand 20")
    assert run.source.parameters == {"overrides": ["training.epochs=1"], "force": True}
    assert run.service_account == "evertrain-run"
    assert f"#/runs/details/{run.key}" in done.err


def test_a_run_of_what_is_there_already_needs_no_change_and_no_yes(case: Case) -> None:
    assert case.deploy().code == 0
    assert case.deploy("--run", yes=False).code == 0
    assert len(case.server.runs) == 1


def test_a_run_that_leaves_no_record_to_be_read_ends_as_kubeflow_says(case: Case) -> None:
    case.server.script = ["RUNNING", "SUCCEEDED"]
    good = case.deploy("--wait", "--poll", "0.05", "--json")
    assert (good.code, good.json["outcome"]["outcome"]) == (0, "succeeded")
    assert "its record cannot be read from here" in good.json["outcome"]["reasons"][0]
    case.server.script = ["RUNNING", "FAILED"]
    bad = case.deploy("--wait", "--poll", "0.05")
    assert bad.code == 3
    assert "outcome:  failed" in bad.out
    assert "an image that cannot be pulled" in bad.out


def test_a_run_that_somebody_cancels_does_not_keep_one_waiting(case: Case) -> None:
    """kfp's own wait would not end."""
    case.server.script = ["RUNNING", "CANCELED"]
    done = case.deploy("--wait", "--poll", "0.05")
    assert done.code == 3
    assert "outcome:  canceled" in done.out


def test_a_run_that_takes_too_long_goes_on_and_says_so(case: Case) -> None:
    case.server.script = ["RUNNING"]
    done = case.deploy("--wait", "--poll", "0.05", "--timeout", "1")
    assert done.code == 3
    assert "has not ended in 1 s; it goes on" in done.err
    (run,) = case.server.runs.values()
    assert not run.over


def test_an_outage_while_waiting_is_waited_out(case: Case) -> None:
    impatient(case, patience=0.2)
    case.server.script = ["RUNNING", "RUNNING", "SUCCEEDED"]
    case.server.faults.add("GET", "*/runs/*", answer(503), nth=2, times=4)
    assert case.deploy("--wait", "--poll", "0.05").code == 0
    assert len(case.server.faults.done) == 4


def test_a_run_that_somebody_deletes_is_said(case: Case) -> None:
    case.server.script = ["RUNNING"]

    def delete(call: Any) -> None:
        if call.method == "GET" and "/runs/" in call.path:
            case.server.runs.clear()

    case.server.faults.script = delete
    done = case.deploy("--wait", "--poll", "0.05")
    assert done.code == 2
    assert "404" in done.err


@pytest.mark.parametrize("argo", [False, True], ids=["pods named", "as on Argo"])
def test_states_and_logs_of_the_steps_are_followed(
    kfp_home: Path, tmp_path: Path, argo: bool
) -> None:
    """On Argo the API names no pod; the step's record does."""
    store = FolderStore(tmp_path / "store")
    said: list[tuple[str, str]] = []
    troubles: list[str] = []
    go_on = threading.Event()

    def executor(handle: RunHandle) -> str:
        handle.task("snapshot-data", "RUNNING")
        task = handle.run.tasks["snapshot-data"]
        record = StepRecord(
            step="snapshot_data", run=handle.run.key, run_key="k",
            pod=task.pod(handle.run.workflow),
        )  # fmt: skip
        store.put(f"runs/{handle.run.key}/snapshot_data.json", record.model_dump_json().encode())
        handle.log("snapshot-data", "listing")
        go_on.wait(20)
        handle.log("snapshot-data", "500 objects")
        handle.task("snapshot-data", "SUCCEEDED")
        return "SUCCEEDED"

    with KfpServer(argo=argo, executor=executor) as server:
        case = Case(tmp_path / "project", server)
        assert case.deploy().code == 0
        kubeflow = Kubeflow.connect(host=server.url)
        run = kubeflow.start("small", name="n", parameters={}, experiment="small")
        while "snapshot-data" not in server.runs[run].logs:
            time.sleep(0.01)

        def on_line(step: str, line: str) -> None:
            said.append((step, line))
            go_on.set()

        follower = Follower(
            kubeflow,
            store,
            on_state=lambda step, state: said.append((step, state)),
            on_line=on_line,
            on_trouble=troubles.append,
            poll=0.02,
        )
        assert follower.follow(run, timeout=30).succeeded
    assert troubles == []
    assert said == [
        ("snapshot_data", "running"),
        ("snapshot_data", "listing"),
        ("snapshot_data", "succeeded"),
        ("snapshot_data", "500 objects"),
    ]


def test_a_server_without_logs_is_said_once(case: Case) -> None:
    handles: list[RunHandle] = []
    case.server.faults.add("GET", "*/log", answer(404), times=None)

    def executor(handle: RunHandle) -> str:
        handles.append(handle)
        for step in ("snapshot-data", "validate-data", "split-data", "check-training"):
            handle.task(step, "RUNNING")
            handle.task(step, "SUCCEEDED")
        return "SUCCEEDED"

    case.server.executor = executor
    done = case.deploy("--wait", "--poll", "0.05")
    assert done.code == 0
    assert done.err.count("no logs from here") == 1
    assert f"kubectl logs -f -c main -l pipeline/runid={handles[0].run.key}" in done.err


@pytest.mark.parametrize(
    ("state", "record", "code", "words"),
    [
        ("SUCCEEDED", {}, 0, "held"),
        ("SUCCEEDED", {"verdict": "promote", "decision": "promoted"}, 0, "promoted"),
        ("SUCCEEDED", {"status": "nothing_new", "verdict": ""}, 0, "nothing new"),
        ("FAILED", {"status": "stopped", "exit_code": 1, "verdict": ""}, 1, "stopped"),
        ("FAILED", {"status": "failed", "exit_code": 2, "verdict": ""}, 2, "failed"),
        ("FAILED", {"status": "failed", "exit_code": 3, "verdict": ""}, 3, "failed"),
        ("CANCELED", {"status": "interrupted", "exit_code": 130, "verdict": ""}, 130,
         "interrupted"),
        ("FAILED", {}, 3, "held, but Kubeflow says failed"),
    ],
)  # fmt: skip
def test_the_exit_code_is_that_of_the_runs_own_record(
    tmp_path: Path, state: str, record: dict[str, Any], code: int, words: str
) -> None:
    store = FolderStore(tmp_path)
    kept(store, record_of("r1", **record))
    found = outcome(store, ended(state, error="the exit handler was evicted"))
    assert (found.exit_code, found.words) == (code, words)
    assert found.reasons[0] == "the challenger is not better"
    if words.endswith("says failed"):
        assert "the exit handler was evicted" in found.reasons


def test_a_record_that_is_damaged_is_no_reason_to_fail(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put("runs/r1/run.json", json.dumps({"format": "evertrain/run/99"}).encode())
    assert outcome(store, ended("SUCCEEDED")).exit_code == 0
    assert outcome(store, ended("FAILED")).exit_code == 3
