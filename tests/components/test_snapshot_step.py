"""The step itself: what it leaves in the store and says in its record, run after run."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.common.data_figures import MOST_OBJECTS, SnapshotFigures
from components.common.manifest import LATEST, manifest_key, read_manifest
from components.common.records import StepRecord
from components.snapshot_data.step import run
from infra.folder import FolderStore

RUN = "20250101T000000Z-0001"


@pytest.fixture(autouse=True)
def _as_a_step(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = [(each, signal.getsignal(each)) for each in (signal.SIGTERM, signal.SIGINT)]
    monkeypatch.setenv("EVERTRAIN_RUN_ID", RUN)
    monkeypatch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
    yield
    for number, handler in before:
        signal.signal(number, handler)


def ran(project: Path, *overrides: str, data: str = "") -> SnapshotFigures:
    """Run the step; return what it said."""
    artifact = project / "snapshot.json"
    outputs = run(str(project), data, "", list(overrides), False, str(artifact))
    store = FolderStore(project / ".evertrain" / "store")
    record = StepRecord.model_validate_json(store.get(f"runs/{RUN}/snapshot_data.json"))
    figures = SnapshotFigures.model_validate(record.figures)
    assert (outputs.data_digest, outputs.run_key) == (figures.digest, record.run_key)
    assert json.loads(artifact.read_text()) == {
        "digest": figures.digest, "source": figures.source, "rows": figures.rows,
        "objects": figures.object_count,
    }  # fmt: skip
    manifest = read_manifest(store, figures.digest)
    assert (manifest.rows, manifest.object_count) == (figures.rows, figures.object_count)
    assert manifest.size == figures.size
    return figures


def test_a_second_snapshot_knows_what_the_first_has_seen(fresh_project: Path) -> None:
    first = ran(fresh_project)
    assert first.source == str(fresh_project / "data")
    assert (first.object_count, first.new_count) == (2, 2)
    assert first.new_rows == first.rows
    store = FolderStore(fresh_project / ".evertrain" / "store")
    written = {i.key: i.version for i in store.list("snapshots/")}
    assert set(written) == {LATEST, manifest_key(first.digest)}
    again = ran(fresh_project)
    assert (again.digest, again.new_count, again.new_rows) == (first.digest, 0, 0)
    assert {i.key: i.version for i in store.list("snapshots/")} == written
    (fresh_project / "data" / "2025-03.csv").write_text("id\n1\n2\n")
    third = ran(fresh_project, "data.pattern='2025-*'")
    assert (third.object_count, third.new_count, third.new_rows) == (3, 1, 2)
    assert [(o.key, o.new) for o in third.objects] == [
        ("2025-01.parquet", False), ("2025-02.parquet", False), ("2025-03.csv", True)
    ]  # fmt: skip


def test_a_list_of_sources_and_one_that_overrides_it(fresh_project: Path) -> None:
    (fresh_project / "more").mkdir()
    (fresh_project / "more" / "x.csv").write_text("id\n1\n")
    seen = ran(fresh_project, "data.source=[data, more/x.csv]")
    assert seen.source == f"{fresh_project / 'data'}, {fresh_project / 'more' / 'x.csv'}"
    assert [o.key for o in seen.objects] == [
        str(fresh_project / key)
        for key in ("data/2025-01.parquet", "data/2025-02.parquet", "more/x.csv")
    ]
    alone = ran(fresh_project, "data.source=[data, more/x.csv]", data=str(fresh_project / "data"))
    assert alone.source == str(fresh_project / "data")
    assert alone.object_count == 2


def test_of_many_objects_the_record_has_some_the_new_ones_first(fresh_project: Path) -> None:
    folder = fresh_project / "many"
    folder.mkdir()
    for number in range(60):
        (folder / f"{number:02}.csv").write_text(f"id\n{number}\n")
    given = ["data.source=many", "data.pattern='*.csv'"]
    assert [o.key for o in ran(fresh_project, *given).objects] == [
        f"{number:02}.csv" for number in range(60 - MOST_OBJECTS, 60)
    ]
    (folder / "00.csv").write_text("id\n100\n")
    later = ran(fresh_project, *given)
    assert (later.object_count, later.new_count) == (60, 1)
    assert len(later.objects) == MOST_OBJECTS
    assert (later.objects[0].key, later.objects[0].new) == ("00.csv", True)
    assert [o.key for o in later.objects[1:]] == [f"{number:02}.csv" for number in range(11, 60)]


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("data.pattern='{day}'", "no placeholder"),
        ("data.types={id: NUMBERS}", "'NUMBERS', which is no type"),
        ("data.source=[]", "empty list"),
        ("data.source=[data, data]", "would count twice"),
    ],
)
def test_settings_that_make_no_sense_end_with_2(
    fresh_project: Path, override: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        ran(fresh_project, override)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert words in said
    assert "hint: " in said
