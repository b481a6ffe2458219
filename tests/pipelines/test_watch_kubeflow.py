"""`evertrain watch --host`: runs are started on Kubeflow, once, whatever its server does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.common.project import open_project
from infra.kubeflow import NotThere
from pipelines.watch.kubeflow_starter import KubeflowStarter
from pipelines.watch.starter import Ended
from tests.cluster.conftest import kfp_home, kfp_server  # noqa: F401 (fixtures)
from tests.cluster.faults import answer, lost_reply
from tests.cluster.kfp_server import Account, KfpServer
from tests.infra.loopback import free_ports
from tests.pipelines.watch_child import WatchProcess
from tests.proofs.trigger_processes import compiled, upload_pipeline
from tests.small_project.command import evertrain, make_project

RUNS = "/apis/v2beta1/runs"


@pytest.fixture
def server(kfp_server: KfpServer, tmp_path: Path) -> KfpServer:  # noqa: F811
    upload_pipeline(kfp_server, compiled(tmp_path))
    return kfp_server


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", 1)


@pytest.fixture
def starter(server: KfpServer, project: Path) -> KubeflowStarter:
    return KubeflowStarter(open_project(project), host=server.url)


def test_a_run_has_its_name_and_only_the_parameters_that_differ(
    server: KfpServer, starter: KubeflowStarter, project: Path
) -> None:
    assert starter.find("small-1") is None
    run = starter.start("small-1")
    assert starter.find("small-1") == run
    assert server.handle_of(run).parameters == {}
    other = KubeflowStarter(
        open_project(project, overrides=["training.epochs=1"]), host=server.url, data="s3://b/d"
    )
    forced = other.start("small-2", overrides=("decision.margin=0.1",), force=True)
    assert server.handle_of(forced).parameters == {
        "data": "s3://b/d", "force": True,
        "overrides": ["training.epochs=1", "decision.margin=0.1"],
    }  # fmt: skip


def test_of_several_of_one_name_the_first_is_the_one(
    server: KfpServer, starter: KubeflowStarter
) -> None:
    first = starter.start("small-1")
    time.sleep(1.1)  # its times have whole seconds
    starter.start("small-1")
    assert starter.find("small-1") == first


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("SUCCEEDED", Ended(0)), ("FAILED", Ended(None, words="out of memory")),
        ("CANCELED", Ended(None, cancelled=True)), ("RUNNING", None), ("PENDING", None),
    ],
)  # fmt: skip
def test_how_a_run_ended_is_what_kubeflow_says(
    server: KfpServer, starter: KubeflowStarter, state: str, expected: Ended | None
) -> None:
    run = starter.start("small-1")
    server.set_state(run, state, error="out of memory" if state == "FAILED" else "")
    assert starter.ended("small-1", run) == expected


def test_a_run_that_somebody_deleted_is_not_tried_again(
    server: KfpServer, starter: KubeflowStarter
) -> None:
    run = starter.start("small-1")
    del server.runs[run]
    ended = starter.ended("small-1", run)
    assert ended is not None
    assert ended.cancelled


def test_without_a_pipeline_the_way_to_one_is_said(kfp_server: KfpServer, project: Path) -> None:  # noqa: F811
    starter = KubeflowStarter(open_project(project), host=kfp_server.url)
    with pytest.raises(NotThere, match="small"):
        starter.start("small-1")


def test_a_start_ends_long_before_its_claim_is_stale(
    server: KfpServer, starter: KubeflowStarter
) -> None:
    server.faults.add("*", "*", answer(503), times=None)
    began = time.monotonic()
    with pytest.raises(Exception, match="503"):
        starter.start("small-1")
    assert time.monotonic() - began < starter.late


@pytest.fixture
def watcher(server: KfpServer, project: Path, tmp_path: Path) -> Iterator[WatchProcess]:
    words = ("--host", server.url, "--set", "watch.poll=0.5", "--set", "watch.retry_after=1")
    with WatchProcess(project, *words, more={"HOME": str(tmp_path / "home")}) as process:
        yield process


def test_a_lost_reply_starts_no_second_run_and_a_failed_one_is_tried_again(
    server: KfpServer, watcher: WatchProcess
) -> None:
    server.faults.add("POST", RUNS, lost_reply())
    server.script = lambda run: ["RUNNING", "FAILED" if len(server.runs) == 1 else "SUCCEEDED"]
    started = watcher.wait_for("started")
    failed = watcher.wait_for("failed")
    assert failed["run"] == started["run"]
    again = watcher.wait_for("started")
    assert again["name"] == f"{started['name']}-2"
    assert watcher.wait_for("ended")["run"] == again["run"]
    assert [run.name for run in server.runs.values()] == [started["name"], again["name"]]
    assert watcher.stop() == 0


def test_a_host_that_is_not_there_yet_is_waited_for(project: Path, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    words, more = ("--host", f"http://127.0.0.1:{port}"), {"HOME": str(tmp_path)}
    with WatchProcess(project, *words, more=more) as watcher:
        assert f"http://127.0.0.1:{port}" in watcher.wait_for("trouble")["message"]
        with KfpServer(port=port) as server:
            upload_pipeline(server, compiled(tmp_path))
            watcher.wait_for("started")
            assert len(server.runs) == 1
            assert watcher.kinds().count("trouble") == 1
            assert watcher.stop() == 0


@pytest.mark.smoke
def test_once_does_not_wait_for_it_and_who_is_not_let_in_is_told(
    project: Path, tmp_path: Path
) -> None:
    more = {"HOME": str(tmp_path)}
    ended = evertrain("watch", project, "--once", "--host", "http://127.0.0.1:9", more=more)
    assert ended.code == 3
    assert "cannot reach Kubeflow at http://127.0.0.1:9" in ended.err
    with KfpServer(accounts={"the token": Account("a@example.com", ())}) as server:
        ended = evertrain("watch", project, "--host", server.url, more=more)
        assert ended.code == 2
        assert "401" in ended.err
        assert "the token" not in ended.err
