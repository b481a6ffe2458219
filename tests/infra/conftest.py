"""Real servers on loopback, each started once per worker that asks for it and killed by its id."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from loopback import BUCKET, S3Server, answers, as_postgres, binary, free_ports, running
from registry_case import Case
from seaweed import s3_running

from infra.store import ObjectStore, open_store


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


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    """A store of each kind."""
    if request.param == "folder":
        return open_store(tmp_path / "store")
    request.getfixturevalue("s3_environment")
    return open_store(f"s3://{BUCKET}/{uuid.uuid4().hex}/deep")


@pytest.fixture(scope="session")
def postgres_uri() -> Iterator[str]:
    """A PostgreSQL server with an empty database.

    Not among pytest's folders, which a second pytest closes to the server's user while it runs.
    """
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    initdb, postgres = binary("initdb", *folders), binary("postgres", *folders)
    base = Path(tempfile.mkdtemp(prefix="evertrain-postgres-"))
    home = base / "home"
    home.mkdir()
    prefix, environment = as_postgres(home)
    data = str(home / "data")
    initialise = [*prefix, initdb, "-D", data, "-U", "evertrain", "-A", "trust", "-E", "UTF8"]
    subprocess.run(
        [*initialise, "--no-sync"], check=True, capture_output=True, env=environment, cwd=home
    )
    (port,) = free_ports(1)
    command = [*prefix, postgres, "-D", data, "-p", str(port), "-c", "fsync=off"]
    command += ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
    try:
        with running(
            command,
            ready=lambda: answers(port),
            log=base / "postgres.log",
            environment=environment,
        ):
            time.sleep(0.5)  # the port opens a moment before the database accepts
            yield f"postgresql+psycopg2://evertrain@127.0.0.1:{port}/postgres"
    finally:
        shutil.rmtree(base)


@contextmanager
def running_mlflow(home: Path, database: str, *words: str, **more: str) -> Iterator[str]:
    """Run an MLflow server over a database; give its address."""
    from urllib.error import URLError
    from urllib.request import urlopen

    (port,) = free_ports(1)
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--backend-store-uri", database, "--workers", "1", *words]
    environment = dict(os.environ) | more
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
def mlflow_server(postgres_uri: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An MLflow server over PostgreSQL that also serves the artifacts."""
    home = tmp_path_factory.mktemp("mlflow")
    words = ("--artifacts-destination", str(home / "artifacts"), "--serve-artifacts")
    with running_mlflow(home, postgres_uri, *words) as address:
        yield address


@pytest.fixture(scope="session")
def mlflow_over_s3(
    postgres_uri: str, s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The same with its artifacts on S3: it holds the keys, and its clients need none."""
    home = tmp_path_factory.mktemp("mlflow-over-s3")
    words = ("--artifacts-destination", f"s3://{BUCKET}/mlflow", "--serve-artifacts")
    with running_mlflow(home, postgres_uri, *words, **s3_server.environment) as address:
        yield address


@pytest.fixture(scope="session")
def mlflow_beside_s3(
    postgres_uri: str, s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """An MLflow server that only says where on S3 artifacts lie: clients fetch them themselves."""
    home = tmp_path_factory.mktemp("mlflow-beside-s3")
    words = ("--default-artifact-root", f"s3://{BUCKET}/mlflow-root", "--no-serve-artifacts")
    with running_mlflow(home, postgres_uri, *words, **s3_server.environment) as address:
        yield address


@pytest.fixture(scope="session")
def sqlite_uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('home')}/mlflow.db"


@pytest.fixture(params=["sqlite", "server"])
def uri(request: pytest.FixtureRequest) -> str:
    """An MLflow of each kind: embedded, and a server over PostgreSQL."""
    name = {"sqlite": "sqlite_uri", "server": "mlflow_server"}[request.param]
    return str(request.getfixturevalue(name))


@pytest.fixture
def case(uri: str, tmp_path: Path) -> Case:
    return Case(uri, tmp_path)


@pytest.fixture
def sqlite_case(sqlite_uri: str, tmp_path: Path) -> Case:
    return Case(sqlite_uri, tmp_path)


@pytest.fixture(params=["folder", "s3"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    """An empty object store of each kind."""
    if request.param == "folder":
        return open_store(tmp_path / "store")
    request.getfixturevalue("s3_environment")
    return open_store(f"s3://{BUCKET}/{uuid.uuid4().hex}")
