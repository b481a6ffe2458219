"""The object store's contract, as one suite that each implementation passes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from infra.errors import ObjectMissing, OutsideError
from infra.s3 import S3Store
from infra.store import ObjectStore, open_store

ODD = [
    "a b/c",
    "ü/é.json",
    "100%+20&x=1?#;'\"",
    "emoji/😀",
    "tab\tand,comma",
    "dots/..a",
    "a~(b)*!",
]


def keys(store: ObjectStore, prefix: str = "") -> list[str]:
    return [info.key for info in store.list(prefix)]


def keys_after(store: ObjectStore, after: str, prefix: str = "") -> list[str]:
    return [info.key for info in store.list(prefix, after=after)]


def test_what_is_put_is_got_back_and_replaced(store: ObjectStore, tmp_path: Path) -> None:
    store.put("a/b.json", b"one")
    assert store.get("a/b.json") == b"one"
    store.put("a/b.json", b"")
    assert store.get("a/b.json") == b""
    (tmp_path / "source").write_bytes(b"\0\xff" * 99)
    store.put_file("a/b.json", tmp_path / "source")
    store.get_file("a/b.json", tmp_path / "new" / "folder" / "target")
    assert (tmp_path / "new" / "folder" / "target").read_bytes() == b"\0\xff" * 99
    assert os.listdir(tmp_path / "new" / "folder") == ["target"]


def test_info_says_size_and_a_version_that_changes_and_is_that_of_the_listing(
    store: ObjectStore,
) -> None:
    store.put("a", b"12345")
    first = store.info("a")
    assert first is not None
    assert (first.key, first.size) == ("a", 5)
    assert list(store.list()) == [first]
    store.put("a", b"54321")
    second = store.info("a")
    assert second is not None
    assert second.version != first.version


def test_create_writes_once(store: ObjectStore) -> None:
    assert store.create("log/1", b"first") is True
    assert store.create("log/1", b"second") is False
    assert store.create("log/1", b"first") is False  # the same bytes, but not of this call
    assert store.get("log/1") == b"first"
    store.delete("log/1")
    assert store.create("log/1", b"third") is True


@pytest.mark.parametrize("same_bytes", [False, True])
def test_of_twelve_writers_who_create_one_key_exactly_one_wins(
    store: ObjectStore, same_bytes: bool
) -> None:
    for race in range(5):
        gate = threading.Barrier(12)

        def write(writer: int, key: str = f"race/{race}", gate: threading.Barrier = gate) -> bool:
            gate.wait()
            return store.create(key, b"same" if same_bytes else str(writer).encode())

        with ThreadPoolExecutor(12) as pool:
            won = list(pool.map(write, range(12)))
        assert won.count(True) == 1
        if not same_bytes:
            assert store.get(f"race/{race}") == str(won.index(True)).encode()
    assert keys(store) == [f"race/{race}" for race in range(5)]


def test_what_is_missing_is_said_to_be(store: ObjectStore, tmp_path: Path) -> None:
    store.put("folder/file", b"x")
    for key in ("nothing", "folder", "folder/file/below"):
        assert store.info(key) is None
        with pytest.raises(ObjectMissing, match=key):
            store.get(key)
        with pytest.raises(ObjectMissing, match=key):
            store.read(key)
        with pytest.raises(ObjectMissing, match=key):
            list(store.pieces(key))
        with pytest.raises(ObjectMissing, match=key):
            store.get_file(key, tmp_path / "target")
        store.delete(key)
    assert not (tmp_path / "target").exists()
    assert keys(store) == ["folder/file"]
    store.delete("folder/file")
    assert store.info("folder/file") is None
    assert keys(store, "nowhere/") == []


def test_a_listing_is_in_key_order_and_keeps_to_its_prefix(store: ObjectStore) -> None:
    names = ["a/b", "a-b", "a.b", "ab", "B", "a/c/d", "a/C", "z/ü", "z/z"]
    for name in names:
        store.put(name, name.encode())
    assert keys(store) == sorted(names)
    assert keys(store, "a") == ["a-b", "a.b", "a/C", "a/b", "a/c/d", "ab"]
    assert keys(store, "a/") == ["a/C", "a/b", "a/c/d"]
    assert keys(store, "a/c") == ["a/c/d"]
    assert keys(store, "a/c/d") == ["a/c/d"]
    assert [info.size for info in store.list("z/")] == [3, 4]


def test_a_listing_after_a_text_is_the_rest_of_the_listing(store: ObjectStore) -> None:
    names = ["a/b", "a-b", "a.b", "ab", "B", "a/c/d", "a/c/e", "a/C", "z/ü", "z/z"]
    for name in names:
        store.put(name, name.encode())
    for after in [*names, "a", "a/", "a/c", "a/c/", "a/c/dd", "a0", "b", "z", "zz", ""]:
        assert keys_after(store, after) == sorted(name for name in names if name > after)
        inner = sorted(n for n in names if n > after and n.startswith("a/c"))
        assert keys_after(store, after, "a/c") == inner


def test_a_listing_longer_than_a_page_is_whole(store: ObjectStore) -> None:
    names = [f"many/{number:04}" for number in range(1005)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: store.put(name, b""), names))
    assert keys(store, "many/") == names


@pytest.mark.parametrize("key", ODD)
def test_an_odd_key_is_a_key_like_any_other(store: ObjectStore, key: str) -> None:
    store.put(key, key.encode())
    assert store.get(key) == key.encode()
    assert keys(store) == [key]
    assert store.create(key, b"other") is False
    store.delete(key)
    assert keys(store) == []


@pytest.mark.parametrize(
    "key", ["", "/", "/etc/x", "../x", "a/../../x", "a/..", "./a", "a//b", "a/", "a\0b", ".."]
)
def test_a_key_that_leaves_the_store_or_has_two_spellings_is_refused(
    store: ObjectStore, key: str, tmp_path: Path
) -> None:
    (tmp_path / "source").write_bytes(b"x")
    for call in (
        lambda: store.put(key, b"x"),
        lambda: store.put_file(key, tmp_path / "source"),
        lambda: store.create(key, b"x"),
        lambda: store.get(key),
        lambda: list(store.pieces(key)),
        lambda: store.get_file(key, tmp_path / "target"),
        lambda: store.info(key),
        lambda: store.delete(key),
    ):
        with pytest.raises(OutsideError, match="is no key of the object store"):
            call()
    assert sorted(os.listdir(tmp_path)) == ["source"]
    assert keys(store) == []


def test_a_listing_cannot_leave_the_store(store: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"x")
    for prefix in ("../", "../outside", "a/../../", "/"):
        with pytest.raises(OutsideError, match="is no key"):
            list(store.list(prefix))


def test_a_big_file_goes_there_and_back_in_parts(store: ObjectStore, tmp_path: Path) -> None:
    data = random.Random(7).randbytes(20 * 1024 * 1024 + 17)
    (tmp_path / "source").write_bytes(data)
    store.put_file("big", tmp_path / "source")
    info = store.info("big")
    assert info is not None
    assert info.size == len(data)
    assert list(store.list("big")) == [info]
    if isinstance(store, S3Store):
        assert info.version.endswith("-2")  # the ETag of two parts: it was a multipart upload
    store.get_file("big", tmp_path / "target")
    got = hashlib.sha256((tmp_path / "target").read_bytes()).hexdigest()
    assert got == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("size", [0, 1, 5_000_000, 34 * 1024 * 1024 + 17])
def test_memory_of_any_size_is_written_as_it_is_and_read_back_in_pieces(
    store: ObjectStore, size: int
) -> None:
    whole = bytearray(random.Random(7).randbytes(size + 10))
    store.put("big", memoryview(whole)[3 : 3 + size])  # a view into the middle of something
    info = store.info("big")
    assert info is not None
    assert info.size == size
    pieces = list(store.pieces("big"))
    assert b"".join(pieces) == whole[3 : 3 + size]
    assert max(map(len, pieces), default=0) <= 16 * 1024 * 1024
    if isinstance(store, S3Store):
        assert info.version.endswith("-3") == (size > 32 * 1024 * 1024)  # sent in three parts


def test_pieces_of_what_is_missing_are_not_pieces_of_nothing(store: ObjectStore) -> None:
    with pytest.raises(ObjectMissing, match="there is no nowhere"):
        list(store.pieces("nowhere"))


def test_pieces_of_two_objects_are_never_mixed(store: ObjectStore) -> None:
    store.put("big", b"1" * (20 * 1024 * 1024))
    pieces = store.pieces("big")
    seen = next(pieces)
    store.put("big", b"2" * (20 * 1024 * 1024))
    with contextlib.suppress(OutsideError):
        seen += b"".join(pieces)
    assert set(seen) == {ord("1")}


def test_a_file_that_cannot_be_read_or_placed_is_an_outside_error(
    store: ObjectStore, tmp_path: Path
) -> None:
    with pytest.raises(OutsideError, match="No such file"):
        store.put_file("key", tmp_path / "absent")
    assert store.info("key") is None
    store.put("key", b"x")
    (tmp_path / "file").write_bytes(b"")
    for place in (tmp_path, tmp_path / "file" / "below"):
        with pytest.raises(OutsideError) as caught:
            store.get_file("key", place)
        assert not isinstance(caught.value, ObjectMissing)
    assert not list(tmp_path.rglob(".writing-*"))


def test_an_uri_of_an_unknown_kind_is_refused_with_the_kinds_there_are() -> None:
    with pytest.raises(OutsideError, match="s3://bucket/prefix"):
        open_store("gs://bucket")
    with pytest.raises(OutsideError, match="names no bucket"):
        open_store("s3://")
