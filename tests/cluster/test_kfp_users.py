"""The double with users: who is let in, and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kfp_server_api import ApiException

from tests.cluster.kfp_samples import compiled, sum_up
from tests.cluster.kfp_server import Account, KfpServer


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return compiled(sum_up, tmp_path)


def said(error: pytest.ExceptionInfo[ApiException]) -> dict[str, Any]:
    told = json.loads(error.value.body)
    assert isinstance(told, dict)
    return told


def test_with_users_each_has_namespaces_and_strangers_have_none(
    kfp_home: Path, kfp_client: Any, package: Path
) -> None:
    accounts = {"token-a": Account("a@example.com", ("team-a",))}
    with KfpServer(
        multi_user=True, accounts=accounts, cookies={"session-b": Account("b", ("team-b",))}
    ) as server:
        stranger = kfp_client(server, namespace="team-a")
        with pytest.raises(ApiException) as error:
            stranger.list_experiments()
        assert (error.value.status, said(error)["code"]) == (401, 16)
        ours = kfp_client(server, existing_token="token-a", namespace="team-a")
        made = ours.create_experiment("e")
        assert made.namespace == "team-a"
        ours.run_pipeline(made.experiment_id, "r", str(package), {"a": 1})
        ours.upload_pipeline(str(package), "p", namespace="team-a")
        assert ours.list_pipelines(namespace="team-a").total_size == 1
        assert ours.list_pipelines().pipelines is None
        theirs = kfp_client(server, cookies="authservice_session=session-b", namespace="team-b")
        assert theirs.list_runs().runs is None
        with pytest.raises(ApiException) as error:
            theirs.list_runs(namespace="team-a")
        assert (error.value.status, said(error)["code"]) == (403, 7)
        with pytest.raises(ApiException) as error:
            theirs._run_api.run_service_list_runs()
        assert error.value.status == 400
