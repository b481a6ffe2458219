"""Scripted faults as the stock client meets them."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path
from typing import Any

import pytest
import urllib3
from kfp_server_api import ApiException

from tests.cluster.faults import (
    Call,
    Fault,
    answer,
    hang,
    lost_reply,
    reset,
    slow_body,
    truncated_body,
)
from tests.cluster.kfp_samples import compiled, sum_up
from tests.cluster.kfp_server import Account, KfpServer

RUNS = "/apis/v2beta1/runs"


@pytest.fixture
def client(kfp_server: KfpServer, kfp_client: Any) -> Any:
    client = kfp_client(kfp_server)
    client._run_api.api_client.configuration.retries = False  # one call, one request
    client._run_api.api_client.rest_client.pool_manager.connection_pool_kw["retries"] = False
    return client


@pytest.fixture
def start(client: Any, tmp_path: Path) -> Any:
    package = str(compiled(sum_up, tmp_path))
    experiment = client.create_experiment("e")
    return lambda: client.run_pipeline(experiment.experiment_id, "r", package, {"a": 1})


def test_a_lost_reply_leaves_the_run_that_the_client_does_not_know_of(
    kfp_server: KfpServer, start: Any
) -> None:
    kfp_server.faults.add("POST", RUNS, lost_reply())
    with pytest.raises(urllib3.exceptions.HTTPError):
        start()
    assert len(kfp_server.runs) == 1
    start()
    assert len(kfp_server.runs) == 2
    assert [(fault.kind, call.path) for fault, call in kfp_server.faults.done] == [
        ("lost_reply", RUNS)
    ]


@pytest.mark.parametrize("fault", [reset(), hang(0.2)])
def test_a_request_that_is_not_handled_leaves_nothing(
    fault: Fault, kfp_server: KfpServer, start: Any
) -> None:
    kfp_server.faults.add("POST", RUNS, fault)
    with pytest.raises(urllib3.exceptions.HTTPError):
        start()
    assert not kfp_server.runs


def test_a_busy_server_says_when_to_come_again(kfp_server: KfpServer, start: Any) -> None:
    kfp_server.faults.add("POST", "/apis/*", answer(429, retry_after=7), nth=1, times=2)
    for _ in range(2):
        with pytest.raises(ApiException) as error:
            start()
        assert error.value.status == 429
        assert error.value.headers["Retry-After"] == "7"
        assert json.loads(error.value.body)["code"] == 8
    start()


@pytest.mark.parametrize("status", [409, 500, 503])
def test_the_nth_call_fails_and_no_other(
    status: int, kfp_server: KfpServer, client: Any, start: Any
) -> None:
    run = start().run_id
    kfp_server.faults.add("GET", f"{RUNS}/*", answer(status), nth=2)
    client.get_run(run)
    with pytest.raises(ApiException) as error:
        client.get_run(run)
    assert error.value.status == status
    client.get_run(run)


def test_a_body_may_come_slowly_or_in_half(kfp_server: KfpServer, client: Any, start: Any) -> None:
    run = start().run_id
    kfp_server.faults.add("GET", f"{RUNS}/*", slow_body(0.2))
    assert client.get_run(run).run_id == run
    kfp_server.faults.add("GET", f"{RUNS}/*", truncated_body())
    with pytest.raises(urllib3.exceptions.HTTPError):
        client.get_run(run)


def test_a_script_may_choose_at_random_with_a_seed(
    kfp_server: KfpServer, client: Any, start: Any
) -> None:
    start()
    dice = random.Random(7)

    def script(call: Call) -> Fault | None:
        return answer(503) if call.method == "GET" and dice.random() < 0.5 else None

    kfp_server.faults.script = script
    failed = 0
    for _ in range(20):
        try:
            client.list_runs()
        except ApiException:
            failed += 1
    assert failed == len(kfp_server.faults.done)
    assert 0 < failed < 20


def test_whatever_goes_wrong_there_are_as_many_runs_as_were_handled(
    kfp_server: KfpServer, kfp_client: Any, tmp_path: Path
) -> None:
    """Eight clients at once; what the server has is what it answered, and the replies it lost."""
    package = str(compiled(sum_up, tmp_path))
    experiment = kfp_client(kfp_server).create_experiment("e").experiment_id
    dice, lock = random.Random(3), threading.Lock()

    def script(call: Call) -> Fault | None:
        with lock:
            fault = dice.choice((None, None, reset(), lost_reply(), answer(503), answer(409)))
        return fault if (call.method, call.path) == ("POST", RUNS) else None

    kfp_server.faults.script = script
    made: list[str] = []

    def start(number: int) -> None:
        client = kfp_client(kfp_server)
        client._run_api.api_client.rest_client.pool_manager.connection_pool_kw["retries"] = False
        for each in range(10):
            try:
                made.append(
                    client.run_pipeline(
                        experiment, f"{number}-{each}", package, {"a": 1}
                    ).display_name
                )
            except (ApiException, urllib3.exceptions.HTTPError):
                continue

    threads = [threading.Thread(target=start, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lost = [fault for fault, _ in kfp_server.faults.done if fault.kind == "lost_reply"]
    names = [run.name for run in kfp_server.runs.values()]
    assert len(names) == len(set(names)) == len(made) + len(lost)
    assert set(made) < set(names)


def test_to_the_stock_client_a_login_page_is_an_empty_answer(
    kfp_home: Path, kfp_client: Any, tmp_path: Path
) -> None:
    """HTML with a 200 becomes a model in which everything is None: nothing, it seems, is there."""
    with KfpServer(accounts={"token": Account("a")}, login_page=True) as server:
        stranger = kfp_client(server)
        assert stranger.list_runs().total_size is None
        assert stranger.get_kfp_healthz().pipeline_store is None
        known = kfp_client(server, existing_token="token")
        assert known.get_kfp_healthz().pipeline_store == "database"


def test_a_server_that_closes_cuts_who_waits(kfp_server: KfpServer, client: Any) -> None:
    kfp_server.faults.add("GET", "*", hang())
    ended: list[BaseException] = []

    def ask() -> None:
        try:
            client.list_runs()
        except Exception as error:  # noqa: BLE001
            ended.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    while not kfp_server.requests:
        pass
    kfp_server.close()
    thread.join(10)
    assert ended
