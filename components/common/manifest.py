"""The manifest of a snapshot: every object with its content's hash, as one Parquet file.

    snapshots/<digest>.parquet    immutable; rows in key order
    snapshots/latest.json         which was the last, and of which source

The digest is the SHA-256 of each key (UTF-8), a zero byte and the content's hash (32 bytes), in key
order: it names the data, wherever and whenever it was read. A million objects are some 50 MB on
disk and 150 MB in memory; nothing here makes a Python object for each.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from components.common.cache import Cache
from components.common.data_figures import DataObject
from infra.errors import ObjectMissing, OutsideError
from infra.store import ObjectStore

LATEST = "snapshots/latest.json"
FORMAT = "evertrain/snapshot/2"
COLUMNS = pa.schema(
    [
        ("key", pa.string()),
        ("size", pa.int64()),
        ("version", pa.string()),  # as the store's listing has it
        ("version_id", pa.string()),  # by which the store can give this content again, or ""
        ("sha256", pa.binary(32)),
        ("rows", pa.int64()),
        ("schema", pa.int32()),  # which of `schemas`
    ]
)
_ROW_GROUP = 131_072


def manifest_key(digest: str) -> str:
    """Where a manifest lies in the object store."""
    return f"snapshots/{digest}.parquet"


@dataclass(frozen=True)
class Manifest:
    """What a snapshot holds.

    Attributes:
        given: The source's URI or URIs, to open it with.
        source: The same in words.
        table: A row an object, in key order; see `COLUMNS`.
        schemas: Columns and types of the objects when they were read, each kind once.
    """

    given: str | list[str]
    source: str
    table: pa.Table
    schemas: list[dict[str, str]] = field(default_factory=list)

    @cached_property
    def digest(self) -> str:
        """Hash of all keys and contents."""
        digest = hashlib.sha256()
        for batch in self.table.select(["key", "sha256"]).to_batches():
            keys, contents = (column.cast(pa.binary()) for column in batch.columns)
            joined = pc.binary_join_element_wise(keys, contents, b"\0")
            ends = np.frombuffer(joined.buffers()[1], np.int32)[joined.offset :][: len(joined) + 1]
            if len(joined):
                digest.update(memoryview(joined.buffers()[2])[ends[0] : ends[-1]])
        return digest.hexdigest()

    @property
    def object_count(self) -> int:
        return int(self.table.num_rows)

    @property
    def rows(self) -> int:
        """Rows of all objects."""
        return int(pc.sum(self.table["rows"]).as_py() or 0)

    @property
    def size(self) -> int:
        """Bytes of all objects."""
        return int(pc.sum(self.table["size"]).as_py() or 0)

    def keys_and_hashes(self) -> Iterator[tuple[str, str]]:
        """Yield each object's key and content hash (hex), in key order."""
        for batch in self.table.select(["key", "sha256"]).to_batches():
            for key, content in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield key, content.hex()

    def objects(self) -> Iterator[DataObject]:
        """Yield the objects in key order: for a few, not for a million."""
        return objects_of(self.table)

    def content(self) -> bytes:
        """The manifest as a Parquet file."""
        about = {"format": FORMAT, "given": self.given, "source": self.source}
        metadata = json.dumps({**about, "schemas": self.schemas})
        file = io.BytesIO()
        pq.write_table(
            self.table.replace_schema_metadata({"evertrain": metadata}),
            file,
            # Hashes do not compress. Of a million objects LZ4 makes 48 MB, read in 0.2 s of CPU;
            # Zstandard 38 MB, read in 0.6 s, and each snapshot reads the one before.
            compression={n: "none" if n == "sha256" else "lz4" for n in self.table.column_names},
            use_dictionary=["size", "version_id", "rows", "schema"],
            column_encoding={"key": "DELTA_BYTE_ARRAY", "version": "PLAIN", "sha256": "PLAIN"},
            write_statistics=False,
            write_page_checksum=True,  # the digest covers keys and hashes only
            row_group_size=_ROW_GROUP,
        )
        return file.getvalue()


