"""What a source holds now, as a table: its objects that are data, within the window."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from components.common.data_settings import DataSettings
from components.common.sources import Place, Source
from components.snapshot_data.partitions import Pattern, inside_window
from infra.errors import LeadsOut
from training_core.errors import ConfigurationError, StoppedByGate

BATCH = 65_536
_HIDDEN = r"(^|/)\."
_SENSELESS = r"(^|/)\.{0,2}(/|$)"  # an empty part, or . or ..


class NothingToRead(StoppedByGate):
    """A place of the source holds no data."""


def list_objects(source: Source, settings: DataSettings) -> pa.Table:
    """Return key, size and version of the objects that are data, in key order.

    Names that begin with a dot, or lie in such a folder, are passed over. Takes some 100 bytes of
    memory an object.

    Raises:
        NothingToRead: A place has none.
        StoppedByGate: One has a key that cannot be read.
        ConfigurationError: The pattern makes no sense.
    """
    pattern = Pattern(settings.pattern)
    try:
        pieces = list(_pieces(source, pattern))
    except LeadsOut as error:
        raise StoppedByGate(error.what, hint=error.hint) from error
    for place in source.places:  # one of several that is empty may be a disk that is not there
        if not any(piece.table.num_rows for piece in pieces if piece.place is place):
            raise NothingToRead(
                f"there is nothing to read: no object below {place.uri} matches "
                f"{settings.pattern!r}",
                hint="check data.source and data.pattern in evertrain.yaml, or --data",
            )
    table = pa.concat_tables([piece.table for piece in pieces])
    if pattern.kind:
        partitions = np.concatenate([piece.partitions for piece in pieces])
        window = inside_window(partitions, settings.newest, settings.window)
        return table if window.all() else table.filter(pa.array(window))
    return table.slice(max(0, table.num_rows - settings.newest)) if settings.newest else table


def are_data(keys: pa.Array, pattern: Pattern, place: Place) -> pa.Array:
    """Say of each key in a place whether `list_objects` would list it, the window left aside."""
    if place.only:
        return pc.equal(keys, place.only)
    hidden = pc.match_substring_regex(keys, _HIDDEN)
    return pc.and_(pattern.matches(keys), pc.invert(hidden))


class _Piece(NamedTuple):
    """Some objects of a place, and where each one's partition stands in their order."""

    place: Place
    table: pa.Table
    partitions: npt.NDArray[np.int64]


def _pieces(source: Source, pattern: Pattern) -> Iterator[_Piece]:
    """Yield the objects that are data in pieces, which a thread makes as the listing goes.

    Only texts and numbers are held while a piece is listed: tuples, which the garbage collector
    walks through again and again, cost 2.6 seconds of CPU for a million.
    """
    waiting: deque[Future[_Piece]] = deque()
    with ThreadPoolExecutor(1) as helper:
        for place in source.places:
            listing = place.list()
            while True:
                keys: list[str] = []
                sizes: list[int] = []
                versions: list[str] = []
                for key, size, version in islice(listing, BATCH):
                    keys.append(key)
                    sizes.append(size)
                    versions.append(version)
                if not keys:
                    break
                waiting.append(helper.submit(_piece, place, pattern, keys, sizes, versions))
                if len(waiting) > 2:
                    yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _piece(
    place: Place, pattern: Pattern, keys: list[str], sizes: list[int], versions: list[str]
) -> _Piece:
    try:
        columns = [pa.array(keys, pa.string()), pa.array(sizes, pa.int64()), pa.array(versions)]
    except UnicodeEncodeError as error:
        raise StoppedByGate(
            f"a key in {place.uri} is no UTF-8: {error.object!r}", hint="rename the object"
        ) from error
    table = _chosen(pa.table(columns, ["key", "size", "version"]), place, pattern)
    found = table["key"].combine_chunks()
    partitions = pattern.places(found) if pattern.kind else np.empty(0, np.int64)
    if place.prefix:
        table = table.set_column(0, "key", pc.binary_join_element_wise(place.prefix, found, ""))
    return _Piece(place, table, partitions)


def _chosen(table: pa.Table, place: Place, pattern: Pattern) -> pa.Table:
    fitting = table.filter(pattern.matches(table["key"]))
    if place.only:
        if not fitting.num_rows and pattern.kind:
            raise ConfigurationError(
                f"data.source names {place.uri}, which data.pattern {pattern.text!r} does not fit",
                hint="without a match its partition is not known: rename it, or name its folder",
            )
        return table  # named by its own name: whatever the pattern says
    odd = fitting.filter(pc.match_substring_regex(fitting["key"], _SENSELESS))
    if odd.num_rows:
        raise StoppedByGate(
            f"{odd['key'][0].as_py()!r} in {place.uri} is no key that can be read: "
            "it has an empty part, or . or ..",
            hint="rename the object",
        )
    return fitting.filter(pc.invert(pc.match_substring_regex(fitting["key"], _HIDDEN)))
