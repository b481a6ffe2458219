"""A run is told of once, to those who asked, in the report's words, and never at its own cost."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from report_samples import RUN, Records, crashed, finished, nothing_new, skipped, stopped

from components.common.layout import alerted_key, record_key
from components.common.project import Project, open_project
from components.common.provenance import provenance
from components.common.run_record import run_record_key
from components.report_run.alerting import alert_each, alert_of, alert_once
from components.report_run.step import run as report_run
from components.report_run.step import write_report
from infra.folder import FolderStore
from pipelines.local import finished_record
from pipelines.one_run import close_interrupted_runs
from pipelines.runs import rewrite
from tests.infra.alert_servers import web
from tests.small_project.command import make_project

SECRETS = {"HOOK_URL": "/hush-path", "HOOK_SECRET": "hush-secret"}
HOOK = {"type": "webhook", "url_env": "HOOK_URL", "secret_env": "HOOK_SECRET"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVERTRAIN_STORE", str(tmp_path / "store"))
    return make_project(tmp_path / "project", 1)


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "store")


def asking(folder: Path, *channels: dict[str, Any], timeout: float = 5) -> Project:
    file = folder / "evertrain.yaml"
    content = yaml.safe_load(file.read_text())
    content["alerts"] = {"timeout": timeout, "channels": list(channels)}
    file.write_text(yaml.safe_dump(content))
    return open_project(folder)


def leave(store: FolderStore, records: Records, run: str = RUN) -> None:
    for name, record in records.items():
        record = record.model_copy(update={"run": run})
        store.put(record_key(run, name), record.model_dump_json().encode())


def alerted(store: FolderStore, run: str = RUN) -> Any:
    return json.loads(store.get(alerted_key(run)))


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Any:
    with web() as server:
        monkeypatch.setenv("HOOK_URL", server.url + SECRETS["HOOK_URL"])
        monkeypatch.setenv("HOOK_SECRET", SECRETS["HOOK_SECRET"])
        yield server


def test_the_alert_says_what_the_report_says() -> None:
    run, records = finished()
    alert = alert_of(run, records, report="s3://b/report.html")
    assert alert.outcome == "promoted"
    assert (
        alert.headline
        == "Version\N{NO-BREAK SPACE}4 replaces version\N{NO-BREAK SPACE}3 as champion."
    )
    assert alert.reasons[1:] == tuple(run.reasons[1:])
    assert "roll back" in alert.hint
    assert alert.value == run.metrics["challenger"]["log_loss"]
    assert alert.differences[0].words.startswith("Against champion the challenger’s log loss is")


@pytest.mark.parametrize(
    ("made", "outcome"),
    [
        (finished("promote"), "promoted"), (finished("hold"), "held"),
        (finished("inconclusive"), "inconclusive"), (stopped(), "stopped"),
        (crashed(), "failed"), (crashed("running"), "interrupted"),
        (nothing_new(), "nothing_new"), (skipped(), "skipped"),
    ],
)  # fmt: skip
def test_every_end_has_its_outcome(made: Any, outcome: str) -> None:
    assert alert_of(*made, report="").outcome == outcome


def test_what_waits_for_a_person_is_proposed() -> None:
    run, records = finished()
    records["promote_model"].figures["outcome"] = "proposed"
    assert alert_of(run, records, report="").outcome == "proposed"


def test_an_alert_is_sent_once_however_often_the_run_is_closed(
    folder: Path, store: FolderStore, hook: Any
) -> None:
    project = asking(folder, HOOK)
    leave(store, stopped()[1])
    close_interrupted_runs(project, store)
    close_interrupted_runs(project, store)
    finished_record(project, store, RUN)
    rewrite(project, RUN)
    assert len(hook.received) == 1
    said = json.loads(hook.received[0].body)
    assert said["outcome"] == "stopped"
    assert said["report"] == str(Path(store.uri) / f"runs/{RUN}/report.html")
    told = alerted(store)
    assert (told["status"], told["channels"]["webhook"]["status"]) == ("done", "sent")


def test_writing_a_report_again_tells_nobody(folder: Path, store: FolderStore, hook: Any) -> None:
    asking(folder, HOOK)
    leave(store, stopped()[1])
    rewrite(open_project(folder), RUN)
    assert hook.received == []
    assert store.info(alerted_key(RUN)) is None


def test_the_exit_handler_tells_after_the_report_is_there(
    folder: Path, store: FolderStore, hook: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking(folder, HOOK)
    leave(store, stopped()[1])
    monkeypatch.setenv("EVERTRAIN_RUN_ID", RUN)
    report_run(str(folder), store.uri, [], str(tmp_path / "report.html"), "FAILED")
    assert len(hook.received) == 1
    assert store.info(run_record_key(RUN)) is not None


def test_only_the_outcomes_that_were_asked_for_are_told(
    folder: Path, store: FolderStore, hook: Any
) -> None:
    channels = [
        {**HOOK, "name": "bad ends", "on": ["stopped", "failed"]},
        {**HOOK, "name": "good ends", "on": ["promoted"]},
        {**HOOK, "name": "not given"},
    ]
    project = asking(folder, *channels)
    ends = {"one": stopped, "two": nothing_new, "three": skipped}
    for run, made in ends.items():
        leave(store, made()[1], run)
        alert_once(project, store, write_report(project, store, run=run))
    told = {name: each["status"] for name, each in alerted(store, "one")["channels"].items()}
    assert told == {"bad ends": "sent", "good ends": "not_asked", "not given": "sent"}
    for run in ("two", "three"):
        told = {each["status"] for each in alerted(store, run)["channels"].values()}
        assert told == {"not_asked"}
    assert len(hook.received) == 2


def test_who_asked_for_nothing_gets_nothing(folder: Path, store: FolderStore) -> None:
    project = open_project(folder)
    leave(store, stopped()[1])
    close_interrupted_runs(project, store)
    assert store.info(alerted_key(RUN)) is None


def test_a_run_ends_as_it_would_have_when_all_channels_are_down(
    folder: Path, store: FolderStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    leave(store, stopped()[1])
    before = write_report(open_project(folder), store, run=RUN)
    with web("hang") as hanging, web("garbage") as strange:
        for name, value in {
            "HOOK_URL": hanging.url,
            "CHAT": strange.url,
            "HOOK_SECRET": "s",
        }.items():
            monkeypatch.setenv(name, value)
        asking(
            folder, HOOK, {"type": "slack", "url_env": "CHAT"},
            {"type": "slack", "name": "unset", "url_env": "NOT_SET"},
            {"type": "email", "host": "127.0.0.1", "port": 1, "security": "none",
             "sender": "a@b", "to": ["c@d"]},
            timeout=1.5,
        )  # fmt: skip
        monkeypatch.setenv("EVERTRAIN_RUN_ID", RUN)
        began = time.monotonic()
        report_run(str(folder), store.uri, [], str(tmp_path / "report.html"), "FAILED")
        assert time.monotonic() - began < 6
    after = finished_record(open_project(folder), store, RUN)
    assert (after.status, after.exit_code, after.reasons) == (
        before.status, before.exit_code, before.reasons,
    )  # fmt: skip
    told = alerted(store)
    assert told["status"] == "done"
    assert {each["status"] for each in told["channels"].values()} == {"failed"}
    assert all(each["reason"] for each in told["channels"].values())
    assert "NOT_SET" in told["channels"]["unset"]["reason"]
    assert capsys.readouterr().err.count("could not be told of run") == 4


def test_many_killed_runs_that_are_closed_take_no_longer_than_one(
    folder: Path, store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [f"run-{i}" for i in range(6)]
    with web("hang") as hanging:
        monkeypatch.setenv("HOOK_URL", hanging.url)
        monkeypatch.setenv("HOOK_SECRET", "s")
        project = asking(folder, HOOK, timeout=1)
        records = [write_report(project, store, run=run) for run in runs]
        began = time.monotonic()
        alert_each(project, store, records)
        assert time.monotonic() - began < 3
    told = [alerted(store, run)["channels"]["webhook"] for run in runs]
    assert all("in time" in each["reason"] or "within" in each["reason"] for each in told)


def test_a_process_that_was_killed_while_it_sent_is_not_repeated(
    folder: Path, store: FolderStore, hook: Any
) -> None:
    project = asking(folder, HOOK)
    leave(store, stopped()[1])
    begun = {"run": RUN, "outcome": "stopped", "status": "sending", "channels": {}}
    store.create(alerted_key(RUN), json.dumps(begun).encode())
    close_interrupted_runs(project, store)
    assert hook.received == []
    assert alerted(store)["status"] == "sending"


def test_a_store_that_cannot_be_written_only_costs_the_alert(
    folder: Path, store: FolderStore, hook: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    project = asking(folder, HOOK)
    leave(store, stopped()[1])
    record = write_report(project, store, run=RUN)
    (folder / "a file").touch()
    alert_once(project, FolderStore(folder / "a file" / "store"), record)
    assert hook.received == []
    assert "alert: of run" in capsys.readouterr().err


@pytest.mark.parametrize("answer", [200, 404, 500, "garbage"])
def test_no_secret_is_left_anywhere(
    folder: Path, store: FolderStore, hook: Any, answer: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    hook.answers = [answer]
    project = asking(folder, HOOK, {"type": "log"}, timeout=1.2)
    leave(store, stopped()[1])
    close_interrupted_runs(project, store)
    assert hook.received
    said = capsys.readouterr()
    left = said.out + said.err + provenance(project).model_dump_json()
    left += "".join(store.get(info.key).decode() for info in store.list())
    assert "HOOK_SECRET" not in left
    assert "hush" not in left


def test_who_is_told_changes_no_run_key(folder: Path) -> None:
    before = provenance(open_project(folder)).config_digest
    assert provenance(asking(folder, HOOK)).config_digest == before
