"""The servers of the manifests run as the manifests say: only places and ports are others here."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from tests.cluster.installations import cluster_of
from tests.cluster.rendering import MANIFESTS
from tests.infra.loopback import binary, free_ports, running

# A key such as people make: S3's server takes its one identity from these variables.
KEY = {"AWS_ACCESS_KEY_ID": "evertrain", "AWS_SECRET_ACCESS_KEY": "two words, and/or+more="}
REGION = {"AWS_DEFAULT_REGION": "us-east-1"}
# As in a cluster, where a pod's address is not that of its loopback.
OF_THE_POD = "127.0.0.2"

Container = dict[str, Any]


def container_of(kind: str, name: str, which: str, *, initial: bool = False) -> Container:
    spec = cluster_of("local").of(kind)[name]["spec"]
    spec = spec["jobTemplate"]["spec"] if kind == "CronJob" else spec
    pod = spec["template"]["spec"]
    found: list[Container] = pod["initContainers" if initial else "containers"]
    return next(each for each in found if each["name"] == which)


def words(container: Container, here: dict[str, str]) -> list[str]:
    """Its command line with other places; each of them has to occur."""
    given = [*container["command"], *container.get("args", [])]
    for there in here:
        assert any(there in word for word in given), there
    either = re.compile("|".join(map(re.escape, here)) or r"\Z\A")
    return [either.sub(lambda found: here[found.group()], word) for word in given]


def plain(container: Container) -> dict[str, str]:
    """Its variables that are no secrets."""
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}


def probe(container: Container, port: int, host: str = "127.0.0.1", **headers: str) -> int:
    """Ask what the kubelet asks; the status."""
    path = container["readinessProbe"]["httpGet"]["path"]
    return get(f"http://{host}:{port}{path}", **headers)


def get(url: str, **headers: str) -> int:
    try:
        with urlopen(Request(url, headers=headers), timeout=5) as reply:
            return int(reply.status)
    except HTTPError as error:
        return error.code
    except OSError:
        return 0


def script(name: str) -> ModuleType:
    """A script of a ConfigMap, as a module."""
    file = MANIFESTS / "components" / name
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def s3_server(home: Path) -> Iterator[tuple[Container, int, int]]:
    """The StatefulSet's server; its container, its port, and the filer's."""
    container = container_of("StatefulSet", "s3", "s3")
    ports = free_ports(8)
    names = ("s3.port.grpc", "master.port", "master.port.grpc", "volume.port", "volume.port.grpc")
    names += ("filer.port", "filer.port.grpc")
    command = words(
        container,
        {
            "-dir=/data": f"-dir={home}",
            "=/tmp/": f"={home}/",
            "-s3.ip.bind=0.0.0.0": f"-s3.ip.bind={OF_THE_POD}",
            "-s3.port=8333": f"-s3.port={ports[0]}",
            "-volume.max=0": "-volume.max=20",
        },
    )
    command[0] = binary("weed")
    command += [f"-{name}={port}" for name, port in zip(names, ports[1:], strict=True)]
    environment = {**os.environ, **KEY}
    with running(
        command,
        ready=lambda: probe(container, ports[0], OF_THE_POD) == 200,
        log=home / "log",
        environment=environment,
    ):
        yield container, ports[0], ports[6]


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Container, int, int]]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def client(s3: tuple[Container, int, int], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Of S3 with the bucket that the Job makes; its variables are set as in a pod."""
    import boto3

    endpoint = {"AWS_ENDPOINT_URL": f"http://{OF_THE_POD}:{s3[1]}"}
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)  # it remembers keys of other tests
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    for name, value in (KEY | REGION | endpoint).items():
        monkeypatch.setenv(name, value)
    job = container_of("Job", "s3-bucket", "make-bucket")
    bucket = urlsplit(plain(container_of("CronJob", "postgres-backup", "upload"))["BACKUP_TO"])
    assert job["command"][-1] == bucket.netloc
    script("s3/make_bucket.py").make(bucket.netloc, patience=60)
    return boto3.client("s3")


@pytest.mark.slow
def test_the_s3_server_serves_its_one_key_and_conditional_writes(
    s3: tuple[Container, int, int], client: Any
) -> None:
    from botocore.exceptions import ClientError

    container, port, filer = s3
    assert container["ports"] == [{"name": "s3", "containerPort": 8333}]
    client.put_object(Bucket="evertrain", Key="once", Body=b"1", IfNoneMatch="*")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        client.put_object(Bucket="evertrain", Key="once", Body=b"2", IfNoneMatch="*")
    assert get(f"http://{OF_THE_POD}:{port}/evertrain/once") == 403, "without a key"
    # Filer and master ask nobody who they are: from another pod they are not to be had.
    assert get(f"http://127.0.0.1:{filer}/") == 200
    assert get(f"http://{OF_THE_POD}:{filer}/") == 0


