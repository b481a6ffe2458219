"""The manifest: one Parquet file, named after keys and contents, right or refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from components.common.cache import Cache
from components.common.manifest import (
    COLUMNS,
    LATEST,
    Manifest,
    keep_manifest,
    latest_manifest,
    manifest_key,
    read_manifest,
)
from infra.errors import ObjectMissing, OutsideError
from infra.folder import FolderStore

SOURCE = "/data"


def content(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()


def manifest(*numbers: int, version: str = "v", given: Any = SOURCE) -> Manifest:
    rows = [(f"{n:04}.parquet", 10, version, "", content(n), n, 0) for n in numbers]
    columns = [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), COLUMNS, strict=True)]
    table = pa.Table.from_arrays(columns, schema=COLUMNS)
    return Manifest(given, str(given), table, [{"x": "int64"}])


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "store")


def test_the_digest_is_that_of_keys_and_contents_in_order() -> None:
    by_hand = hashlib.sha256()
    for number in (1, 2, 30):
        by_hand.update(f"{number:04}.parquet".encode() + b"\0" + content(number))
    made = manifest(1, 2, 30)
    assert made.digest == by_hand.hexdigest()
    assert manifest(1, 2, 30, version="other").digest == made.digest
    assert manifest(1, 2).digest != made.digest
    pieces = pa.concat_tables([made.table.slice(0, 1), made.table.slice(1)])
    assert Manifest(SOURCE, SOURCE, pieces, []).digest == made.digest
    assert (made.object_count, made.rows, made.size) == (3, 33, 30)
    assert list(made.keys_and_hashes())[2] == ("0030.parquet", content(30).hex())


def test_what_is_kept_is_read_back(store: FolderStore, tmp_path: Path) -> None:
    made = manifest(1, 2, 3)
    keep_manifest(store, made, None)
    cache = Cache(tmp_path / "cache")
    for _ in range(2):
        read = read_manifest(store, made.digest, cache)
        assert read.table.equals(made.table)
        assert (read.given, read.source, read.schemas) == (SOURCE, SOURCE, [{"x": "int64"}])
        store.delete(manifest_key(made.digest))  # the second time it comes from the cache
    with pytest.raises(ObjectMissing):
        read_manifest(store, made.digest)


def test_a_manifest_is_never_written_again(store: FolderStore) -> None:
    first, second = manifest(1, 2), manifest(1, 2, version="written again")
    keep_manifest(store, first, None)
    written = store.get(manifest_key(first.digest))
    keep_manifest(store, second, first)
    assert store.get(manifest_key(first.digest)) == written
    latest = latest_manifest(store, SOURCE)
    assert latest is not None
    assert latest.table.equals(second.table), "or the objects would be read each time"
    pointer = json.loads(store.get(LATEST))
    assert pointer["digest"] == first.digest
    assert (pointer["rows"], pointer["objects"]) == (3, 2)


def test_where_nothing_changed_nothing_is_written(store: FolderStore) -> None:
    keep_manifest(store, manifest(1), None)
    before = {info.key: info.version for info in store.list()}
    keep_manifest(store, manifest(1), latest_manifest(store, SOURCE))
    assert {info.key: info.version for info in store.list()} == before


def test_the_last_snapshot_of_another_source_is_not_taken_for_one_of_this(
    store: FolderStore,
) -> None:
    keep_manifest(store, manifest(1), None)
    assert latest_manifest(store, SOURCE) is not None
    assert latest_manifest(store, [SOURCE]) is None
    assert latest_manifest(store, "/elsewhere") is None


@pytest.mark.parametrize("pointer", [b"", b"[]", b"{}", b'{"given": "/data"}', b"\xff"])
def test_without_a_readable_pointer_everything_is_read_again(
    store: FolderStore, pointer: bytes
) -> None:
    keep_manifest(store, manifest(1), None)
    store.put(LATEST, pointer)
    assert latest_manifest(store, SOURCE) is None


def damaged(written: bytes, digest: str) -> list[bytes]:
    """Each byte of the content hashes flipped would do: some places all over the file."""
    found = []
    for place in np.linspace(0, len(written) - 1, 40).astype(int):
        changed = bytearray(written)
        changed[place] ^= 4
        found.append(bytes(changed))
    return [*found, written[:-30], b"", manifest(5).content()]


def test_a_damaged_manifest_is_refused_or_says_the_same(store: FolderStore, tmp_path: Path) -> None:
    made = manifest(*range(50))
    keep_manifest(store, made, None)
    key = manifest_key(made.digest)
    written, refused = store.get(key), 0
    for content in damaged(written, made.digest):
        store.put(key, content)
        try:
            assert read_manifest(store, made.digest).table.equals(made.table)
        except OutsideError:
            refused += 1
    assert refused >= 25
    store.put(key, written)
    cache = Cache(tmp_path / "cache")
    read_manifest(store, made.digest, cache)
    (copy,) = cache.folder.glob("??/*")
    copy.write_bytes(b"damaged here")
    assert read_manifest(store, made.digest, cache).digest == made.digest


def test_a_manifest_of_many_objects_is_small() -> None:
    count = 100_000
    hashes = pa.py_buffer(np.random.default_rng(0).bytes(32 * count))
    keys = [f"day={number // 1000:04}/part-{number:07}.parquet" for number in range(count)]
    versions = [f"{1_700_000_000_000_000_000 + n * 7919}-1000-{n * 13}" for n in range(count)]
    columns = [
        keys, [1000] * count, versions, [""] * count,
        pa.FixedSizeBinaryArray.from_buffers(pa.binary(32), count, [None, hashes]),
        [100] * count, [0] * count,
    ]  # fmt: skip
    arrays = [pa.array(c, f.type) for c, f in zip(columns, COLUMNS, strict=True)]
    made = Manifest(SOURCE, SOURCE, pa.Table.from_arrays(arrays, schema=COLUMNS), [])
    assert len(made.content()) < 60 * count, "60 MB for a million"
