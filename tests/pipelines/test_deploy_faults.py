"""`evertrain deploy` where the world outside fails: what it says, and what it leaves."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from components.common.project import open_project
from pipelines.deploy.deploying import Prepared, carry_out, connect, prepare
from tests.cluster.conftest import kfp_home as kfp_home
from tests.cluster.conftest import kfp_server as kfp_server
from tests.cluster.faults import Call, Fault, answer, hang, lost_reply, reset, truncated_body
from tests.cluster.kfp_server import Account, KfpServer
from tests.infra.alert_servers import certificate
from tests.pipelines.deploy_case import DEPLOYABLE, NIGHTLY, WEEKLY, Case

CLUSTER = DEPLOYABLE["cluster"]
TOKEN = "token-hunter2"


@pytest.fixture
def case(tmp_path: Path, kfp_server: KfpServer, monkeypatch: pytest.MonkeyPatch) -> Case:
    for name in ("EVERTRAIN_STORE", "MLFLOW_TRACKING_URI", "AWS_ENDPOINT_URL", "SSL_CERT_FILE",
                 "EVERTRAIN_KUBEFLOW_TOKEN", "EVERTRAIN_KUBEFLOW_COOKIES",
                 "KF_PIPELINES_SA_TOKEN_PATH", "HTTP_PROXY", "http_proxy"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    made = Case(tmp_path / "project", kfp_server)
    impatient(made)
    return made


def impatient(case: Case, **access: Any) -> None:
    """Do not wait as long for a server as people do."""
    access = {"patience": 0.6, "timeout": 0.5, **access}
    case.write({"cluster": {**CLUSTER, "access": access}})


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


def test_a_server_that_is_not_there_is_said_with_its_address(case: Case) -> None:
    address = case.server.url
    case.server.close()
    ended = case.deploy()
    assert ended.code == 3
    assert f"cannot reach Kubeflow at {address}" in ended.err
    assert "Connection refused" in ended.err
    assert f"curl {address}/apis/v2beta1/healthz" in ended.err
    assert "Traceback" not in ended.err


def test_a_name_that_nothing_resolves_is_said(case: Case) -> None:
    ended = case.deploy("--host", "http://kubeflow.invalid")
    assert ended.code == 3
    assert "cannot reach Kubeflow at http://kubeflow.invalid" in ended.err
    assert "its name cannot be resolved" in ended.err


def test_a_server_that_takes_requests_and_says_nothing_is_given_up(case: Case) -> None:
    case.server.faults.add("GET", "*", hang(), times=None)
    ended = case.deploy()
    assert ended.code == 3
    assert "no answer in 0.5 s" in ended.err


def test_no_host_at_all_is_said_with_the_ways_to_name_one(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    monkeypatch.setattr(case.server, "url", "", raising=False)
    ended = case.deploy()
    assert ended.code == 3
    assert "no host of Kubeflow is named" in ended.err
    assert "--host URL, cluster.host in evertrain.yaml, or KF_PIPELINES_ENDPOINT" in ended.err


@pytest.mark.parametrize("status", [301, 302, 303, 307])
def test_a_redirection_to_a_login_is_not_taken_for_an_empty_server(case: Case, status: int) -> None:
    case.server.faults.add("GET", "*", answer(status), times=None)
    ended = case.deploy()
    assert ended.code == 2
    assert "to a page to log in at" in ended.err
    assert "docs/deploy.md#credentials" in ended.err
    assert case.changing_calls() == []


class Guarded:
    """A server that wants to know who asks."""

    def __init__(self, tmp_path: Path, **more: Any) -> None:
        self.server = KfpServer(
            accounts={TOKEN: Account("ann", ("team",))},
            cookies={"session-hunter2": Account("ann", ("team",))},
            **more,
        )
        self.case = Case(tmp_path / "guarded", self.server)
        impatient(self.case)


@pytest.mark.parametrize(
    ("login_page", "words"),
    [(False, "401 Unauthorized"), (True, "it answered 200 with a web page")],
)
def test_a_stranger_is_told_which_credentials_were_looked_for(
    case: Case, tmp_path: Path, login_page: bool, words: str
) -> None:
    guarded = Guarded(tmp_path, login_page=login_page)
    with guarded.server:
        ended = guarded.case.deploy()
    assert ended.code == 2
    assert words in ended.err
    assert "EVERTRAIN_KUBEFLOW_TOKEN, EVERTRAIN_KUBEFLOW_COOKIES" in ended.err
    assert guarded.case.changing_calls() == []


@pytest.mark.parametrize("way", ["token", "cookies", "named token", "file"])
def test_every_way_of_credentials_lets_one_in_and_none_is_shown(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    guarded = Guarded(tmp_path)
    if way == "token":
        monkeypatch.setenv("EVERTRAIN_KUBEFLOW_TOKEN", TOKEN)
    elif way == "cookies":
        monkeypatch.setenv("EVERTRAIN_KUBEFLOW_COOKIES", "authservice_session=session-hunter2")
    elif way == "named token":
        monkeypatch.setenv("CI_TOKEN", TOKEN)
        impatient(guarded.case, token_env="CI_TOKEN")
    else:
        (tmp_path / "token").write_text(f"{TOKEN}\n")
        monkeypatch.setenv("KF_PIPELINES_SA_TOKEN_PATH", str(tmp_path / "token"))
    with guarded.server:
        ended = guarded.case.deploy("--debug")
        assert ended.code == 0, ended.err
        again = guarded.case.deploy("--json")
    assert guarded.case.one("nightly").enabled
    said = ended.out + ended.err + again.out + again.err
    assert "hunter2" not in said
    assert all("hunter2" not in str(v.text) for p in guarded.server.pipelines.values()
               for v in p.versions.values())  # fmt: skip


def test_a_token_that_is_refused_is_not_repeated(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded = Guarded(tmp_path)
    monkeypatch.setenv("EVERTRAIN_KUBEFLOW_TOKEN", "old-hunter2")
    with guarded.server:
        ended = guarded.case.deploy()
    assert ended.code == 2
    assert "401 Unauthorized" in ended.err
    assert "(used: the token in EVERTRAIN_KUBEFLOW_TOKEN)" in ended.err
    assert "hunter2" not in ended.err


def test_a_token_file_that_is_renewed_is_read_again(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded, file = Guarded(tmp_path), tmp_path / "token"
    file.write_text(TOKEN)
    monkeypatch.setenv("KF_PIPELINES_SA_TOKEN_PATH", str(file))
    with guarded.server as server:
        kubeflow = connect(open_project(guarded.case.folder), host=server.url)
        server.state.accounts["renewed"] = server.state.accounts.pop(TOKEN)
        file.write_text("renewed")
        assert kubeflow.find("nothing") == []


def test_a_token_file_that_is_missing_is_named(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KF_PIPELINES_SA_TOKEN_PATH", "/nowhere/token")
    ended = case.deploy()
    assert ended.code == 2
    assert "/nowhere/token" in ended.err


def test_a_namespace_of_others_is_refused_and_none_is_asked_for(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded = Guarded(tmp_path, multi_user=True)
    monkeypatch.setenv("EVERTRAIN_KUBEFLOW_TOKEN", TOKEN)
    with guarded.server:
        none = guarded.case.deploy()
        theirs = guarded.case.deploy("--namespace", "finance")
        ours = guarded.case.deploy("--namespace", "team")
        again = guarded.case.deploy("--namespace", "team")
    assert none.code == 2
    assert "has several users, and no namespace is named" in none.err
    assert "--namespace NAME, or cluster.namespace" in none.err
    assert theirs.code == 2
    assert "403 Forbidden" in theirs.err
    assert "is the namespace right" in theirs.err
    assert ours.code == 0, ours.err
    assert "nothing to do" in again.out
    assert {each.namespace for each in guarded.server.recurring_runs.values()} == {"team"}
    assert {each.namespace for each in guarded.server.pipelines.values()} == {"team"}


def test_a_certificate_is_trusted_when_its_authority_is_named(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, context = certificate(tmp_path)
    with KfpServer(tls=context) as server:
        secure = Case(tmp_path / "secure", server)
        impatient(secure)
        stranger = secure.deploy()
        assert stranger.code == 3
        assert "its certificate is not trusted" in stranger.err
        assert "cluster.access.ca" in stranger.err
        impatient(secure, ca=str(authority), patience=5.0, timeout=5.0)
        assert secure.deploy().code == 0
        impatient(secure, patience=5.0, timeout=5.0)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        assert "nothing to do" in secure.deploy().out


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
