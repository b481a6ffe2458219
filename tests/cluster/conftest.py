"""The doubles as fixtures; each test has servers of its own.

Tests of other folders import what they need: `from tests.cluster.conftest import kfp_server`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.kfp_server import KfpServer


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
