"""What is there now: the version of the data, and how much of it is new.

The version is a hash of key, size and version of every object that is data and within the window,
as a listing has them: no object is read. It is not the snapshot's digest, which is of contents;
objects that are written again as they were have another version, and their run ends at once, for
there is nothing new.

What is new is found by 64-bit marks of the same three, 8 bytes an object, kept for the version
that the last run was started for. Of a million objects two have the same mark in one of 37 million
cases; then the count is one too low.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from components.common.data_settings import DataSettings
from components.common.sources import Place, Source
from components.snapshot_data.listing import BATCH, NothingToRead, list_objects
from infra.errors import ObjectMissing
from infra.store import ObjectInfo, ObjectStore

Marks = npt.NDArray[np.uint64]
_VERSIONS = "watch/versions/"


@dataclass(frozen=True)
class Look:
    """What was there.

    Attributes:
        version: Hash of the listing; empty: there is no data.
        objects: How many.
        listing: Key, size and version of each, in key order.
        why_none: Why there is no data, in words.
    """

    version: str
    objects: int
    listing: pa.Table
    why_none: str = ""

    def marks(self) -> Marks:
        """Return a mark of each object, uint64 [N], in ascending order."""
        digests = (
            hashlib.blake2b(line, digest_size=8).digest()
            for lines in _lines(self.listing)
            for line in lines.to_pylist()
        )
        return np.sort(np.frombuffer(b"".join(digests), np.uint64))


def look(source: Source, settings: DataSettings) -> Look:
    """List the data.

    Raises:
        StoppedByGate: A key cannot be read.
        OutsideError: A place is out of reach.
    """
    try:
        listing = list_objects(source, settings)
    except NothingToRead as error:
        return Look("", 0, pa.table({}), error.what)
    digest = hashlib.sha256()
    for lines in _lines(listing):
        ends = np.frombuffer(lines.buffers()[1], np.int32)[lines.offset :][: len(lines) + 1]
        digest.update(memoryview(lines.buffers()[2])[ends[0] : ends[-1]])
    return Look(digest.hexdigest(), listing.num_rows, listing)


def beating(source: Source, beat: Callable[[], None]) -> Source:
    """Return the source; that a long listing of it goes on is told every thousand objects."""
    return Source(source.given, [_Beating(p.prefix, p.store, p.only, beat) for p in source.places])


@dataclass(frozen=True)
class _Beating(Place):
    beat: Callable[[], None] = lambda: None

    def list(self, *, after: str = "") -> Iterator[ObjectInfo]:
        for number, info in enumerate(super().list(after=after)):
            if number % 1000 == 0:
                self.beat()
            yield info


def keep_marks(store: ObjectStore, found: Look) -> None:
    """Keep what a version consists of, so that what is new since can be counted."""
    store.create(_VERSIONS + found.version, found.marks().tobytes())


def forget_marks(store: ObjectStore, version: str) -> None:
    """Let go of a version that nothing is counted from any more."""
    store.delete(_VERSIONS + version)


def count_new(store: ObjectStore, found: Look, before: str) -> int:
    """Count the objects that were not in an earlier version, or have changed since.

    Args:
        store: Where marks are kept.
        found: What is there now.
        before: The earlier version; empty, or one whose marks are gone: all objects are new.
    """
    if not before:
        return found.objects
    try:
        known = np.frombuffer(store.get(_VERSIONS + before), np.uint64)
    except (ObjectMissing, ValueError):  # cut short: what cannot be known is new
        return found.objects
    return int(np.isin(found.marks(), known, assume_unique=False, invert=True).sum())


def _lines(listing: pa.Table) -> Iterator[pa.BinaryArray]:
    """Yield a text an object in pieces; `\\0` is in none of the three, so no two are alike."""
    for batch in listing.to_batches(max_chunksize=BATCH):
        key, size, version = (
            batch[name].cast(pa.string()).cast(pa.binary()) for name in ("key", "size", "version")
        )
        yield pc.binary_join_element_wise(key, size, version, b"", b"\0")
