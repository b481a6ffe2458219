"""Kubeflow by the stock client: what is found, started once, waited for; over HTTP, with faults."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from infra.errors import OutsideError
from infra.kubeflow import Access, Kubeflow, NotThere, Refused, Run
from pipelines.compiling import compile_pipeline
from tests.cluster.conftest import kfp_home as kfp_home
from tests.cluster.conftest import kfp_server as kfp_server
from tests.cluster.faults import answer, lost_reply
from tests.cluster.kfp_server import KfpServer


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("compiled") / "pipeline.yaml"
    compile_pipeline(file)
    return file


@pytest.fixture
def kubeflow(kfp_server: KfpServer, package: Path) -> Kubeflow:
    """A Kubeflow that has the pipeline `flights`."""
    made = Kubeflow.connect(host=kfp_server.url, patience=3.0)
    pipeline = made.pipelines.create("flights", description="")
    made.pipelines.upload(package, pipeline=pipeline, name="1-0123456789ab", description="")
    return made


def start(kubeflow: Kubeflow, name: str = "run", **parameters: Any) -> str:
    return kubeflow.start("flights", name=name, parameters=parameters, experiment="flights")


def test_a_run_is_started_with_its_parameters_and_found_by_its_name(
    kubeflow: Kubeflow, kfp_server: KfpServer
) -> None:
    run = start(kubeflow, force=True, overrides=["training.epochs=1"])
    (found,) = kubeflow.find("run")
    assert (found.id, found.name, found.over) == (run, "run", False)
    assert found.created is not None
    assert found.finished is None, "the server says 1970"
    told = kfp_server.runs[run].source.parameters
    assert told == {"force": True, "overrides": ["training.epochs=1"]}


@pytest.mark.parametrize("name", ["a+b", "100 %25 %41", 'quo"te', "ü €", "a&b=c", "back\\slash"])
def test_a_name_is_found_whatever_is_in_it(kubeflow: Kubeflow, name: str) -> None:
    run = start(kubeflow, name)
    assert [found.id for found in kubeflow.find(name)] == [run]


def test_names_are_compared_exactly(kubeflow: Kubeflow) -> None:
    """The server compares without case, and so does not tell one claim from another."""
    start(kubeflow, "Flights")
    assert kubeflow.find("flights") == []


def test_runs_of_one_name_come_from_every_page_of_the_list(kubeflow: Kubeflow) -> None:
    runs = {start(kubeflow, "same") for _ in range(105)}
    assert {found.id for found in kubeflow.find("same")} == runs


def test_a_lost_reply_does_not_start_a_second_run(
    kubeflow: Kubeflow, kfp_server: KfpServer
) -> None:
    first = start(kubeflow, "same")
    kfp_server.runs[first].created += 60  # by a clock that was set back: it is listed first
    kfp_server.faults.add("POST", "*/runs", lost_reply())
    second = start(kubeflow, "same")
    assert set(kfp_server.runs) == {first, second}
    assert second != first, "an earlier run of the same name is not taken for it"


def test_a_server_that_comes_back_in_time_is_waited_for(
    kubeflow: Kubeflow, kfp_server: KfpServer
) -> None:
    kfp_server.faults.add("POST", "*/runs", answer(429, retry_after=0))
    kfp_server.faults.add("POST", "*/runs", answer(503), nth=2)
    run = start(kubeflow)
    assert list(kfp_server.runs) == [run]


def test_a_server_that_stays_away_is_given_up_with_what_it_said(
    kubeflow: Kubeflow, kfp_server: KfpServer
) -> None:
    impatient = Kubeflow.connect(host=kfp_server.url, patience=0.3)
    kfp_server.faults.add("GET", "*/runs", answer(503), times=None)
    with pytest.raises(OutsideError, match=r"cannot list the runs at .*: 503") as failed:
        impatient.find("run")
    assert failed.value.exit_code == 3
    assert "in 0.3 s" in failed.value.hint


def test_parameters_that_the_pipeline_does_not_have_are_refused_for_good(
    kubeflow: Kubeflow, kfp_server: KfpServer
) -> None:
    before = len(kfp_server.requests)
    with pytest.raises(Refused, match="400") as refused:
        start(kubeflow, epochs=3)
    assert refused.value.exit_code == 2
    posts = [r for r in kfp_server.requests[before:] if r.path.endswith("/runs")]
    assert len(posts) == 1, "the same request would be refused again"


def test_a_pipeline_that_nobody_deployed_is_not_there(kubeflow: Kubeflow) -> None:
    with pytest.raises(NotThere, match="there is no pipeline 'flightz'") as missing:
        kubeflow.start("flightz", name="run", parameters={}, experiment="flights")
    assert "evertrain deploy" in missing.value.hint
    kubeflow.pipelines.create("empty", description="")
    with pytest.raises(NotThere, match=r"'empty' at .* has no version"):
        kubeflow.start("empty", name="run", parameters={}, experiment="flights")


def test_of_versions_of_one_second_the_one_with_the_larger_number_is_the_newest(
    kubeflow: Kubeflow, package: Path
) -> None:
    """The server's times have whole seconds."""
    pipeline = kubeflow.pipelines.find("flights")
    assert pipeline is not None
    for number in (10, 2, 9):
        name = f"{number}-0123456789ab"
        kubeflow.pipelines.upload(package, pipeline=pipeline, name=name, description="")
    newest = {each.created for each in kubeflow.pipelines.versions(pipeline.id)}
    if len(newest) == 1:
        assert kubeflow.pipelines.newest("flights").name == "10-0123456789ab"


