"""The stock `kfp.Client` against the double: whole round trips, and what the server refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import urllib3
from kfp_server_api import ApiException

from tests.cluster.kfp_executors import LocalPipeline
from tests.cluster.kfp_samples import (
    compiled,
    endless,
    gzipped,
    refused,
    sum_up,
    tarred,
    with_platform,
    zipped,
)
from tests.cluster.kfp_server import KfpServer


@pytest.fixture
def client(kfp_server: KfpServer, kfp_client: Any) -> Any:
    return kfp_client(kfp_server)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return compiled(sum_up, tmp_path)


def said(error: pytest.ExceptionInfo[ApiException]) -> dict[str, Any]:
    told = json.loads(error.value.body)
    assert isinstance(told, dict)
    return told


def test_a_run_of_a_function_goes_through_its_states_to_success(client: Any) -> None:
    assert client.get_kfp_healthz().multi_user is False
    started = client.create_run_from_pipeline_func(sum_up, arguments={"a": 1})
    assert started.run_info.state == "PENDING"
    assert started.run_info.finished_at.year == 1970
    ended = client.wait_for_run_completion(started.run_id, timeout=20, sleep_duration=0)
    assert [each.state for each in ended.state_history] == ["PENDING", "RUNNING", "SUCCEEDED"]
    assert ended.runtime_config.parameters == {"a": 1}
    assert ended.pipeline_spec["pipelineInfo"] == {"name": "sum-up"}
    assert ended.finished_at.year >= 2025


def test_a_submitted_run_is_executed_and_its_failure_is_the_runs(
    kfp_server: KfpServer, client: Any, tmp_path: Path
) -> None:
    kfp_server.executor = LocalPipeline(tmp_path / "runs")
    good = client.create_run_from_pipeline_func(sum_up, arguments={"a": 1})
    bad = client.create_run_from_pipeline_func(refused)
    assert client.wait_for_run_completion(good.run_id, 60, sleep_duration=0.05).error is None
    ended = client.wait_for_run_completion(bad.run_id, 60, sleep_duration=0.05)
    assert ended.state == "FAILED"
    assert "Inner task failed: 'refuse'" in ended.error.message
    states = {each.display_name: each.state for each in ended.run_details.task_details}
    assert states == {"add": "SUCCEEDED", "refuse": "FAILED"}
    log = kfp_server.runs[bad.run_id].logs["refuse"]
    assert any("2 is too much" in line for line in log)


@pytest.mark.parametrize("argo", [False, True])
def test_a_steps_log_is_given_out_by_the_name_of_its_pod(
    argo: bool, kfp_home: Path, kfp_client: Any
) -> None:
    """On Argo the API never says that name: what it lists under `child_tasks` are nodes' ids."""
    with KfpServer(argo=argo) as server:
        server.script = ["RUNNING"]
        client = kfp_client(server)
        run = client.create_run_from_pipeline_func(sum_up, arguments={"a": 1}).run_id
        handle = server.handle_of(run)
        handle.task("add", "RUNNING")
        handle.log("add", "adding")
        tasks = client.get_run(run).run_details.task_details
        names = [each.display_name for each in tasks]
        assert names == (["add-driver", "add", "executor"] if argo else ["add"])

        def log(pod: str) -> tuple[int, str]:
            path = f"{server.url}/apis/v1alpha1/runs/{run}/nodes/{pod}/log"
            answer = urllib3.request("GET", path)
            return answer.status, answer.data.decode()

        listed = next(each for each in tasks if each.display_name == "add").child_tasks[0].pod_name
        assert log(handle.run.tasks["add"].pod(handle.run.workflow)) == (200, "adding\n")
        assert log(listed)[0] == (500 if argo else 200)


def test_terminating_a_run_stops_its_process(
    kfp_server: KfpServer, client: Any, tmp_path: Path
) -> None:
    kfp_server.executor = LocalPipeline(tmp_path / "runs")
    started = client.create_run_from_pipeline_func(endless)
    while "wait" not in kfp_server.runs[started.run_id].tasks:
        pass
    client.terminate_run(started.run_id)
    assert client.get_run(started.run_id).state in ("CANCELING", "CANCELED")
    for thread in kfp_server.state.threads:
        thread.join(30)
    assert client.get_run(started.run_id).state == "CANCELED"
    with pytest.raises(ApiException) as error:
        client.terminate_run(started.run_id)
    assert (error.value.status, said(error)["code"]) == (400, 3)


