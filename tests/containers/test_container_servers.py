"""A run in containers whose data and store are on a server: what it reaches, what it tells."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.image.engine import Docker
from infra.s3 import S3Store
from tests.containers.watching import run_in_containers, watching
from tests.infra.loopback import BUCKET, SECRET_KEY, S3Server
from tests.infra.seaweed import s3_running
from tests.small_project.command import make_project
from tests.small_project.make_data import write_months


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_running(tmp_path_factory.mktemp("weed")) as server:
        yield server


def test_steps_reach_a_named_server_and_a_gates_word_is_the_runs(
    docker: Docker, image: str, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    prefix = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    data, store = (S3Store(bucket=BUCKET, prefix=f"{prefix[5:].partition('/')[2]}/{name}")
                   for name in ("data", "store"))  # fmt: skip
    write_months(tmp_path / "data", 1)
    for file in (tmp_path / "data").iterdir():
        data.put_file(file.name, file)
    project = make_project(tmp_path / "project")
    suite = project / "expectations.json"
    said = json.loads(suite.read_text())
    kwargs = {"min_value": 1, "max_value": 10}
    said["expectations"].append(
        {"type": "expect_table_row_count_to_be_between", "kwargs": kwargs, "severity": "critical"}
    )
    suite.write_text(json.dumps(said))

    more = {**s3.environment, "EVERTRAIN_STORE": store.uri}
    with watching(docker) as seen:
        ended = run_in_containers(docker, project, image, "--data", data.uri, more=more)

    assert ended.code == 1, ended.err
    record = ended.json
    assert record["status"] == "stopped"
    assert f"on this machine's network, for the data ({data.uri}), the object store" in ended.err
    steps = json.loads(store.get(f"runs/{record['run']}/validate_data.json"))
    assert (steps["status"], steps["exit_code"]) == ("stopped", 1)
    assert {c.config["HostConfig"]["NetworkMode"] for c in seen if c.config} == {"host"}
    assert {c.config["HostConfig"]["ReadonlyRootfs"] for c in seen if c.config} == {True}
    assert {c.step for c in seen} == {"snapshot_data", "validate_data", "report_run"}

    written = [path for path in project.rglob("*") if path.is_file()]
    assert any(path.suffix == ".log" for path in written)
    assert not [path for path in written if SECRET_KEY.encode() in path.read_bytes()]
    for key in store.list(""):
        assert SECRET_KEY.encode() not in store.get(key.key)
    assert SECRET_KEY not in ended.out + ended.err
