"""`evertrain data`: the page of a run's data, whatever became of the run."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from components.common import data_figures as d
from components.common.layout import project_store
from components.common.project import Project, open_project
from components.common.provenance import provenance
from components.common.records import StepRecord, record_key
from pipelines.data import write_page
from tests.small_project.command import evertrain, make_project
from training_core.errors import ConfigurationError

OLD, REFUSED, EMPTY = "20250101T000000Z-0001", "20250201T000000Z-0002", "20250301T000000Z-0003"
STARTED = datetime(2025, 1, 1, tzinfo=UTC)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Three runs: one that was fit, one refused by its validation, one that found nothing."""
    opened = open_project(make_project(tmp_path / "project", 1))
    leave(opened, OLD, validated=validation())
    leave(opened, REFUSED, validated=validation(leak=True), reason="late knows the label")
    leave(opened, EMPTY, validated=None, reason="there is nothing to read")
    return opened


def leave(
    project: Project, run: str, *, validated: d.ValidateFigures | None, reason: str = ""
) -> None:
    """Leave the records that the data steps of a run would have left."""
    stopped = "validate_data" if validated else "snapshot_data"
    for step, figures in (("snapshot_data", snapshot(project)), ("validate_data", validated)):
        if step == "validate_data" and validated is None:
            continue
        record = StepRecord(step=step, run=run, run_key="k", started=STARTED, seconds=1.0)
        record.status = "stopped" if reason and step == stopped else "done"
        record.exit_code = int(record.status == "stopped")
        record.reason = reason if record.status == "stopped" else ""
        if validated is not None and figures is not None:
            record.figures = figures.model_dump(mode="json")
        project_store(project).put(record_key(run, step), record.model_dump_json().encode())


def snapshot(project: Project) -> d.SnapshotFigures:
    return d.SnapshotFigures(
        digest="d", source=project.data_source, rows=1450, object_count=1, new_count=1,
        new_rows=1450, size=9000, decision="train", provenance=provenance(project),
        objects=[d.DataObject(key="2025-01.parquet", size=9000, version="", sha256="0" * 64,
                              rows=1450, new=True)],
    )  # fmt: skip


def validation(*, leak: bool = False) -> d.ValidateFigures:
    found = d.Finding(
        check="leak", column="late", level="block", measured=0.99, limit=0.95,
        message="late knows the label",
    )  # fmt: skip
    return d.ValidateFigures(
        rows=1450, new_rows=1450, quarantined={}, quarantine="", expectations=[], warnings=0,
        columns=[], drift=[], findings=[found] if leak else [],
    )  # fmt: skip


def test_the_newest_run_with_a_snapshot_gets_its_page_even_if_it_was_refused(
    project: Project,
) -> None:
    page = write_page(project)
    assert page.run == REFUSED
    assert page.judgement.fitness == "refused"
    written = Path(page.place)
    assert written == project.folder / ".evertrain" / "store" / "runs" / REFUSED / "data.html"
    content = written.read_text()
    assert "late knows the label" in content
    assert "The data was refused by validate_data: 1 finding blocks it." in content
    beside = {file.name for file in written.parent.iterdir()}
    assert beside == {"snapshot_data.json", "validate_data.json", "data.html"}


def test_a_run_is_named_by_how_its_id_begins(project: Project) -> None:
    page = write_page(project, OLD[:8])
    assert (page.run, page.judgement.fitness) == (OLD, "fit")
    assert "late knows" not in Path(page.place).read_text()


def test_a_run_that_found_no_data_has_a_page_that_says_so(project: Project) -> None:
    page = write_page(project, EMPTY)
    assert page.figures == {"snapshot_data": {}, "validate_data": {}, "split_data": {}}
    assert "There is nothing to read." in Path(page.place).read_text()


def test_a_run_that_is_not_there_and_a_project_without_runs_are_said(
    project: Project, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="no runs of 'small' begin with '1999'"):
        write_page(project, "1999")
    fresh = open_project(make_project(tmp_path / "fresh", 1))
    with pytest.raises(ConfigurationError, match="no run of 'small' has taken a snapshot"):
        write_page(fresh)


def test_the_page_of_a_run_under_way_leaves_its_records_as_they_are(project: Project) -> None:
    store = project_store(project)
    record = StepRecord(
        step="split_data", run=REFUSED, run_key="k", started=STARTED + timedelta(seconds=9)
    )
    store.put(record_key(REFUSED, "split_data"), record.model_dump_json().encode())
    before = {info.key: store.get(info.key) for info in store.list("runs/")}
    page = Path(write_page(project).place).read_text()
    assert "split_data was killed before it could say anything, or it is still under way." in page
    after = {info.key: store.get(info.key) for info in store.list("runs/")}
    assert {key: after[key] for key in before} == before


def test_the_command_prints_the_path_and_says_the_verdict_on_stderr(project: Project) -> None:
    ended = evertrain("data", project.folder)
    assert ended.code == 0, ended.err
    assert Path(ended.out.strip()).name == "data.html"
    assert "The data was refused by validate_data" in ended.err
    again = evertrain("data", project.folder, "--run", OLD, "--json")
    assert again.code == 0, again.err
    assert again.json["run"] == OLD
    assert (again.json["verdict"], again.json["next"]) == ("fit", "Nothing has to be done.")
    assert again.json["page"] == str(Path(ended.out.strip()).parents[1] / OLD / "data.html")
    kept = json.loads(
        (Path(again.json["page"]).parent / "validate_data.json").read_text()
    )["figures"]  # fmt: skip
    assert again.json["validate_data"] == kept
    unknown = evertrain("data", project.folder, "--run", "1999")
    assert unknown.code == 2
    assert REFUSED in unknown.err
