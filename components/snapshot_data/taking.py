"""From a listing to a manifest: what is known is taken over, what is not is read and hashed.

Listing and manifest are both in key order, so they are merged piece by piece; a million known
objects take about a second.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from components.common.cache import Cache
from components.common.data_settings import DataSettings
from components.common.formats import shown
from components.common.layout import sha256_of
from components.common.local import THREADS, take_in
from components.common.manifest import COLUMNS, Manifest, keep_manifest, latest_manifest
from components.common.sources import Source
from components.snapshot_data.listing import BATCH, list_objects
from infra.errors import LeadsOut, ObjectChanged, ObjectMissing
from infra.store import ObjectStore
from training_core.errors import StoppedByGate


@dataclass(frozen=True)
class Taken:
    """A snapshot.

    Attributes:
        new: Of each object, bool [N]: it, or what it holds, was not in the snapshot before.
    """

    manifest: Manifest
    new: npt.NDArray[np.bool_]

    @property
    def new_rows(self) -> int:
        """Rows of the new objects."""
        return int(pc.sum(self.manifest.table["rows"].filter(pa.array(self.new))).as_py() or 0)


class _Read(NamedTuple):
    version_id: str
    sha256: bytes
    rows: int
    schema: str


def take_next_snapshot(
    source: Source, *, settings: DataSettings, store: ObjectStore, cache: Cache
) -> Taken:
    """Take a snapshot after the last one in the store, and keep its manifest there.

    The manifest before is read while the source is listed. See `take_snapshot`.
    """
    with ThreadPoolExecutor(1) as helper:
        last = helper.submit(latest_manifest, store, source.given)
        listing = list_objects(source, settings)
        before = last.result()
    taken = _take(source, listing, settings=settings, before=before, cache=cache)
    keep_manifest(store, taken.manifest, before)
    return taken


def take_snapshot(
    source: Source, *, settings: DataSettings, before: Manifest | None, cache: Cache
) -> Taken:
    """List the source, and read whatever is not known by key, size and version.

    Args:
        source: The data.
        settings: Pattern, window, and how text is converted.
        before: The snapshot before of the same source.
        cache: Receives what is read.

    Raises:
        StoppedByGate: Nothing to read, an unreadable object, the same content twice, or an object
            that changed while it was read.
    """
    listing = list_objects(source, settings)
    return _take(source, listing, settings=settings, before=before, cache=cache)


def _take(
    source: Source,
    listing: pa.Table,
    *,
    settings: DataSettings,
    before: Manifest | None,
    cache: Cache,
) -> Taken:
    old = before.table if before else COLUMNS.empty_table()
    schemas = {json.dumps(schema): n for n, schema in enumerate(before.schemas if before else [])}
    tables, new = [], []
    with ThreadPoolExecutor(THREADS) as pool:
        for piece in listing.to_batches(max_chunksize=BATCH):
            part, place = _matching(old, piece)
            known = (place >= 0) & _unchanged(piece, part, place)
            changed = piece.filter(pa.array(~known)).to_pylist()
            read = list(pool.map(lambda info: _read(source, info, cache, settings), changed))
            numbers = [schemas.setdefault(r.schema, len(schemas)) for r in read]
            tables.append(_assembled(part, place, known, piece, read, numbers))
            new.append(_new(part, place, known, read))
    kinds = [json.loads(schema) for schema in schemas]
    manifest = Manifest(source.given, source.uri, pa.concat_tables(tables), kinds)
    _refuse_doubles(manifest.table)
    return Taken(manifest, np.concatenate(new))


def _matching(old: pa.Table, piece: pa.RecordBatch) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Return the old rows within a piece's keys, and where each key is among them, or -1."""
    keys = _Keys(old["key"])
    start = bisect_left(keys, piece["key"][0].as_py())
    end = bisect_right(keys, piece["key"][-1].as_py())
    part = old.slice(start, end - start)
    count = piece.num_rows
    if part.num_rows == count and pc.all(pc.equal(part["key"], piece["key"])).as_py():
        return part, np.arange(count)
    found = pc.index_in(piece["key"], value_set=part["key"].combine_chunks())
    return part, pc.fill_null(found, -1).to_numpy().astype(np.int64)


