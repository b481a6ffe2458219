"""A run in an image that holds other settings than those that were deployed ends at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from components.common.deployed import VARIABLE, check_deployed, fingerprint
from components.common.project import open_project
from components.snapshot_data.step import run
from training_core.errors import ConfigurationError


@pytest.fixture(autouse=True)
def _same_signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def rewrite(project: Path, **sections: object) -> None:
    file = project / "evertrain.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | sections))


def deployed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, fingerprint(open_project(project).settings))


def test_what_was_deployed_and_is_in_the_image_is_the_same(
    fresh_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed(fresh_project, monkeypatch)
    check_deployed(open_project(fresh_project))
    check_deployed(open_project(fresh_project, overrides=["training.epochs=1"]))


def test_a_run_that_nobody_deployed_is_not_compared(
    fresh_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    check_deployed(open_project(fresh_project))


def test_the_sections_that_differ_are_named(
    fresh_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed(fresh_project, monkeypatch)
    rewrite(
        fresh_project,
        checks={"rows": 300},
        alerts={"channels": [{"type": "log"}]},
    )
    with pytest.raises(ConfigurationError, match="it differs in alerts, checks\n") as stopped:
        check_deployed(open_project(fresh_project))
    assert "build and push the image again" in stopped.value.hint


def test_what_is_read_when_one_deploys_may_differ(
    fresh_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digest of an image cannot be in that image."""
    deployed(fresh_project, monkeypatch)
    rewrite(
        fresh_project,
        cluster={"image": "registry/small@sha256:" + "ab" * 32},
        schedules=[{"name": "nightly", "cron": "0 0 2 * * *"}],
        store="s3://bucket/store",
    )
    check_deployed(open_project(fresh_project))


def test_the_pods_of_nodes_are_those_that_were_deployed(
    fresh_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its step makes them by what the image says; with one node nothing in the image does."""
    nodes = {"nodes": 2, "batch_size": 256}
    rewrite(fresh_project, training=nodes, cluster={"image": "registry/small@sha256:1"})
    deployed(fresh_project, monkeypatch)
    rewrite(fresh_project, cluster={"image": "registry/small@sha256:2", "host": "http://k"})
    check_deployed(open_project(fresh_project))
    rewrite(fresh_project, cluster={"pods": {"train_distributed": {"gpus": 8}}})
    with pytest.raises(ConfigurationError, match="it differs in cluster\n"):
        check_deployed(open_project(fresh_project))


def test_the_first_step_ends_with_2_before_it_reads_any_data(
    fresh_project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("EVERTRAIN_RUN_ID", "r1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    deployed(fresh_project, monkeypatch)
    rewrite(fresh_project, training={"epochs": 9})
    with pytest.raises(SystemExit) as ended:
        run(str(fresh_project), "", "", [], False, str(tmp_path / "snapshot"))
    assert ended.value.code == 2
    assert "it differs in training" in capsys.readouterr().err
    assert not (fresh_project / ".evertrain" / "store" / "snapshots").exists()