def test_a_pipeline_and_its_versions_are_uploaded_listed_and_deleted(
    client: Any, package: Path
) -> None:
    made = client.upload_pipeline(str(package), "my pipe", description="sums")
    assert (made.display_name, made.description) == ("my pipe", "sums")
    assert client.get_pipeline_id("my pipe") == made.pipeline_id
    assert client.get_pipeline_id("your pipe") is None
    second = client.upload_pipeline_version(str(package), "v2", pipeline_name="my pipe")
    listed = client.list_pipeline_versions(made.pipeline_id, sort_by="created_at desc")
    assert {each.display_name for each in listed.pipeline_versions} == {"my pipe", "v2"}
    shown = client.get_pipeline_version(made.pipeline_id, second.pipeline_version_id)
    assert shown.pipeline_spec["root"]["dag"]["tasks"]["add"]["taskInfo"] == {"name": "add"}
    with pytest.raises(ApiException) as error:
        client.delete_pipeline(made.pipeline_id)
    assert "existing pipeline versions" in said(error)["message"]
    for each in listed.pipeline_versions:
        client.delete_pipeline_version(made.pipeline_id, each.pipeline_version_id)
    client.delete_pipeline(made.pipeline_id)
    with pytest.raises(ApiException) as error:
        client.get_pipeline(made.pipeline_id)
    assert (error.value.status, said(error)["code"]) == (404, 5)
    assert said(error)["details"][0]["@type"] == "type.googleapis.com/google.rpc.Status"


@pytest.mark.parametrize("form", [zipped, tarred])
def test_an_archive_is_a_package_too(form: Any, client: Any, package: Path) -> None:
    made = client.upload_pipeline(str(form(package)), "archived")
    assert client.list_pipeline_versions(made.pipeline_id).total_size == 1


def test_what_is_no_pipeline_is_refused(client: Any, package: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("kind: ConfigMap\n")
    for path in (other, gzipped(package)):
        with pytest.raises(ApiException) as error:
            client._upload_api.upload_pipeline(str(path), name="other")
        assert error.value.status == 400
        assert set(said(error)) == {"error_message", "error_details"}


def test_a_name_that_is_taken_is_a_conflict(client: Any, package: Path) -> None:
    made = client.upload_pipeline(str(package), "mine")
    for again in (
        lambda: client.upload_pipeline(str(package), "mine"),
        lambda: client.upload_pipeline_version(str(package), "mine", made.pipeline_id),
    ):
        with pytest.raises(ApiException) as error:
            again()
        assert error.value.status == 409
    client.create_experiment("mine")
    with pytest.raises(ApiException) as error:
        client._experiment_api.experiment_service_create_experiment(
            client.api_models.V2beta1Experiment(display_name="mine")
        )
    assert (error.value.status, said(error)["code"]) == (409, 6)


def test_a_run_by_id_keeps_its_ids_and_a_platforms_spec_is_kept(
    client: Any, tmp_path: Path
) -> None:
    made = client.upload_pipeline(str(compiled(with_platform, tmp_path)), "p")
    (version,) = client.list_pipeline_versions(made.pipeline_id).pipeline_versions
    assert set(version.pipeline_spec) == {"pipeline_spec", "platform_spec"}
    experiment = client.create_experiment("nightly")
    run = client.run_pipeline(
        experiment.experiment_id,
        "by id",
        pipeline_id=made.pipeline_id,
        version_id=version.pipeline_version_id,
        enable_caching=False,
    )
    assert run.pipeline_version_reference.pipeline_version_id == version.pipeline_version_id
    assert run.pipeline_spec is None
    assert run.experiment_id == experiment.experiment_id


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({}, "parameter a is not optional"),
        ({"a": "1"}, "input parameter a requires type double or integer"),
        ({"a": True}, "input parameter a requires type double or integer"),
        ({"a": 1, "name": 3}, "input parameter name requires type string"),
        ({"a": 1, "more": []}, "input parameter more requires type struct"),
        ({"a": 1, "c": 1}, "parameter(s) provided are not required by pipeline: c"),
    ],
)
def test_parameters_are_checked_when_a_run_is_made(
    parameters: dict[str, Any], complaint: str, client: Any, package: Path
) -> None:
    experiment = client.create_experiment("e")
    with pytest.raises(ApiException) as error:
        client.run_pipeline(experiment.experiment_id, "r", str(package), parameters)
    assert error.value.status == 400
    assert complaint in said(error)["message"]


