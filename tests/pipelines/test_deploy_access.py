"""`evertrain deploy`: which servers it reaches, by which credentials, and what it says if not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from components.common.project import open_project
from pipelines.deploy.deploying import connect
from tests.cluster.conftest import kfp_home as kfp_home
from tests.cluster.conftest import kfp_server as kfp_server
from tests.cluster.faults import Fault, hang
from tests.cluster.kfp_server import Account, KfpServer
from tests.infra.alert_servers import certificate
from tests.pipelines.deploy_case import Case, impatient, new_case

TOKEN = "token-hunter2"


@pytest.fixture
def case(tmp_path: Path, kfp_server: KfpServer, monkeypatch: pytest.MonkeyPatch) -> Case:
    made = new_case(tmp_path, kfp_server, monkeypatch)
    impatient(made)
    return made


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
    assert "no answer in 0.8 s" in ended.err


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
    login = (("Location", f"{case.server.url}/dex/auth"),)
    case.server.faults.add("GET", "*", Fault("answer", status=status, headers=login), times=None)
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
