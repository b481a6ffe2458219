"""`evertrain deploy` where the world outside fails: what it says, and what it leaves."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from components.common.project import open_project
from pipelines.deploy.deploying import Prepared, carry_out, prepare
from tests.cluster.conftest import kfp_home as kfp_home
from tests.cluster.conftest import kfp_server as kfp_server
from tests.cluster.faults import Call, Fault, answer, lost_reply, reset, truncated_body
from tests.cluster.kfp_entities import Experiment
from tests.cluster.kfp_server import KfpServer
from tests.pipelines.deploy_case import DEPLOYABLE, NIGHTLY, WEEKLY, Case, impatient, new_case

CLUSTER = DEPLOYABLE["cluster"]
TOKEN = "token-hunter2"


@pytest.fixture
def case(tmp_path: Path, kfp_server: KfpServer, monkeypatch: pytest.MonkeyPatch) -> Case:
    made = new_case(tmp_path, kfp_server, monkeypatch)
    impatient(made)
    return made


def changed(case: Case) -> None:
    """Give the next deploy everything to do at once: upload, replace, create, remove."""
    access = case.settings["cluster"]["access"]
    pods = {"default": {"memory": "8Gi"}}
    case.write(
        {
            "cluster": {**CLUSTER, "access": access, "pods": pods},
            "schedules": [{**NIGHTLY, "cron": "0 0 3 * * *"}, {**NIGHTLY, "name": "second"}],
        }
    )


def mended(case: Case) -> None:
    """What is there after a deploy that nothing disturbs: one of each, newest version, firing."""
    ended = case.deploy()
    assert ended.code == 0, ended.err
    assert set(case.schedules) == {"small-nightly", "small-second"}
    (pipeline,) = case.server.pipelines.values()
    newest = max(pipeline.versions.values(), key=lambda each: each.order)
    for name in ("nightly", "second"):
        there = case.one(name)
        assert (there.enabled, there.source.version) == (True, newest.key)
    assert len(case.versions) == len({name[2:] for name in case.versions}), "none uploaded twice"
    assert case.to_do() == {}


def calls_of_a_change(tmp_path: Path) -> list[Call]:
    """Every request of the deploy of such a change, counted from 0."""
    found: list[Call] = []
    with KfpServer() as server:
        case = Case(tmp_path / "counting", server)
        impatient(case)
        assert case.deploy().code == 0
        changed(case)
        server.faults.script = lambda call: found.append(call)  # type: ignore[func-returns-value]
        assert case.deploy().code == 0
    return found


MIXED = (reset(), answer(429, retry_after=0), truncated_body(), answer(500), answer(503))


@pytest.mark.parametrize("faults", [(lost_reply(),), MIXED], ids=["lost replies", "mixed"])
def test_a_fault_at_any_request_is_got_over_and_doubles_nothing(
    case: Case, faults: tuple[Fault, ...]
) -> None:
    """Every request of the deploy meets a fault, each of them once."""
    assert case.deploy().code == 0
    changed(case)
    seen: set[tuple[str, str]] = set()

    def script(call: Call) -> Fault | None:
        if (call.method, call.path) in seen:
            return None
        seen.add((call.method, call.path))
        return faults[len(seen) % len(faults)]

    case.server.faults.script = script
    impatience = {"patience": 5.0, "timeout": 5.0}
    case.write({"cluster": {**case.settings["cluster"], "access": impatience}})
    ended = case.deploy()
    assert ended.code == 0, ended.err
    assert len(seen) > 10
    case.server.faults.clear()
    assert case.to_do() == {}
    mended(case)


@pytest.mark.smoke
@pytest.mark.slow
def test_wherever_the_server_goes_away_the_next_deploy_mends_it(case: Case, tmp_path: Path) -> None:
    """After the n-th request nothing answers any more, for every n; at most one ever fires."""
    count = len(calls_of_a_change(tmp_path))
    for stop in range(1, count + 1):
        with KfpServer() as server:
            other = Case(tmp_path / str(stop) / "project", server)
            impatient(other, patience=0.0)
            assert other.deploy().code == 0
            changed(other)
            served = 0

            def script(call: Call, stop: int = stop) -> Fault | None:
                nonlocal served
                served += 1
                return answer(503) if served > stop else None

            server.faults.script = script
            ended = other.deploy()
            firing = [each for each in other.schedules["small-nightly"] if each.enabled]
            assert len(firing) <= 1, stop
            server.faults.clear()
            if stop < count - 5:  # after the last change it only looks again
                assert ended.code == 3, (stop, ended.err)
            mended(other)


@pytest.mark.parametrize("status", [500, 400, 403])
def test_a_new_schedule_that_cannot_be_switched_on_lets_the_old_one_fire_again(
    case: Case, status: int
) -> None:
    assert case.deploy().code == 0
    old = case.one("nightly").key
    case.write({"schedules": [{**NIGHTLY, "cron": "0 0 3 * * *"}, WEEKLY]})

    def script(call: Call) -> Fault | None:
        enabling = call.path.endswith(":enable") and old not in call.path
        return answer(status) if enabling else None

    case.server.faults.script = script
    ended = case.deploy()
    assert ended.code == (3 if status == 500 else 2)
    firing = [each.key for each in case.schedules["small-nightly"] if each.enabled]
    assert firing == [old]
    case.server.faults.clear()
    assert case.deploy().code == 0
    assert case.one("nightly").trigger == {"cron_schedule": {"cron": "0 0 3 * * *"}}


def test_two_deploys_at_once_leave_one_of_each(case: Case) -> None:
    project = open_project(case.folder)
    barrier = threading.Barrier(3)
    troubles: list[BaseException] = []

    def deploy(prepared: Prepared) -> None:
        barrier.wait(30)
        try:
            carry_out(prepared, lambda words: None)
        except BaseException as error:  # noqa: BLE001
            troubles.append(error)

    planned = []
    for number in range(3):
        folder = case.folder.parent / f"out{number}"
        folder.mkdir()
        planned.append(prepare(project, folder, host=case.server.url))
    threads = [threading.Thread(target=deploy, args=(each,)) for each in planned]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert troubles == []
    assert len(case.server.pipelines) == 1
    assert len(case.versions) == 1
    assert len([e for e in case.server.experiments.values() if e.name == "small"]) == 1
    for name in ("nightly", "weekly"):
        assert case.one(name).enabled
    assert case.to_do() == {}


def test_an_experiment_that_another_deploy_makes_in_between_is_used(case: Case) -> None:
    def script(call: Call) -> None:
        if call.method == "POST" and call.path.endswith("/experiments") and len(there) == 1:
            made = Experiment("small", "", "")
            there[made.key] = made

    there = case.server.experiments
    case.server.faults.script = script
    ended = case.deploy()
    assert ended.code == 0, ended.err
    case.server.faults.clear()
    assert [each.name for each in there.values()] == ["Default", "small"]
    assert case.to_do() == {}


def test_a_schedule_that_somebody_deletes_meanwhile_is_made_again(case: Case) -> None:
    assert case.deploy().code == 0
    changed(case)

    def script(call: Call) -> None:
        if call.method == "POST" and call.path.endswith("/recurringruns"):
            keys = [k for k, each in case.server.recurring_runs.items() if each.enabled]
            for key in keys:
                case.server.recurring_runs.pop(key, None)

    case.server.faults.script = script
    case.deploy()
    case.server.faults.clear()
    mended(case)


def test_an_experiment_that_was_archived_is_said(case: Case) -> None:
    assert case.deploy().code == 0
    (experiment,) = [e for e in case.server.experiments.values() if e.name == "small"]
    experiment.archived = True
    changed(case)
    ended = case.deploy()
    assert ended.code == 3
    assert "the experiment 'small'" in ended.err
    assert "is archived" in ended.err
    assert "cluster.experiment" in ended.err
