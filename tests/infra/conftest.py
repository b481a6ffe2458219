"""Real servers on loopback, each started once per worker that asks for it and killed by its id."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback import S3Server, answers, as_postgres, binary, free_ports, running
from seaweed import s3_running


@pytest.fixture(autouse=True)
def _kept_environment() -> Iterator[None]:
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A SeaweedFS server with one bucket and one identity."""
    with s3_running(tmp_path_factory.mktemp("weed")) as server:
        yield server


@pytest.fixture
def s3_environment(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return s3_server


@pytest.fixture(scope="session")
def postgres_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL server with an empty database."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    initdb, postgres = binary("initdb", *folders), binary("postgres", *folders)
    home = tmp_path_factory.mktemp("postgres")
    prefix, environment = as_postgres(home)
    data = str(home / "data")
    initialise = [*prefix, initdb, "-D", data, "-U", "evertrain", "-A", "trust", "-E", "UTF8"]
    subprocess.run(
        [*initialise, "--no-sync"], check=True, capture_output=True, env=environment, cwd=home
    )
    (port,) = free_ports(1)
    command = [*prefix, postgres, "-D", data, "-p", str(port), "-c", "fsync=off"]
    command += ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
    with running(
        command,
        ready=lambda: answers(port),
        log=home.parent / "postgres.log",
        environment=environment,
    ):
        time.sleep(0.5)  # the port opens a moment before the database accepts
        yield f"postgresql+psycopg2://evertrain@127.0.0.1:{port}/postgres"


@pytest.fixture(scope="session")
def mlflow_server(postgres_uri: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An MLflow server over PostgreSQL that also serves the artifacts."""
    from urllib.error import URLError
    from urllib.request import urlopen

    home = tmp_path_factory.mktemp("mlflow")
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--backend-store-uri", postgres_uri, "--workers", "1"]
    command += ["--artifacts-destination", str(home / "artifacts"), "--serve-artifacts"]
    environment = dict(os.environ)
    environment |= {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    environment |= {"MLFLOW_DISABLE_TELEMETRY": "true"}
    address = f"http://127.0.0.1:{port}"

    def ready() -> bool:
        try:
            with urlopen(f"{address}/health", timeout=2) as reply:
                return bool(reply.status == 200)
        except (URLError, OSError):
            return False

    with running(command, ready=ready, log=home / "log", environment=environment):
        yield address


@pytest.fixture(scope="session")
def sqlite_uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('home')}/mlflow.db"


@pytest.fixture(params=["sqlite", "server"])
def uri(request: pytest.FixtureRequest) -> str:
    """An MLflow of each kind: embedded, and a server over PostgreSQL."""
    name = {"sqlite": "sqlite_uri", "server": "mlflow_server"}[request.param]
    return str(request.getfixturevalue(name))