def test_runs_are_listed_in_pages_filtered_and_sorted(client: Any, package: Path) -> None:
    experiment = client.create_experiment("many")
    for number in range(7):
        client.run_pipeline(experiment.experiment_id, f"run-{number}", str(package), {"a": number})
    names, token = [], ""
    while True:
        page = client.list_runs(page_token=token, page_size=3, sort_by="display_name desc")
        names += [each.display_name for each in page.runs]
        assert page.total_size == 7
        token = page.next_page_token
        if not token:
            break
    assert names == [f"run-{number}" for number in reversed(range(7))]

    def found(operation: str, key: str, **value: Any) -> set[str]:
        text = json.dumps({"predicates": [{"operation": operation, "key": key, **value}]})
        return {each.display_name for each in client.list_runs(filter=text).runs or []}

    assert found("EQUALS", "display_name", stringValue="RUN-3") == {"run-3"}
    assert found("IS_SUBSTRING", "display_name", stringValue="un-") == set(names)
    assert found("IN", "display_name", stringValues={"values": ["run-1", "run-2"]}) == {
        "run-1",
        "run-2",
    }
    assert found("NOT_EQUALS", "state", stringValue="PENDING") == set()
    assert found("GREATER_THAN", "created_at", timestampValue="2020-01-01T00:00:00Z") == set(names)
    for wrong in ("name", "{}", '{"predicates": [{"operation": "EQUALS", "key": "colour", "stringValue": "x"}]}'):  # noqa: E501  # fmt: skip
        if wrong == "{}":
            continue
        with pytest.raises(ApiException) as error:
            client.list_runs(filter=wrong)
        assert error.value.status == 400
    with pytest.raises(ApiException) as error:
        client.list_runs(page_token="nonsense", page_size=3)
    assert said(error)["details"][0]["message"] == "Invalid package token"


def test_experiments_and_runs_are_archived_and_deleted(
    kfp_server: KfpServer, client: Any, package: Path
) -> None:
    made = client.create_experiment("old", description="of last year")
    assert client.create_experiment("old").experiment_id == made.experiment_id
    run = client.run_pipeline(made.experiment_id, "r", str(package), {"a": 1})
    client.archive_experiment(made.experiment_id)
    assert client.get_experiment(made.experiment_id).storage_state == "ARCHIVED"
    assert client.get_run(run.run_id).storage_state == "ARCHIVED"
    with pytest.raises(ApiException):
        client.unarchive_run(run.run_id)
    client.unarchive_experiment(made.experiment_id)
    client.unarchive_run(run.run_id)
    client.delete_run(run.run_id)
    client.delete_experiment(made.experiment_id)
    assert not kfp_server.runs
    with pytest.raises(ValueError, match="No experiment"):
        client.get_experiment(experiment_name="old")
    default = client.get_experiment(experiment_name="Default")
    with pytest.raises(ApiException) as error:
        client.delete_experiment(default.experiment_id)
    assert error.value.status == 409


def test_a_failed_run_is_retried_and_a_good_one_is_not(kfp_server: KfpServer, client: Any) -> None:
    kfp_server.script = ["PENDING", "RUNNING"]
    started = client.create_run_from_pipeline_func(sum_up, arguments={"a": 1})
    kfp_server.set_state(started.run_id, "FAILED", error="the node is lost")
    assert client.get_run(started.run_id).error.message == "the node is lost"
    kfp_server.script = ["RUNNING", "SUCCEEDED"]
    client.runs.run_service_retry_run(started.run_id)
    ended = client.wait_for_run_completion(started.run_id, 20, sleep_duration=0)
    assert (ended.state, ended.error) == ("SUCCEEDED", None)
    with pytest.raises(ApiException) as error:
        client.runs.run_service_retry_run(started.run_id)
    assert error.value.status == 409