def objects_of(table: pa.Table) -> Iterator[DataObject]:
    """Yield the rows of a manifest's table; a column `new` may be there."""
    for batch in table.to_batches(max_chunksize=1024):
        for row in batch.to_pylist():
            yield DataObject(
                key=row["key"], size=row["size"], version=row["version"],
                sha256=row["sha256"].hex(), rows=row["rows"], new=row.get("new", False),
            )  # fmt: skip


def parse_manifest(content: bytes | memoryview) -> Manifest:
    """Read what `Manifest.content` wrote.

    Raises:
        ValueError: It is no manifest of this format.
    """
    try:
        table = pq.read_table(pa.BufferReader(content), page_checksum_verification=True)
        about: dict[str, Any] = json.loads(table.schema.metadata[b"evertrain"])
        if about["format"] != FORMAT or table.schema.names != COLUMNS.names:
            raise ValueError(f"its format is {about['format']!r}, not {FORMAT!r}")
        table = table.replace_schema_metadata(None).cast(COLUMNS)
        return Manifest(about["given"], about["source"], table, about["schemas"])
    except (pa.ArrowException, KeyError, TypeError, OSError) as error:
        raise ValueError(f"it is no manifest: {str(error).splitlines()[0]}") from error


def read_manifest(store: ObjectStore, digest: str, cache: Cache | None = None) -> Manifest:
    """Read a manifest, from the local cache if it is there, and check it against its digest.

    Raises:
        ObjectMissing: There is none.
        OutsideError: What is there is another one, or damaged.
    """
    key, name = manifest_key(digest), f"{digest}.manifest"
    if cache is not None and cache.has(name):
        try:
            return _checked(cache.place(name).read_bytes(), digest, key)
        except (OutsideError, FileNotFoundError):  # damaged here, or just removed
            cache.place(name).unlink(missing_ok=True)
    content = store.get(key)
    manifest = _checked(content, digest, f"{key} in {store.uri}")
    if cache is not None:
        temporary = cache.reading()
        temporary.write_bytes(content)
        cache.add(name, temporary)
    return manifest


def _checked(content: bytes, digest: str, where: str) -> Manifest:
    hint = "start a new run to take a new snapshot"
    try:
        manifest = parse_manifest(content)
    except ValueError as error:
        raise OutsideError(f"{where} cannot be read: {error}", hint=hint) from error
    if manifest.digest != digest:
        raise OutsideError(f"{where} names other objects than its digest says", hint=hint)
    return manifest


def latest_manifest(store: ObjectStore, given: str | list[str]) -> Manifest | None:
    """The manifest of the last snapshot of this source, if there is one that can be read."""
    try:
        pointer = json.loads(store.get(LATEST))
        if pointer.get("given") != given:
            return None
        manifest = parse_manifest(store.get(pointer["manifest"]))
        return manifest if manifest.digest == pointer["digest"] else None
    except (ObjectMissing, ValueError, KeyError, AttributeError):
        return None  # everything is read again


def keep_manifest(store: ObjectStore, manifest: Manifest, before: Manifest | None) -> None:
    """Write a manifest under its digest, if none is there, and point to it.

    Objects that were written again with what they held have the digest of the snapshot before, but
    other versions. Lest they be read each time, the pointer then leads to a manifest beside it.
    """
    if before is not None and manifest.table.equals(before.table):
        return
    with ThreadPoolExecutor(1) as helper:
        writing = helper.submit(manifest.content)
        manifest.digest  # noqa: B018 (meanwhile; it is kept)
        content = writing.result()
    where = manifest_key(manifest.digest)
    if not store.create(where, content) and store.get(where) != content:
        where = "snapshots/latest.parquet"
        store.put(where, content)
    pointer = {
        "format": FORMAT, "digest": manifest.digest, "manifest": where, "given": manifest.given,
        "source": manifest.source, "rows": manifest.rows, "objects": manifest.object_count,
    }  # fmt: skip
    store.put(LATEST, json.dumps(pointer, indent=1).encode())
