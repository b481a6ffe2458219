"""Metrics while MLflow is away: kept on disk, sent later, each of them once."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from loopback import answers, free_ports, running

from infra.delivery import Delivery, Sender
from infra.spool import Spool, Unsent, spooled
from infra.tracking import Tracking, connect

ROOT = Path(__file__).parents[2]


@pytest.fixture
def _short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")


def spool(folder: Path, key: str = "key", experiment: str = "spooled") -> Spool:
    return Spool(folder, key=key, experiment=experiment, name="a run", tags={"one": "1"})


def sender(of: Spool, uri: str, said: list[str] | None = None, *, after: float = 0.05) -> Sender:
    warn = (said if said is not None else []).append
    return Sender(of, uri=uri, warn=warn, after=after, every=0.1)


def the_run(uri: str, key: str = "key", experiment: str = "spooled") -> Any:
    client = connect(uri)
    number = client.get_experiment_by_name(experiment).experiment_id
    (run,) = client.search_runs([number], filter_string=f"tags.`evertrain.run_key` = '{key}'")
    return run


def history(uri: str, run: Any, name: str = "loss") -> list[tuple[int, float]]:
    found = connect(uri).get_metric_history(run.info.run_id, name)
    return sorted((metric.step, metric.value) for metric in found)


def database(folder: Path) -> str:
    return f"sqlite:///{folder}/mlflow.db"


def server(port: int, folder: Path) -> AbstractContextManager[Any]:
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", database(folder)]
    environment = os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    environment |= {"MLFLOW_DISABLE_TELEMETRY": "true"}
    return running(
        command, ready=lambda: answers(port), log=folder / "server.log", environment=environment
    )


@pytest.mark.smoke  # waits for a server
@pytest.mark.usefixtures("_short_patience")
def test_what_is_logged_while_the_server_is_down_arrives_once_when_it_is_up(
    tmp_path: Path,
) -> None:
    (port,) = free_ports(1)
    uri, said = f"http://127.0.0.1:{port}", []
    mine = spool(tmp_path / "spool")
    sending = sender(mine, uri, said)
    for step in range(1, 1001):  # two metrics each: more than one request takes
        mine.metrics(step, {"loss": 1 / step, "lr": 0.1})
    while not said:
        time.sleep(0.05)
    assert "metrics are kept on disk until MLflow answers" in said[0]
    with server(port, tmp_path):
        for step in range(1001, 1101):
            mine.metrics(step, {"loss": 1 / step, "lr": 0.1})
        mine.end("FINISHED")
        assert sending.close(timeout=60)
        run = the_run(uri)
        assert history(uri, run) == [(step, 1 / step) for step in range(1, 1101)]
        assert len(history(uri, run, "lr")) == 1100
        assert (run.info.status, run.data.tags["one"]) == ("FINISHED", "1")
    assert spooled(tmp_path / "spool") == []
    assert list((tmp_path / "spool").iterdir()) == []
    assert len(said) == 1


@pytest.mark.usefixtures("_short_patience")
def test_what_one_training_could_not_send_the_next_one_sends(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    said: list[str] = []
    mine = spool(tmp_path / "spool")
    mine.params({"training.lr": 0.1})
    mine.metrics(1, {"loss": 0.5})
    mine.end("FAILED")
    assert not sender(mine, f"http://127.0.0.1:{port}", said).close(timeout=60)
    assert f"the rest is in {mine.path}" in said[-1]
    uri = database(tmp_path)
    other = spool(tmp_path / "spool", key="another")
    other.end("FINISHED")
    assert sender(other, uri).close(timeout=120)
    while spooled(tmp_path / "spool"):  # leftovers come after what the close waits for
        time.sleep(0.05)
    run = the_run(uri)
    assert history(uri, run) == [(1, 0.5)]
    assert (run.info.status, run.data.params) == ("FAILED", {"training.lr": "0.1"})


WRITE = """
import os, signal, sys
from pathlib import Path
from infra.spool import Spool
mine = Spool(Path(sys.argv[1]), key="key", experiment="spooled", name="a run", tags={})
for step in range(1, 51):
    mine.metrics(step, {"loss": 1 / step})
