"""The command in the report runs what the run ran, not what the settings say now."""

from __future__ import annotations

import shlex
from pathlib import Path

from components.common.data_figures import SnapshotFigures
from components.common.project import open_project
from components.common.provenance import provenance
from components.common.records import StepRecord
from components.report_run.step import replay_command
from tests.small_project.command import make_project


def test_the_replay_command_names_the_runs_own_data_and_overrides(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "project", 1)
    ran = open_project(folder, overrides=["training.seed=7"], data="s3://bucket/then")
    figures = SnapshotFigures(
        digest="d", source="s3://bucket/then", rows=1, object_count=0, new_count=0, new_rows=0,
        size=0, objects=[], decision="train",
        provenance=provenance(ran),
    )  # fmt: skip
    record = StepRecord(
        step="snapshot_data", run="r", run_key="k", figures=figures.model_dump(mode="json")
    )
    words = shlex.split(replay_command(open_project(folder), {"snapshot_data": record}))
    assert words[:3] == ["evertrain", "run", str(folder)]
    assert words[3:] == ["--data", "s3://bucket/then", "--set", "training.seed=7", "--force"]


def test_a_run_that_has_no_snapshot_is_replayed_as_the_project_stands(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "project", 1)
    assert shlex.split(replay_command(open_project(folder), {}))[3:] == ["--force"]


def test_a_list_of_sources_is_left_to_the_settings_it_came_from(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "project", 1)
    ran = open_project(folder, overrides=["data.source=[one, two]"])
    figures = SnapshotFigures(
        digest="d", source="one, two", rows=1, object_count=0, new_count=0, new_rows=0, size=0,
        objects=[], decision="train", provenance=provenance(ran),
    )  # fmt: skip
    record = StepRecord(
        step="snapshot_data", run="r", run_key="k", figures=figures.model_dump(mode="json")
    )
    words = shlex.split(replay_command(open_project(folder), {"snapshot_data": record}))
    assert words[3:] == ["--set", "data.source=[one, two]", "--force"]
