"""snapshot_data: what is read, what is not read again, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from components.common.data_figures import DataObject
from components.snapshot_data.step import take_snapshot
from infra.folder import FolderStore
from training_core.errors import StoppedByGate


class CountingStore(FolderStore):
    """A folder that remembers which objects were read, and may be written to meanwhile."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.read: list[str] = []
        self.meanwhile: Any = lambda key: None

    def get_file(self, key: str, path: Path) -> None:
        self.read.append(key)
        super().get_file(key, path)
        self.meanwhile(key)


@pytest.fixture
def source(tmp_path: Path) -> CountingStore:
    return CountingStore(tmp_path / "data")


def write(source: CountingStore, key: str, *values: int) -> None:
    path = source.root / key
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"x": list(values)}), path)


def snapshot(
    source: CountingStore, known: list[DataObject] | None = None, **settings: Any
) -> list[DataObject]:
    source.read.clear()
    return take_snapshot(
        source,
        known={(o.key, o.size, o.version): o for o in known or []},
        cache=source.root.parent / "cache",
        **{"pattern": "*.parquet", "newest": 0, **settings},
    )


def test_only_what_is_new_is_read(source: CountingStore) -> None:
    write(source, "a.parquet", 1)
    write(source, "b.parquet", 2, 3)
    first = snapshot(source)
    assert [(o.key, o.rows, o.new) for o in first] == [
        ("a.parquet", 1, True), ("b.parquet", 2, True)
    ]  # fmt: skip
    write(source, "c.parquet", 4)
    second = snapshot(source, first)
    assert source.read == ["c.parquet"]
    assert [o.new for o in second] == [False, False, True]
    assert second[0].sha256 == first[0].sha256


def test_an_object_written_again_is_read_again(source: CountingStore) -> None:
    write(source, "a.parquet", 1)
    first = snapshot(source)
    write(source, "a.parquet", 2)
    (again,) = snapshot(source, first)
    assert source.read == ["a.parquet"]
    assert again.new
    assert again.sha256 != first[0].sha256


@pytest.mark.parametrize("what", ["rewritten", "removed"])
def test_an_object_that_changes_while_it_is_read_stops_the_run(
    source: CountingStore, what: str
) -> None:
    write(source, "a.parquet", 1)

    def change(key: str) -> None:
        write(source, key, 9) if what == "rewritten" else source.delete(key)

    source.meanwhile = change
    with pytest.raises(StoppedByGate, match=r"a\.parquet in .* changed while it was read"):
        snapshot(source)
    assert not list((source.root.parent / "cache").glob("reading-*"))


def test_hidden_files_and_other_names_are_passed_over(source: CountingStore) -> None:
    write(source, "a.parquet", 1)
    for key in (".b.parquet", ".tmp/c.parquet", "year/.d.parquet", "e.csv"):
        write(source, key, 2)
    assert [o.key for o in snapshot(source)] == ["a.parquet"]


def test_newest_takes_the_last_names(source: CountingStore) -> None:
    for day in range(1, 5):
        write(source, f"2025-0{day}.parquet", day)
    assert [o.key for o in snapshot(source, newest=2)] == ["2025-03.parquet", "2025-04.parquet"]
    assert source.read == ["2025-03.parquet", "2025-04.parquet"]


def test_what_is_read_lies_in_the_cache_under_its_hash(source: CountingStore) -> None:
    write(source, "a.parquet", 1)
    (found,) = snapshot(source)
    cached = source.root.parent / "cache" / found.sha256[:2] / found.sha256
    assert cached.read_bytes() == (source.root / "a.parquet").read_bytes()


def test_nothing_to_read_stops_the_run(source: CountingStore) -> None:
    with pytest.raises(StoppedByGate, match=r"no object below .*data matches '\*\.parquet'"):
        snapshot(source)


def test_the_same_content_under_two_names_stops_the_run(source: CountingStore) -> None:
    write(source, "a.parquet", 1)
    write(source, "b.parquet", 1)
    with pytest.raises(StoppedByGate, match=r"b\.parquet has the very content of a\.parquet"):
        snapshot(source)