os.write(mine._file, b'["metrics", 17, 51, {"lo')  # a torn line
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_its_metrics_to_the_next_one_with_its_key(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", WRITE, str(tmp_path / "spool")], cwd=ROOT)
    assert ended.returncode == -signal.SIGKILL
    uri, mine = database(tmp_path), spool(tmp_path / "spool")
    mine.metrics(51, {"loss": 1 / 51})
    mine.end("FINISHED")
    assert sender(mine, uri).close(timeout=120)
    run = the_run(uri)
    assert history(uri, run) == [(step, 1 / step) for step in range(1, 52)]
    assert run.info.status == "FINISHED"
    assert spooled(tmp_path / "spool") == []


def test_a_batch_that_is_sent_twice_is_kept_once(tmp_path: Path, uri: str) -> None:
    experiment = uuid.uuid4().hex
    mine = spool(tmp_path, experiment=experiment)
    for step in range(3):
        mine.metrics(step, {"loss": 1 / 3 + step, "odd": math.nan, "far": math.inf})
    delivery = Delivery(uri, warn=pytest.fail)
    for _ in range(2):  # as if killed after MLflow took it and before that was noted
        unsent = Unsent(mine.path, own=True)
        delivery.deliver(unsent)
        unsent.close()
        mine.path.with_name(mine.path.name + ".sent").unlink()
    mine.close()
    run = the_run(uri, experiment=experiment)
    assert history(uri, run) == [(step, 1 / 3 + step) for step in range(3)]
    assert Counter(step for step, _ in history(uri, run, "odd")) == {0: 1, 1: 1, 2: 1}
    assert len(history(uri, run, "far")) == 3


def test_what_mlflow_refuses_is_left_out_and_said_once(tmp_path: Path) -> None:
    uri, said, mine = database(tmp_path), [], spool(tmp_path / "spool")
    tracking = Tracking(uri=uri, experiment="spooled")
    tracking.log_params(tracking.open_run(key="key", name="a run", tags={}), {"lr": 0.1})
    mine.params({"lr": 0.2})
    for step in range(5):
        mine.metrics(step, {"loss": 0.5, "bad@name": 1.0, "lr": 0.1})
    mine.end("FINISHED")
    assert sender(mine, uri, said).close(timeout=120)
    run = the_run(uri)
    assert len(history(uri, run)) == len(history(uri, run, "lr")) == 5
    assert run.data.params == {"lr": "0.1"}
    assert len(said) == 2
    assert "the metric 'bad@name' is left out" in said[0]
    assert "lr" in said[1]


def test_a_refused_name_is_not_tried_again(tmp_path: Path) -> None:
    said: list[str] = []
    mine, delivery = spool(tmp_path / "spool"), Delivery(database(tmp_path), warn=said.append)
    unsent = Unsent(mine.path, own=True)
    for step in range(3):
        mine.metrics(step, {"loss": 0.5, "bad@name": 1.0})
        delivery.deliver(unsent)
    unsent.close()
    mine.close()
    assert len(said) == 1
    assert len(history(database(tmp_path), the_run(database(tmp_path)))) == 3


def test_nothing_is_sent_in_the_first_seconds(tmp_path: Path) -> None:
    code = """
import sys, time
from pathlib import Path
from infra.delivery import Sender
from infra.spool import Spool
mine = Spool(Path(sys.argv[1]), key="key", experiment="e", name="n", tags={})
sending = Sender(mine, uri=sys.argv[2], warn=print, after=60)
mine.metrics(1, {"loss": 0.5})
time.sleep(0.3)
assert "mlflow" not in sys.modules
"""
    command = [sys.executable, "-c", code, str(tmp_path), database(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")  # nor does the thread hold the process up
    assert len(spooled(tmp_path)) == 1


def test_a_file_is_sent_by_one_process_at_a_time(tmp_path: Path) -> None:
    mine = spool(tmp_path)
    with pytest.raises(BlockingIOError):
        Unsent(mine.path)
    mine.close()
    first = Unsent(mine.path)
    with pytest.raises(BlockingIOError):
        Unsent(mine.path)
    first.remove()
    first.close()
    with pytest.raises(FileNotFoundError):
        Unsent(mine.path)


def test_batches_hold_whole_messages_and_go_on_where_they_were_confirmed(tmp_path: Path) -> None:
    mine = spool(tmp_path)
    for step in range(10):
        mine.metrics(step, {"loss": 0.5, "lr": 0.1, "norm": 1.0})
    unsent = Unsent(mine.path, own=True)
    steps = []
    while messages := unsent.batch(8)[0]:
        assert sum(len(m[3]) for m in messages if m[0] == "metrics") <= 8
        steps += [m[2] for m in messages if m[0] == "metrics"]
        unsent.confirm(unsent.batch(8)[1])
        unsent.close()
        unsent = Unsent(mine.path, own=True)
    assert steps == list(range(10))
    mine.metrics(10, dict.fromkeys(map(str, range(20)), 1.0))  # more than a batch: alone
    assert [m[2] for m in unsent.batch(8)[0]] == [10]
    unsent.close()
    mine.close()


def test_a_line_that_is_still_being_written_waits_for_its_end(tmp_path: Path) -> None:
    mine = spool(tmp_path)
    assert mine._file is not None
    unsent = Unsent(mine.path, own=True)
    os.write(mine._file, b'["metrics", 17, 1, {"lo')
    messages, end = unsent.batch(100)
    assert [m[0] for m in messages] == ["run"]
    unsent.confirm(end)
    os.write(mine._file, b'ss": 0.5}]\n')
    assert unsent.batch(100)[0] == [["metrics", 17, 1, {"loss": 0.5}]]
    unsent.close()
    mine.close()


def test_a_disk_that_cannot_be_written_is_said_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    said: list[str] = []
    mine = spool(tmp_path / "file")
    sending = sender(mine, database(tmp_path), said)
    mine.metrics(1, {"loss": 0.5})
    mine.end("FINISHED")
    assert not sending.close(timeout=60)
    assert said == ["3 lines for MLflow could not be written to disk"]
