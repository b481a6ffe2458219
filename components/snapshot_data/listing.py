"""What a source holds now, as a table: its objects that are data, within the window."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from components.common.data_settings import DataSettings
from components.common.sources import Place, Source
from components.snapshot_data.partitions import Pattern, inside_window
from infra.errors import LeadsOut
from infra.store import ObjectInfo
from training_core.errors import ConfigurationError, StoppedByGate

BATCH = 65_536
_HIDDEN = r"(^|/)\."
_SENSELESS = r"(^|/)\.{0,2}(/|$)"  # an empty part, or . or ..


def list_objects(source: Source, settings: DataSettings) -> pa.Table:
    """Return key, size and version of the objects that are data, in key order.

    Names that begin with a dot, or lie in such a folder, are passed over. Takes some 100 bytes of
    memory an object.

    Raises:
        StoppedByGate: There is none, or one has a key that cannot be read.
        ConfigurationError: The pattern makes no sense.
    """
    pattern = Pattern(settings.pattern)
    tables, places = [], []
    try:
        for place in source.places:
            listing = place.list()
            while batch := list(islice(listing, BATCH)):
                table = _chosen(_table(batch, source), place, pattern)
                if pattern.kind:
                    places.append(pattern.places(table["key"].combine_chunks()))
                keys = pc.binary_join_element_wise(place.prefix, table["key"], "")
                tables.append(table.set_column(0, "key", keys))
    except LeadsOut as error:
        raise StoppedByGate(error.what, hint=error.hint) from error
    table = pa.concat_tables(tables) if tables else None
    if table is None or not table.num_rows:
        raise StoppedByGate(
            f"there is nothing to read: no object below {source.uri} matches {settings.pattern!r}",
            hint="check data.source and data.pattern in evertrain.yaml, or --data",
        )
    if pattern.kind:
        window = inside_window(np.concatenate(places), settings.newest, settings.window)
        return table if window.all() else table.filter(pa.array(window))
    return table.slice(max(0, table.num_rows - settings.newest)) if settings.newest else table


def _table(batch: Iterable[ObjectInfo], source: Source) -> pa.Table:
    keys, sizes, versions = zip(*batch, strict=True)
    try:
        columns = [pa.array(keys, pa.string()), pa.array(sizes, pa.int64()), pa.array(versions)]
    except UnicodeEncodeError as error:
        raise StoppedByGate(
            f"a key in {source.uri} is no UTF-8: {error.object!r}", hint="rename the object"
        ) from error
    return pa.table(columns, ["key", "size", "version"])


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
