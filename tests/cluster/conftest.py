"""The doubles as fixtures; each test has servers of its own.

Tests of other folders import what they need: `from tests.cluster.conftest import kfp_server`.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.kfp_server import KfpServer
from tests.cluster.kubernetes_server import KubernetesServer


@pytest.fixture
def kfp_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own: `kfp.Client` reads and writes `~/.config/kfp/context.json`."""
    import kfp.client.client

    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("KF_PIPELINES_ENDPOINT", "KF_PIPELINES_UI_ENDPOINT", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    context = str(home / ".config/kfp/context.json")
    monkeypatch.setattr(kfp.client.client.Client, "_LOCAL_KFP_CONTEXT", context)
    return home


@pytest.fixture
def kfp_server(kfp_home: Path) -> Iterator[KfpServer]:
    """A Kubeflow Pipelines API server for one user, without a login."""
    with KfpServer() as server:
        yield server


@pytest.fixture
def kfp_client(kfp_home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Make a stock `kfp.Client` for a server: `kfp_client(server, existing_token=…)`.

    Each answer must come out of the client's models as it went in: no field that they do not know,
    no value of another type.
    """
    import kfp
    import kfp_server_api

    read = kfp_server_api.ApiClient.deserialize

    def read_strictly(self: Any, response: Any, response_type: str) -> Any:
        found = read(self, response, response_type)
        try:
            sent = json.loads(response.data)
        except ValueError:
            return found
        assert _plain(self.sanitize_for_serialization(found)) == _plain(sent), response_type
        return found

    monkeypatch.setattr(kfp_server_api.ApiClient, "deserialize", read_strictly)

    def make(server: KfpServer, **more: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # it only works with KFP 2
            return kfp.Client(host=server.url, **more)

    return make


def _plain(content: Any) -> Any:
    """JSON with its times written in one way."""
    if isinstance(content, dict):
        return {name: _plain(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_plain(each) for each in content]
    return content.replace("+00:00", "Z") if isinstance(content, str) else content


@pytest.fixture
def kubernetes_server() -> Iterator[KubernetesServer]:
    """A Kubernetes API server with Kubeflow Trainer; a second of grace lasts 50 ms."""
    with KubernetesServer(second=0.05) as server:
        yield server


@pytest.fixture
def kubernetes_client() -> Iterator[Callable[..., Any]]:
    """Make a stock `kubernetes` client for a server: `kubernetes_client(server, token)`."""
    from kubernetes import client

    made: list[Any] = []

    def make(server: KubernetesServer, token: str = "") -> Any:
        made.append(client.ApiClient(server.configuration(token)))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def trainer_client() -> Callable[..., Any]:
    """Make a stock `TrainerClient` for a server: `trainer_client(server, namespace="default")`."""
    from kubeflow.common.types import KubernetesBackendConfig
    from kubeflow.trainer import TrainerClient

    def make(server: KubernetesServer, token: str = "", *, namespace: str = "default") -> Any:
        configuration = server.configuration(token)
        return TrainerClient(
            backend_config=KubernetesBackendConfig(
                namespace=namespace, client_configuration=configuration
            )
        )

    return make