class _Keys:
    """A column for bisect."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, place: int) -> str:
        return str(self._column[place].as_py())


def _unchanged(
    piece: pa.RecordBatch, part: pa.Table, place: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    if not part.num_rows:
        return np.zeros(piece.num_rows, np.bool_)
    if not _is_identity(place, part):
        part = part.select(["size", "version"]).take(pa.array(np.maximum(place, 0)))
    same = pc.and_(
        pc.equal(part["size"], piece["size"]), pc.equal(part["version"], piece["version"])
    )
    unchanged: npt.NDArray[np.bool_] = same.to_numpy().astype(np.bool_)
    return unchanged


def _is_identity(place: npt.NDArray[np.int64], part: pa.Table) -> bool:
    return len(place) == part.num_rows and bool((place == np.arange(len(place))).all())


def _read(source: Source, info: dict[str, object], cache: Cache, settings: DataSettings) -> _Read:
    """Fetch an object, hash it, count its rows, and leave it in the cache as Parquet."""
    key = str(info["key"])
    temporary = cache.reading()
    try:
        version_id = source.fetch(key, temporary, version=str(info["version"]))
        sha256 = sha256_of(temporary)
        taken = take_in(cache, temporary, key=key, sha256=sha256, settings=settings)
    except (ObjectChanged, ObjectMissing) as error:
        raise StoppedByGate(
            f"{shown(key)} in {source.uri} changed while it was read",
            hint="wait until whoever writes it is done, then run the same command again",
        ) from error
    except LeadsOut as error:
        raise StoppedByGate(error.what, hint=error.hint) from error
    finally:
        temporary.unlink(missing_ok=True)
    return _Read(version_id, bytes.fromhex(sha256), taken.rows, json.dumps(taken.schema))


def _assembled(
    part: pa.Table,
    place: npt.NDArray[np.int64],
    known: npt.NDArray[np.bool_],
    piece: pa.RecordBatch,
    read: list[_Read],
    schemas: list[int],
) -> pa.Table:
    """The manifest's rows of a piece, in its order."""
    if known.all():
        return part if _is_identity(place, part) else part.take(pa.array(place))
    changed = piece.filter(pa.array(~known))
    version_ids, contents, rows, _ = zip(*read, strict=True)
    columns = [*changed.columns, version_ids, contents, rows, schemas]
    arrays = [pa.array(c, field.type) for c, field in zip(columns, COLUMNS, strict=True)]
    where = place.copy()
    where[~known] = part.num_rows + np.arange(len(read))
    both = pa.concat_tables([part, pa.table(arrays, schema=COLUMNS)])
    return both.take(pa.array(where))


def _new(
    part: pa.Table,
    place: npt.NDArray[np.int64],
    known: npt.NDArray[np.bool_],
    read: list[_Read],
) -> npt.NDArray[np.bool_]:
    """An object that was written again with what it held is not new."""
    new = ~known
    for number, r in zip(np.flatnonzero(new), read, strict=True):
        if place[number] >= 0:
            new[number] = part["sha256"][int(place[number])].as_py() != r.sha256
    return new


def _refuse_doubles(table: pa.Table) -> None:
    """Stop where two objects have the same content; a quarter of each hash tells most apart."""
    parts = [np.empty(0, np.uint64), *_first_words(table["sha256"])]
    words = np.concatenate(parts)
    ordered = np.sort(words)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(twice):
        return
    seen: dict[bytes, str] = {}
    suspects = table.select(["key", "sha256"]).filter(pa.array(np.isin(words, twice)))
    for key, content in zip(*(column.to_pylist() for column in suspects.columns), strict=True):
        if content in seen:
            raise StoppedByGate(
                f"{shown(key)} has the very content of {shown(seen[content])}: its rows would "
                "count twice",
                hint="remove one of the two",
            )
        seen[content] = key


def _first_words(contents: pa.ChunkedArray) -> Iterator[npt.NDArray[np.uint64]]:
    for chunk in contents.chunks:
        start, end = chunk.offset * 32, (chunk.offset + len(chunk)) * 32
        yield np.frombuffer(memoryview(chunk.buffers()[1])[start:end], np.uint64)[::4]