def test_a_version_of_the_same_name_is_not_uploaded_twice(
    kubeflow: Kubeflow, kfp_server: KfpServer, package: Path
) -> None:
    pipeline = kubeflow.pipelines.find("flights")
    assert pipeline is not None
    (there,) = kubeflow.pipelines.versions(pipeline.id)
    again = kubeflow.pipelines.upload(
        package, pipeline=pipeline, name=there.name, description="other"
    )
    assert again == there


@pytest.mark.parametrize("end", ["SUCCEEDED", "FAILED", "SKIPPED", "CANCELED"])
def test_every_end_is_an_end(kubeflow: Kubeflow, kfp_server: KfpServer, end: str) -> None:
    kfp_server.script = ["PENDING", "RUNNING", end]
    seen: list[str] = []

    def look(run: Run) -> None:
        seen.append(run.state)

    ended = kubeflow.wait(start(kubeflow), timeout=20, poll=0.01, on_look=look)
    assert (ended.state, ended.over, ended.succeeded) == (end, True, end == "SUCCEEDED")
    assert seen == ["RUNNING", end]


def test_what_has_ended_can_be_stopped_without_a_fuss(
    kubeflow: Kubeflow, kfp_server: KfpServer
) -> None:
    kfp_server.script = ["RUNNING"]
    run = start(kubeflow)
    kubeflow.terminate(run)
    assert kfp_server.runs[run].state == "CANCELING"
    kfp_server.set_state(run, "CANCELED")
    kubeflow.terminate(run)
    with pytest.raises(NotThere):
        kubeflow.terminate("00000000-0000-0000-0000-000000000000")


def test_nothing_is_written_into_the_home_folder(
    kfp_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pod it cannot be: kfp's own client fails there on a multi-user Kubeflow."""
    import infra.kubeflow.access as access

    (tmp_path / "namespace").write_text("team\n")
    monkeypatch.setattr(access, "_POD_NAMESPACE", tmp_path / "namespace")
    with KfpServer(multi_user=True) as server:
        made = Kubeflow.connect(host=server.url)
    assert made.namespace == "team"
    assert os.listdir(kfp_home) == []


def test_a_proxy_is_used_but_for_hosts_that_need_none(
    kfp_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "no_proxy", "HTTP_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "inside.example.org")
    outside = Access().client("http://outside.example.org/pipeline")
    inside = Access().client("http://inside.example.org/pipeline")
    named = Access(proxy="http://127.0.0.1:7").client("http://inside.example.org")
    proxies = [each._existing_config.proxy for each in (outside, inside, named)]
    assert proxies == ["http://127.0.0.1:9", None, "http://127.0.0.1:7"]
