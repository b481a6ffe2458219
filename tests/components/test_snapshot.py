"""snapshot_data: what is read, what is not read again, and what is refused."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from snapshot_sources import CountingStore, keys, settings, snapshot, write

from components.common.cache import Cache
from components.common.sources import open_source
from components.snapshot_data import taking
from components.snapshot_data.taking import take_snapshot
from training_core.errors import ConfigurationError, StoppedByGate


@pytest.fixture
def source(tmp_path: Path) -> CountingStore:
    return CountingStore(tmp_path / "data")


def test_only_what_is_new_is_read(source: CountingStore) -> None:
    write(source, "a.parquet", 1)
    write(source, "b.parquet", 2, 3)
    first = snapshot(source)
    assert [(o.key, o.rows) for o in first.manifest.objects()] == [
        ("a.parquet", 1),
        ("b.parquet", 2),
    ]
    assert first.new.tolist() == [True, True]
    write(source, "aa.parquet", 4)
    second = snapshot(source, first.manifest)
    assert source.read == ["aa.parquet"]
    assert keys(second) == ["a.parquet", "aa.parquet", "b.parquet"]
    assert second.new.tolist() == [False, True, False]
    assert second.new_rows == 1
    hashes = dict(second.manifest.keys_and_hashes())
    assert dict(first.manifest.keys_and_hashes()).items() <= hashes.items()
    third = snapshot(source, second.manifest)
    assert source.read == []
    assert third.manifest.digest == second.manifest.digest != first.manifest.digest
    assert not third.new.any()


def test_an_object_written_again_is_read_again(source: CountingStore) -> None:
    write(source, "a.parquet", 1)
    write(source, "b.parquet", 5)
    first = snapshot(source)
    write(source, "a.parquet", 2)
    again = snapshot(source, first.manifest)
    assert source.read == ["a.parquet"]
    assert again.new.tolist() == [True, False]
    assert again.manifest.digest != first.manifest.digest


def test_an_object_written_again_with_what_it_held_is_read_but_is_not_new(
    source: CountingStore,
) -> None:
    write(source, "a.parquet", 1)
    first = snapshot(source)
    os.utime(source.root / "a.parquet", ns=(1, 1))
    again = snapshot(source, first.manifest)
    assert source.read == ["a.parquet"]
    assert not again.new.any()
    assert again.manifest.digest == first.manifest.digest
    snapshot(source, again.manifest)
    assert source.read == []


def test_objects_that_went_are_no_longer_there(source: CountingStore) -> None:
    for number in range(5):
        write(source, f"{number}.parquet", number)
    first = snapshot(source)
    source.delete("0.parquet")
    source.delete("3.parquet")
    write(source, "5.parquet", 5)
    second = snapshot(source, first.manifest)
    assert keys(second) == [f"{number}.parquet" for number in (1, 2, 4, 5)]
    assert [o.rows for o in second.manifest.objects()] == [1] * 4
    assert source.read == ["5.parquet"]


def test_a_snapshot_of_many_pieces_is_that_of_one(
    source: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        write(source, f"{number % 3}/{number}.parquet", number)
    whole = snapshot(source)
    monkeypatch.setattr(taking, "BATCH", 3)
    parts = snapshot(source)
    assert parts.manifest.table.equals(whole.manifest.table)
    source.delete("1/4.parquet")
    write(source, "1/40.parquet", 40)
    write(source, "9.parquet", 41)
    write(source, "2/5.parquet", 42)
    later = snapshot(source, parts.manifest)
    assert sorted(source.read) == ["1/40.parquet", "2/5.parquet", "9.parquet"]
    monkeypatch.undo()
    assert later.manifest.digest == snapshot(source).manifest.digest


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
    assert not list((source.root.parent / "cache").glob("??/*"))
    assert not list((source.root.parent / "cache").glob("*reading-*"))


def test_hidden_files_and_other_names_are_passed_over(source: CountingStore) -> None:
    write(source, "a.parquet", 1)
    for key in (".b.parquet", ".tmp/c.parquet", "year/.d.parquet", "e.csv"):
        write(source, key, 2)
    assert keys(snapshot(source)) == ["a.parquet"]


def test_what_is_read_lies_in_the_cache_under_its_hash(source: CountingStore) -> None:
    write(source, "a.parquet", 1)
    ((_, sha256),) = snapshot(source).manifest.keys_and_hashes()
    cached = source.root.parent / "cache" / sha256[:2] / sha256
    assert cached.read_bytes() == (source.root / "a.parquet").read_bytes()


def test_nothing_to_read_stops_the_run(source: CountingStore) -> None:
    with pytest.raises(StoppedByGate, match=r"no object below .*data matches '\*\.parquet'"):
        snapshot(source)
    write(source, "a.csv", 1)
    with pytest.raises(StoppedByGate, match=r"no object below .*data matches '\*\.parquet'"):
        snapshot(source)


def test_the_same_content_under_two_names_stops_the_run(source: CountingStore) -> None:
    for number, key in enumerate(("a", "b", "c")):
        write(source, f"{key}.parquet", number % 2)
    with pytest.raises(StoppedByGate, match=r"c\.parquet has the very content of a\.parquet"):
        snapshot(source)


def spoiled(source: CountingStore, key: str, content: bytes) -> str:
    """What is said of an object."""
    write(source, "ok.parquet", 1)
    (source.root / key).write_bytes(content)
    with pytest.raises(StoppedByGate) as refused:
        snapshot(source, pattern="*")
    assert refused.value.hint
    left = {p.name for p in (source.root.parent / "cache").iterdir() if p.is_file()}
    assert left <= {".lock"}
    return refused.value.what


@pytest.mark.parametrize(
    ("key", "content", "words"),
    [
        ("a.parquet", b"", ["a.parquet is empty", "0 bytes"]),
        ("a.csv", b"", ["a.csv is empty", "0 bytes"]),
        ("a.csv.gz", gzip.compress(b"", mtime=0), ["a.csv.gz is empty", "unpacked"]),
        ("a.parquet", b"PAR1 and then nothing", ["a.parquet", "no readable Parquet", "21 bytes"]),
        ("a.parquet", b"x,y\n1,2\n", ["a.parquet", "no readable Parquet", "not begin like one"]),
        ("a.csv", b"PAR1xxxxPAR1", ["a.csv", "no readable CSV", "looks like Parquet"]),
        ("a.csv", gzip.compress(b"x\n1\n", mtime=0), ["a.csv", "looks like gzip"]),
        ("a.csv.gz", b"x\n1\n", ["a.csv.gz", "no readable CSV, gzip"]),
        ("a.jsonl", b"PK\x03\x04zip", ["a.jsonl", "ZIP archive"]),
        ("a.csv", "x\n1\n".encode("utf-16"), ["a.csv", "UTF-16"]),
        ("a.csv", b"x\0y\n", ["a.csv", "binary"]),
        ("a.gz", gzip.compress(b"x\n1\n", mtime=0), ["a.gz", "says no format"]),
        ("a.csv.gz", gzip.compress(b"x\n1\n", mtime=0)[:-6], ["a.csv.gz", "cannot be unpacked"]),
        ("a.csv.gz", gzip.compress(b"x" * 99, mtime=0)[:12] + b"?" * 30, ["cannot be unpacked"]),
        ("a\nb.csv", b"", ["'a\\nb.csv' is empty"]),
    ],
)
def test_an_object_that_is_not_what_its_name_says_is_refused(
    source: CountingStore, key: str, content: bytes, words: list[str]
) -> None:
    what = spoiled(source, key, content)
    for word in words:
        assert word in what


def test_a_parquet_file_that_was_cut_off_is_refused(source: CountingStore) -> None:
    write(source, "whole.parquet", *range(1000))
    content = (source.root / "whole.parquet").read_bytes()
    assert "no readable Parquet" in spoiled(source, "cut.parquet", content[:-50])


def test_what_grows_too_much_is_refused_before_it_has_grown(source: CountingStore) -> None:
    bomb = gzip.compress(b"x\n" + b"0\n" * 10_000_000, mtime=0)
    what = spoiled(source, "bomb.csv.gz", bomb)
    assert "bomb.csv.gz" in what
    assert "over 200 times" in what
    grown = int(what.split("grows to ")[1].split()[0])
    assert grown < 300 * len(bomb) + 2**21, "it was noticed early"
    (source.root / "bomb.csv.gz").unlink()
    zeros = pa.table({"x": pa.array([0] * 10_000_000, pa.int64())})
    pq.write_table(zeros, source.root / "bomb.parquet")
    with pytest.raises(StoppedByGate, match=r"bomb\.parquet has .* grows to 80000000 or more"):
        snapshot(source)
    assert keys(snapshot(source, most_expansion=10**6)) == ["bomb.parquet", "ok.parquet"]


@pytest.mark.parametrize(
    "key",
    ["a b.parquet", "ü/é😀.parquet", "it's \"so\".parquet", "n\nl.parquet", "100%;--.parquet",
     "-rf.parquet", "x" * 200 + ".parquet"],
)  # fmt: skip
def test_an_odd_name_is_a_name(source: CountingStore, key: str) -> None:
    write(source, key, 1)
    first = snapshot(source)
    assert keys(first) == [key]
    snapshot(source, first.manifest)
    assert source.read == []


def test_a_name_that_is_no_utf8_is_refused(source: CountingStore) -> None:
    write(source, "a.parquet", 1)
    os.rename(source.root / "a.parquet", os.fsencode(source.root) + b"/\xff.parquet")
    with pytest.raises(StoppedByGate, match="is no UTF-8"):
        snapshot(source)


@pytest.mark.parametrize("where", ["outside", "nowhere", "a folder outside"])
def test_a_link_that_leads_out_of_the_folder_is_refused(source: CountingStore, where: str) -> None:
    write(source, "a.parquet", 1)
    outside = CountingStore(source.root.parent / "outside")
    write(outside, "b.parquet", 2)
    target = {"outside": "outside/b.parquet", "nowhere": "absent", "a folder outside": "outside"}
    name = "linked" if "folder" in where else "b.parquet"
    (source.root / name).symlink_to(source.root.parent / target[where])
    with pytest.raises(StoppedByGate, match=f"{name} in .* is a link"):
        snapshot(source)
    (source.root / name).rename(source.root / f".{name}")
    assert keys(snapshot(source)) == ["a.parquet"]


def test_a_link_within_the_folder_is_followed_to_a_file(source: CountingStore) -> None:
    write(source, "raw/a.parquet", 1)
    write(source, "raw/b.parquet", 2)
    (source.root / "latest").symlink_to("raw")
    assert keys(snapshot(source)) == ["raw/a.parquet", "raw/b.parquet"]
    (source.root / "raw" / "c.parquet").symlink_to(source.root / "raw" / "b.parquet")
    with pytest.raises(StoppedByGate, match=r"c\.parquet has the very content of raw/b\.parquet"):
        snapshot(source)


def of_list(tmp_path: Path, *uris: str, **given: Any) -> taking.Taken:
    source = open_source([str(tmp_path / uri) for uri in uris])
    return take_snapshot(
        source, settings=settings(**given), before=None, cache=Cache(tmp_path / "cache")
    )


def test_of_several_sources_each_key_is_a_whole_uri_in_order(tmp_path: Path) -> None:
    for number, name in enumerate(("a", "a-b", "c")):
        write(CountingStore(tmp_path / name), "same.parquet", number)
    (tmp_path / "c" / "one.csv").write_text("x\n7\n")
    taken = of_list(tmp_path, "c/one.csv", "a", "a-b")
    expected = [f"{tmp_path}/{key}" for key in ("a-b/same.parquet", "a/same.parquet", "c/one.csv")]
    assert keys(taken) == expected
    assert expected == sorted(expected)


def test_a_source_inside_another_is_refused(tmp_path: Path) -> None:
    write(CountingStore(tmp_path / "a"), "b/c.parquet", 1)
    for inner in ("a/b", "a/b/c.parquet", "a"):
        with pytest.raises(ConfigurationError, match="its rows would count twice"):
            of_list(tmp_path, "a", inner)


def test_a_single_object_is_a_source(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("x\n7\n8\n")
    source = open_source(str(tmp_path / "one.csv"))
    taken = take_snapshot(source, settings=settings(), before=None, cache=Cache(tmp_path / "cache"))
    assert keys(taken) == ["one.csv"]
    assert taken.manifest.rows == 2


def test_many_new_objects_are_read_by_a_few_threads_and_the_first_fault_ends_it(
    source: CountingStore,
) -> None:
    for number in range(300):
        write(source, f"{number:03}.parquet", number)
    (source.root / "005.parquet").write_bytes(b"")
    with pytest.raises(StoppedByGate, match=r"005\.parquet is empty"):
        snapshot(source)
    assert len(source.read) < 150  # how many others were read meanwhile is the machine's affair
