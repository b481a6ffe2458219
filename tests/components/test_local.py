"""Objects of a snapshot on this machine: right, whole, alike."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from snapshot_sources import settings

from components.common.cache import Cache
from components.common.local import fetch_objects, refuse_mixed_schemas
from components.common.manifest import Manifest
from components.common.sources import open_source
from components.common.tables import LocalObject, add_view, columns_of, open_tables
from components.snapshot_data.taking import take_snapshot
from infra.errors import OutsideError
from training_core.errors import StoppedByGate

ALL = settings(pattern="*")


def taken(folder: Path, cache: Path) -> Manifest:
    return take_snapshot(
        open_source(str(folder)), settings=ALL, before=None, cache=Cache(cache)
    ).manifest


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with an object of each format."""
    folder = tmp_path / "data"
    folder.mkdir()
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), folder / "1.parquet")
    (folder / "2.csv").write_text("b,a\nz,3\n")
    (folder / "3.jsonl").write_text('{"a": 4, "b": "w"}\n')
    return folder


def test_objects_are_parquet_whatever_they_were(data: Path, tmp_path: Path) -> None:
    manifest = taken(data, tmp_path / "cache")
    assert manifest.rows == 4
    assert sorted(map(sorted, (schema.items() for schema in manifest.schemas)))[0] == [
        ("a", "int64"), ("b", "string")
    ]  # fmt: skip
    for cache in ("cache", "on another machine"):
        local = fetch_objects(manifest, ALL, Cache(tmp_path / cache))
        assert [(o.key, o.rows) for o in local] == [("1.parquet", 2), ("2.csv", 1), ("3.jsonl", 1)]
        refuse_mixed_schemas(local)
        with open_tables(ALL, readable=[tmp_path / cache], scratch=tmp_path / "s") as connection:
            add_view(connection, "rows", local)
            rows = connection.execute("SELECT a, b FROM rows ORDER BY a").fetchall()
        assert rows == [(1, "x"), (2, "y"), (3, "z"), (4, "w")]


def test_other_types_are_other_copies(data: Path, tmp_path: Path) -> None:
    manifest, cache = taken(data, tmp_path / "cache"), Cache(tmp_path / "cache")
    plain = fetch_objects(manifest, ALL, cache)
    typed = fetch_objects(manifest, settings(pattern="*", types={"a": "DOUBLE"}), cache)
    assert plain[0].path == typed[0].path
    assert plain[1].path != typed[1].path
    assert str(pq.read_schema(typed[1].path).field("a").type) == "double"


def test_what_is_in_the_cache_is_not_fetched(data: Path, tmp_path: Path) -> None:
    manifest, cache = taken(data, tmp_path / "cache"), Cache(tmp_path / "cache")
    for file in data.iterdir():
        file.unlink()
    assert len(fetch_objects(manifest, ALL, cache)) == 3


@pytest.mark.parametrize("what", ["changed", "removed"])
def test_an_object_that_is_no_longer_what_it_was_is_said(
    data: Path, tmp_path: Path, what: str
) -> None:
    manifest = taken(data, tmp_path / "cache")
    file = data / "2.csv"
    file.write_text("b,a\nz,9\n") if what == "changed" else file.unlink()
    words = "does not hold what was recorded" if what == "changed" else "there is no"
    with pytest.raises(OutsideError, match=rf"2\.csv.* {words}|{words} 2\.csv"):
        fetch_objects(manifest, ALL, Cache(tmp_path / "elsewhere"))
    assert not list((tmp_path / "elsewhere").glob("reading-*"))


def test_what_a_step_needs_stays_though_the_cache_is_too_small(data: Path, tmp_path: Path) -> None:
    manifest = taken(data, tmp_path / "cache")
    cache = Cache(tmp_path / "small", limit=1)
    local = fetch_objects(manifest, ALL, cache)
    cache.make_room()
    assert all(o.path.exists() for o in local)
    other = cache.reading()
    other.write_bytes(b"not needed")
    cache.add("ff", other)
    assert not cache.has("ff")


def objects(folder: Path, **tables: pa.Table | str) -> list[LocalObject]:
    """Parquet from tables; from texts, as if they had been CSV."""
    folder.mkdir(exist_ok=True)
    found = []
    for name, table in tables.items():
        if isinstance(table, pa.Table):
            path = folder / name
            pq.write_table(table, path)
        else:
            path = folder / f"{name}-x.parquet"
            duckdb.execute(f"COPY ({table}) TO '{path}' (FORMAT parquet)")
        found.append(LocalObject(name, path, 1))
    return found


def test_inferred_widths_order_and_columns_without_values_are_no_difference(tmp_path: Path) -> None:
    alike = objects(
        tmp_path / "o",
        one="SELECT 1::BIGINT AS a, 'x' AS b, DATE '2025-01-01' AS c",
        two="SELECT 'y' AS b, 0.5::DOUBLE AS a, NULL::BOOLEAN AS c",
        three="SELECT 2::BIGINT AS a, NULL::BOOLEAN AS b, DATE '2025-01-02' AS c",
        four=pa.table({"a": [1], "b": pa.nulls(1), "c": pa.nulls(1, pa.date32())}),
    )  # fmt: skip
    refuse_mixed_schemas(alike)
    with open_tables(ALL, readable=[tmp_path], scratch=tmp_path / "s") as connection:
        add_view(connection, "rows", alike)
        assert columns_of(connection, "rows") == {"a": "DOUBLE", "b": "VARCHAR", "c": "DATE"}


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (pa.table({"a": [1]}), "lacks column 'b'"),
        (pa.table({"a": [1], "b": ["x"], "c": [1]}), "has an extra column 'c'"),
        (pa.table({"a": [1.5], "b": ["x"]}), "has 'a' as double, not int64"),
        (pa.table({"a": ["1"], "b": ["x"]}), "has 'a' as string, not int64"),
        ("SELECT '1' AS a, 'x' AS b", "has 'a' as string, not int64"),
        ("SELECT true AS a, 'x' AS b", "has 'a' as bool, not int64"),
        (pa.table({"a": [1], "b": pa.array([None], pa.bool_())}), "has 'b' as bool, not string"),
    ],
)
def test_an_object_unlike_the_others_is_named(
    tmp_path: Path, odd: pa.Table | str, words: str
) -> None:
    plain = pa.table({"a": [1], "b": ["x"]})
    mixed = objects(tmp_path / "o", one=plain, two=odd, three=plain)
    with pytest.raises(StoppedByGate, match=f"two differs from the other objects: it .*{words}"):
        refuse_mixed_schemas(mixed)
