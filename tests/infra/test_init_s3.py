"""`evertrain init` on data in a bucket."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from loopback import BUCKET, S3Server

from components.common.project import open_project
from infra.s3 import S3Store
from pipelines.init.proposal import Given
from pipelines.init.start import start
from tests.small_project.make_data import write_months
from training_core.errors import StoppedByGate


def test_a_project_is_written_for_data_in_a_bucket(
    s3_environment: S3Server, tmp_path: Path
) -> None:
    data = S3Store(bucket=BUCKET, prefix=uuid.uuid4().hex)
    with pytest.raises(StoppedByGate, match="nothing to read below s3://"):
        start(data.uri, folder=tmp_path / "project", given=Given(label="bought"))
    write_months(tmp_path / "data", 1, 2)
    for file in (tmp_path / "data").iterdir():
        data.put_file(file.name, file)
    found = start(data.uri, folder=tmp_path / "project", given=Given(label="bought"))
    assert found.proposal.sample.read == ["2025-01.parquet", "2025-02.parquet"]
    settings = open_project(tmp_path / "project").settings
    assert (settings.data.source, settings.data.row_key) == (data.uri, ["id"])
