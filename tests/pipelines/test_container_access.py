"""What a step's container gets to see, and how its end is understood: no engine is needed here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from components.common.layout import home, project_store
from components.common.project import Project, open_project
from components.common.records import StepRecord
from components.common.watchdog import STDIN, VARIABLE
from infra.engine import Ended, Mount
from infra.errors import OutsideError
from infra.folder import FolderStore
from pipelines.compiling import compile_pipeline, name_image
from pipelines.container_access import (
    USER,
    environment,
    hand_over,
    mounts,
    servers,
    user_of_steps,
)
from pipelines.container_ends import settle
from tests.small_project.command import environment as plain_environment
from tests.small_project.command import evertrain
from training_core.errors import ConfigurationError

RUN = "20250101T000000Z-0001"
WEBHOOK = {
    "channels": [{"type": "webhook", "url": "https://a.example", "secret_env": "HOOK_SECRET"}]
}


def opened(project: Path, **settings: object) -> Project:
    """The project with other settings."""
    file = project / "evertrain.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | settings))
    return open_project(project)


def mounted(project: Project) -> dict[str, bool]:
    return {str(m.path): m.writable for m in mounts(project, project_store(project))}


def test_a_project_of_folders_needs_no_network(fresh_project: Path) -> None:
    assert servers(open_project(fresh_project)) == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"store": "s3://bucket/store"}, "the object store (s3://bucket/store)"),
        ({"tracking": {"uri": "https://me:secret@mlflow.example"}}, "MLflow"),
        ({"tracking": {"uri": "postgresql://me:secret@db/mlflow"}}, "MLflow"),
        ({"alerts": WEBHOOK}, "the alert channel webhook"),
    ],
)
def test_a_server_is_named_as_the_reason_for_the_network(
    fresh_project: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, object], words: str
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "something")
    assert servers(opened(fresh_project, **settings)) == [words]


def test_local_uris_are_no_servers(fresh_project: Path, tmp_path: Path) -> None:
    project = opened(
        fresh_project,
        store=f"file://{tmp_path}/store",
        tracking={"uri": f"sqlite:///{tmp_path}/tracking/mlflow.db"},
        alerts={"channels": [{"type": "log"}]},
    )
    assert servers(project) == []
    assert mounted(project) == {
        str(fresh_project): False,
        str(fresh_project / "data"): False,
        str(fresh_project / ".evertrain"): True,
        str(tmp_path / "store"): True,
        str(tmp_path / "tracking"): True,
    }


def test_the_project_and_the_data_are_to_read_and_the_home_folder_to_write(
    fresh_project: Path, tmp_path: Path
) -> None:
    shutil.copytree(fresh_project / "data", tmp_path / "elsewhere")
    project = open_project(fresh_project, data=str(tmp_path / "elsewhere"))
    assert mounts(project, project_store(project)) == (
        Mount(tmp_path / "elsewhere"),
        Mount(fresh_project),
        Mount(fresh_project / ".evertrain", writable=True),
    )


def test_a_step_gets_no_key_where_it_has_no_network(
    fresh_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "HTTPS_PROXY", "HOOK_SECRET", "HOME_GROWN"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    project = opened(fresh_project, alerts=WEBHOOK)
    alone = environment(project, run=RUN, network=False)
    assert alone == {
        "EVERTRAIN_RUN_ID": RUN,
        "EVERTRAIN_HOME": str(home(project)),
        "EVERTRAIN_COMMIT": "",
        "OMP_NUM_THREADS": "3",
    }
    connected = environment(project, run=RUN, network=True)
    assert connected.keys() - alone.keys() >= {"AWS_SECRET_ACCESS_KEY", "HTTPS_PROXY"}
    assert "HOOK_SECRET" in connected
    assert "HOME_GROWN" not in connected


def test_certificates_and_key_files_that_variables_name_go_along(
    fresh_project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_text("-")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    assert str(tmp_path / "ca.pem") not in mounted(open_project(fresh_project))
    project = opened(fresh_project, tracking={"uri": "https://mlflow.example"})
    assert mounted(project)[str(tmp_path / "ca.pem")] is False


def test_data_that_is_not_there_is_said_before_a_container_is_made(fresh_project: Path) -> None:
    shutil.rmtree(fresh_project / "data")
    with pytest.raises(ConfigurationError, match="data is not there"):
        mounted(open_project(fresh_project))


def test_a_folder_that_a_container_has_itself_is_refused(
    fresh_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERTRAIN_STOP_FILE", "/tmp/stop")
    with pytest.raises(ConfigurationError, match="/tmp cannot be given to a container"):
        mounted(open_project(fresh_project))


@pytest.mark.skipif(os.getuid() != 0, reason="only root's steps are another user's")
def test_root_hands_its_files_to_the_steps_user_and_no_others(
    fresh_project: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("root's")
    project = open_project(fresh_project)
    store = project_store(project)
    store.put("runs/x/started", b"")
    (home(project) / "link").symlink_to(outside)
    assert user_of_steps() == USER
    hand_over(project, store)
    written = [home(project), *home(project).rglob("*")]
    assert {path.lstat().st_uid for path in written} == {10001}
    assert outside.stat().st_uid == 0
    assert (fresh_project / "task.py").stat().st_uid == 0


@pytest.mark.skipif(os.getuid() != 0, reason="root reads everything, its steps do not")
def test_what_only_root_may_read_is_said_before_a_container_is_made(fresh_project: Path) -> None:
    (fresh_project / "data").chmod(0o700)
    with pytest.raises(OutsideError, match=r"10001, which may not read .*data \(mode 700\)"):
        mounted(open_project(fresh_project))


def put_record(store: FolderStore, status: str) -> None:
    record = StepRecord.model_validate({"step": "split_data", "run": RUN, "run_key": "k"})
    record.status = status  # type: ignore[assignment]
    record.reason = "its own words" if status in ("stopped", "failed") else ""
    store.put(f"runs/{RUN}/split_data.json", record.model_dump_json().encode())


@pytest.mark.parametrize(
    ("status", "ended", "done", "code", "words"),
    [
        ("done", Ended(0), True, 0, ""),
        ("done", Ended(137), False, 3, "ended with 137 (SIGKILL)"),
        ("running", Ended(0), False, 3, "ended with 0, but the step had not finished"),
        ("", Ended(0), False, 3, "ended with 0, but the step had not finished"),
        ("", Ended(1), False, 1, "ended with 1 before the step could say why"),
        ("", Ended(2), False, 2, "ended with 2 before the step could say why"),
        ("running", Ended(137), False, 3, "ended with 137 (SIGKILL)"),
        ("running", Ended(137, out_of_memory=True), False, 3, "was killed: out of memory"),
        ("running", Ended(139), False, 3, "ended with 139 (SIGSEGV)"),
        ("", Ended(127), False, 2, "could not start its program"),
        ("", Ended(-1, error="no\n\nhint: do"), False, 3, "could not be run: no"),
        ("stopped", Ended(1), False, 0, "its own words"),
        ("failed", Ended(3), False, 0, "its own words"),
        ("failed", Ended(0), False, 0, "its own words"),
    ],
)  # fmt: skip
def test_the_record_says_how_a_container_ended_where_the_step_could_not(
    tmp_path: Path, status: str, ended: Ended, done: bool, code: int, words: str
) -> None:
    store = FolderStore(tmp_path)
    if status:
        put_record(store, status)
    assert settle(store, run=RUN, step="split_data", run_key="k", ended=ended) is done
    record = StepRecord.model_validate_json(store.get(f"runs/{RUN}/split_data.json"))
    assert (record.exit_code, record.run_key) == (code, "k")
    assert record.reason.removeprefix("the container of split_data ") == words
    if words and words != "its own words":
        assert (record.status, bool(record.hint)) == ("failed", True)


def test_all_steps_of_a_compiled_pipeline_get_one_image(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    compile_pipeline(file)
    before = list(yaml.safe_load_all(file.read_text()))
    name_image(file, "sha256:abc")
    after = list(yaml.safe_load_all(file.read_text()))
    executors = after[0]["deploymentSpec"]["executors"]
    assert {e["container"]["image"] for e in executors.values()} == {"sha256:abc"}
    for name, executor in before[0]["deploymentSpec"]["executors"].items():
        executor["container"]["image"] = executors[name]["container"]["image"]
    assert before == after


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--image", "evertrain:0.1.0"), "add --runner docker, or leave --image out"),
        (("--memory", "8g"), "add --runner docker, or leave --memory out"),
        (("--runner", "docker", "--memory", "lots"), "--memory 'lots' is no size"),
    ],
)
def test_what_containers_are_is_refused_where_it_makes_no_sense(
    fresh_project: Path, words: tuple[str, ...], said: str
) -> None:
    ended = evertrain("run", fresh_project, *words)
    assert ended.code == 2
    assert said in ended.err


def test_without_an_engine_a_run_in_containers_says_so(fresh_project: Path) -> None:
    nowhere = {"DOCKER_HOST": f"unix://{fresh_project}/nowhere.sock"}
    ended = evertrain("run", fresh_project, "--runner", "docker", more=nowhere)
    assert ended.code == 3
    assert "cannot reach a Docker engine" in ended.err
    assert "hint: start it, or name it" in ended.err


CONTAINED = """
import signal, sys, time
from components.common.watchdog import end_with_parent
signal.signal(signal.SIGTERM, lambda *_: print("asked to stop", flush=True))
end_with_parent()
print("watching", flush=True)
time.sleep(60)
time.sleep(60)
"""


def test_in_a_container_a_step_is_stopped_and_ended_by_its_stdin() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CONTAINED], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=plain_environment() | {VARIABLE: STDIN},
    )  # fmt: skip
    try:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == b"watching\n"
        child.stdin.write(b"stop\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"asked to stop\n"
        assert child.poll() is None
        child.stdin.close()
        assert child.wait(timeout=10) == -9
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
