"""Tracking, on SQLite and on a real server over PostgreSQL."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from loopback import free_ports

from infra.errors import ObjectMissing, OutsideError
from infra.tracking import Tracking, connect, default_uri

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tracking(uri: str) -> Tracking:
    return Tracking(uri=uri, experiment=f"experiment {uuid.uuid4().hex}")


def run_of(tracking: Tracking, run_id: str) -> Any:
    return connect(tracking.uri).get_run(run_id)


def runs_of(tracking: Tracking) -> list[str]:
    client = connect(tracking.uri)
    experiment = client.get_experiment_by_name(tracking.experiment)
    return [run.info.run_id for run in client.search_runs([experiment.experiment_id])]


def test_one_key_is_one_run_whoever_asks(tracking: Tracking) -> None:
    key = f"it's {uuid.uuid4().hex}"
    first = tracking.open_run(key=key, name="2026-03", tags={"step": "one", "kept": "yes"})
    again = Tracking(uri=tracking.uri, experiment=tracking.experiment)
    assert again.open_run(key=key, name="other", tags={"step": "two"}) == first
    assert again.open_run(key="another", name="2026-03", tags={}) != first
    run = run_of(tracking, first)
    assert run.info.run_name == "2026-03"
    assert run.data.tags["evertrain.run_key"] == key
    assert (run.data.tags["step"], run.data.tags["kept"]) == ("two", "yes")


def test_a_finished_run_that_is_opened_again_runs_again(tracking: Tracking) -> None:
    run_id = tracking.open_run(key="k", name="n", tags={})
    tracking.finish(run_id, "FAILED")
    assert run_of(tracking, run_id).info.status == "FAILED"
    assert tracking.open_run(key="k", name="n", tags={}) == run_id
    assert run_of(tracking, run_id).info.status == "RUNNING"
    tracking.finish(run_id, "FINISHED")
    assert run_of(tracking, run_id).info.status == "FINISHED"


def test_who_made_a_second_run_with_the_key_takes_the_eldest(tracking: Tracking) -> None:
    eldest = tracking.open_run(key="k", name="first", tags={})

    class Late(Tracking):
        looked = 0

        def _find(self, key: str) -> Any:
            self.looked += 1
            return None if self.looked == 1 else super()._find(key)

    late = Late(uri=tracking.uri, experiment=tracking.experiment)
    assert late.open_run(key="k", name="second", tags={}) == eldest
    assert runs_of(tracking) == [eldest]


def test_metrics_arrive_in_batches_whole_and_with_their_steps(tracking: Tracking) -> None:
    run_id = tracking.open_run(key="k", name="n", tags={})
    tracking.log_metrics(run_id, (("loss", 1 / step, step) for step in range(1, 2501)))
    tracking.log_metrics(run_id, [("odd", math.nan, 1), ("odd", math.inf, 2)])
    tracking.log_metrics(run_id, [])
    history = connect(tracking.uri).get_metric_history(run_id, "loss")
    assert {each.step: each.value for each in history} == {
        step: pytest.approx(1 / step) for step in range(1, 2501)
    }
    assert run_of(tracking, run_id).data.metrics["loss"] == pytest.approx(1 / 2500)
    assert len(connect(tracking.uri).get_metric_history(run_id, "odd")) == 2


def test_parameters_are_written_once_and_long_ones_are_cut(tracking: Tracking) -> None:
    run_id = tracking.open_run(key="k", name="n", tags={})
    params = {f"p{number}": number for number in range(250)} | {"long": "x" * 20_000}
    tracking.log_params(run_id, params)
    tracking.log_params(run_id, params)
    stored = run_of(tracking, run_id).data.params
    assert {name: stored[name] for name in params if name != "long"} == {
        name: str(value) for name, value in params.items() if name != "long"
    }
    assert stored["long"] == "x" * 5999 + "…"
    with pytest.raises(ValueError, match="Changing param values"):
        tracking.log_params(run_id, {"p1": "other"})
    with pytest.raises(ValueError, match="refuses this"):
        tracking.log_metrics(run_id, [("no@name", 1.0, 1)])


def test_tags_are_replaced_and_long_ones_are_cut(tracking: Tracking) -> None:
    run_id = tracking.open_run(key="k", name="n", tags={})
    tracking.set_tags(run_id, {f"t{number}": "x" for number in range(150)})
    tracking.set_tags(run_id, {"t1": "y" * 10_000})
    tags = run_of(tracking, run_id).data.tags
    assert tags["t149"] == "x"
    assert tags["t1"] == "y" * 7999 + "…"


def test_an_unknown_run_is_said_to_be_missing(tracking: Tracking) -> None:
    with pytest.raises(ObjectMissing, match="0" * 32):
        tracking.finish("0" * 32, "FINISHED")


def test_a_deleted_experiment_is_said_with_the_way_back(tracking: Tracking) -> None:
    tracking.open_run(key="k", name="n", tags={})
    client = connect(tracking.uri)
    number = client.get_experiment_by_name(tracking.experiment).experiment_id
    client.delete_experiment(number)
    fresh = Tracking(uri=tracking.uri, experiment=tracking.experiment)
    with pytest.raises(OutsideError, match=f"experiments restore --experiment-id {number}"):
        fresh.open_run(key="k", name="n", tags={})


def test_the_default_is_a_database_in_the_home_folder_and_the_environment_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert default_uri(tmp_path) == f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.chdir(tmp_path)
    assert default_uri(Path("home")) == f"sqlite:///{tmp_path}/home/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mlflow:5000")
    assert default_uri(tmp_path) == "http://mlflow:5000"


def test_artifacts_lie_beside_the_database(sqlite_uri: str) -> None:
    tracking = Tracking(uri=sqlite_uri, experiment=uuid.uuid4().hex)
    run = run_of(tracking, tracking.open_run(key="k", name="n", tags={}))
    home = Path(sqlite_uri.removeprefix("sqlite:///")).parent
    assert run.info.artifact_uri.startswith((home / "mlartifacts").as_uri())


def test_a_server_that_is_not_there_is_said_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    address = f"http://127.0.0.1:{free_ports(1)[0]}"
    started = time.monotonic()
    with pytest.raises(OutsideError) as caught:
        Tracking(uri=address, experiment="e").open_run(key="k", name="n", tags={})
    assert time.monotonic() - started < 10
    assert address in caught.value.what
    assert f"curl -f {address}/health" in caught.value.hint
    assert os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "1"  # the environment wins
    assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "30"  # where it says something


def test_a_database_that_cannot_be_opened_is_an_outside_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("this is no database")
    for place in ("file/mlflow.db", "file", "."):
        with pytest.raises(OutsideError, match="MLFLOW_TRACKING_URI"):
            Tracking(uri=f"sqlite:///{tmp_path}/{place}", experiment="e").open_run(
                key="k", name="n", tags={}
            )


TALK = """
import logging, sys
from infra.tracking import Tracking
assert "mlflow" not in sys.modules
tracking = Tracking(uri=sys.argv[1], experiment=sys.argv[2])
run = tracking.open_run(key="k", name="n", tags={})
tracking.log_metrics(run, [("loss", 1.0, 1)])
tracking.finish(run, "FINISHED")
assert not logging.getLogger().handlers
"""


def talk(uri: str, experiment: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if "MLFLOW" not in name}
    return subprocess.Popen(
        [sys.executable, "-c", TALK, uri, experiment],
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_nothing_is_printed(uri: str) -> None:
    process = talk(uri, uuid.uuid4().hex)
    assert (*process.communicate(), process.returncode) == ("", "", 0)


@pytest.mark.slow
def test_processes_that_meet_in_a_new_database_share_it(tmp_path: Path) -> None:
    address = default_uri(tmp_path / "home")
    processes = [talk(address, "shared") for _ in range(3)]
    ended = [(*process.communicate(), process.returncode) for process in processes]
    assert ended == [("", "", 0)] * 3
    assert len(runs_of(Tracking(uri=address, experiment="shared"))) == 1