@pytest.mark.slow
def test_making_the_bucket_again_does_nothing_and_a_wrong_key_is_said(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from botocore.exceptions import ClientError

    make = script("s3/make_bucket.py").make
    assert make("evertrain") == "the bucket evertrain is there"
    assert make("another") == "made the bucket another"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        make("evertrain")


@pytest.mark.slow
def test_a_dump_is_uploaded_whole_and_the_oldest_goes(client: Any, tmp_path: Path) -> None:
    upload = script("postgres/upload.py").upload
    dump, day = tmp_path / "mlflow.dump", datetime(2026, 11, 1, tzinfo=UTC)
    client.put_object(Bucket="evertrain", Key="dumps/readme.txt", Body=b"mine")
    made = []
    for number in range(4):
        dump.write_bytes(b"x" * (number + 1))
        key, gone = upload(dump, "s3://evertrain/dumps", 2, now=day + timedelta(days=number))
        made.append(key)
        assert gone == ([made[number - 2]] if number >= 2 else [])
    kept = [
        each["Key"]
        for each in client.list_objects_v2(Bucket="evertrain", Prefix="dumps/")["Contents"]
    ]
    assert kept == [*made[2:], "dumps/readme.txt"]
    dump.write_bytes(b"")
    with pytest.raises(SystemExit, match="is empty"):
        upload(dump, "s3://evertrain/dumps", 2, now=day)


@pytest.mark.slow
def test_the_backup_dumps_the_database_and_stops_at_a_failure(
    postgres_uri: str, tmp_path: Path
) -> None:
    container = container_of("CronJob", "postgres-backup", "dump", initial=True)
    command = words(container, {"/backup/": f"{tmp_path}/"})
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    binary("pg_dump", *folders)
    place = urlsplit(postgres_uri)
    environment = {"PATH": f"{folders[0]}:{os.environ['PATH']}", "LC_ALL": "C"} | plain(container)
    there = {"PGHOST": "127.0.0.1", "PGUSER": str(place.username), "PGDATABASE": "postgres"}
    environment |= there | {"PGPORT": str(place.port)}
    subprocess.run(command, check=True, env=environment, capture_output=True)
    assert (tmp_path / "mlflow.dump").read_bytes().startswith(b"PGDMP")
    wrong = environment | {"PGDATABASE": "nothing"}
    assert subprocess.run(command, env=wrong, capture_output=True).returncode


@pytest.mark.smoke
def test_mlflow_makes_its_tables_starts_and_keeps_artifacts_in_s3(
    s3: tuple[Container, int, int],
    client: Any,
    postgres_uri: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import mlflow

    container = container_of("Deployment", "mlflow", "mlflow")
    place = urlsplit(postgres_uri)
    there = {"PGHOST": "127.0.0.1", "PGUSER": str(place.username), "PGDATABASE": "postgres"}
    there |= {"PGPORT": str(place.port), "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"]}
    assert set(there) <= set(plain(container)), "a variable that the manifest does not give"
    environment = {**os.environ, **plain(container), **KEY, **there, "HOME": str(tmp_path)}
    (port,) = free_ports(1)
    here = {"--host=0.0.0.0": "--host=127.0.0.1", "--port=5000": f"--port={port}"}
    here["$(ARTIFACTS)"] = environment["ARTIFACTS"]
    tables = container_of("Deployment", "mlflow", "tables", initial=True)
    mlflow_here = [sys.executable, "-m", "mlflow"]
    for _ in range(2):  # a second start finds its tables
        assert tables["command"][0] == "mlflow"
        upgrade = [*mlflow_here, *words(tables, {})[1:]]
        subprocess.run(upgrade, check=True, env=environment, capture_output=True, cwd=tmp_path)
    command = [*mlflow_here, *words(container, here)[1:]]
    with running(
        command,
        ready=lambda: probe(container, port) == 200,
        log=tmp_path / "log",
        environment=environment,
    ):
        search = f"http://127.0.0.1:{port}/api/2.0/mlflow/experiments/search?max_results=1"
        for host, status in (("mlflow:5000", 200), ("localhost:5000", 200), ("evil.example", 403)):
            assert get(search, Host=host) == status, host
        # The kubelet asks by the pod's address.
        assert probe(container, port, Host="10.1.2.3:5000") == 200
        for name in (*KEY, "AWS_ENDPOINT_URL"):  # a client needs no key of the store
            monkeypatch.delenv(name, raising=False)
        mlflow.set_tracking_uri(f"http://127.0.0.1:{port}")
        with mlflow.start_run():
            mlflow.log_text("kept", "note.txt")
    kept = client.list_objects_v2(Bucket="evertrain", Prefix="mlflow/")["Contents"]
    assert any(each["Key"].endswith("/note.txt") for each in kept)
