"""Objects of a snapshot as Parquet files on this machine, each checked against its hash."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from components.common.cache import Cache, bytes_of
from components.common.data_settings import DataSettings
from components.common.formats import check_content, named_format, read_footer, shown
from components.common.layout import sha256_of
from components.common.manifest import Manifest
from components.common.records import StepContext
from components.common.sources import Source, open_source
from components.common.tables import LocalObject
from infra.errors import LeadsOut, ObjectMissing, OutsideError
from training_core.errors import StoppedByGate

THREADS = 8
_CONVERTED = ".parquet"
_NUMBERS = {"int64", "double"}


class TakenIn(NamedTuple):
    """What became of an object's content.

    Attributes:
        path: As Parquet, in the cache.
        schema: Its columns, in order, with their Arrow types.
    """

    path: Path
    rows: int
    schema: dict[str, str]


def open_cache(context: StepContext) -> Cache:
    """The local cache with the project's limit."""
    return Cache(context.cache, limit=bytes_of(context.project.settings.data.cache))


def local_name(key: str, sha256: str, settings: DataSettings) -> str:
    """The name in the cache: the content's hash, and what decided how it was converted."""
    if named_format(key).kind == "parquet":
        return sha256
    from components.common.conversion import settings_digest

    return f"{sha256}-{settings_digest(settings)}{_CONVERTED}"


def take_in(
    cache: Cache, temporary: Path, *, key: str, sha256: str, settings: DataSettings
) -> TakenIn:
    """Put an object's content into the cache, as Parquet; `temporary` is gone afterwards.

    Raises:
        StoppedByGate: It cannot be read, or grows too much.
    """
    form = named_format(key)
    check_content(key, temporary, form)
    name, finished = local_name(key, sha256, settings), temporary
    try:
        if form.kind != "parquet":
            from components.common.conversion import convert

            finished = cache.reading()
            convert(key, temporary, finished, form=form, settings=settings)
        most = settings.most_expansion if finished is temporary else sys.maxsize
        metadata = read_footer(key, finished, most_expansion=most)
        path = cache.add(name, finished)
    finally:
        finished.unlink(missing_ok=True)
        temporary.unlink(missing_ok=True)
    schema = {f.name: str(f.type) for f in metadata.schema.to_arrow_schema()}
    return TakenIn(path, metadata.num_rows, schema)


def bring_unknown(source: Source, cache: Cache, key: str, settings: DataSettings) -> LocalObject:
    """Bring an object that no snapshot knows yet.

    Raises:
        StoppedByGate: It cannot be read.
    """
    temporary = cache.reading()
    try:
        source.fetch(key, temporary)
        sha256 = sha256_of(temporary)
        taken = take_in(cache, temporary, key=key, sha256=sha256, settings=settings)
    except LeadsOut as error:
        raise StoppedByGate(error.what, hint=error.hint) from error
    finally:
        temporary.unlink(missing_ok=True)
    return LocalObject(key, taken.path, taken.rows)


def fetch_snapshot(context: StepContext, manifest: Manifest) -> list[LocalObject]:
    """Return a snapshot's objects as local Parquet files; see `fetch_objects`."""
    return fetch_objects(manifest, context.project.settings.data, open_cache(context))


def fetch_objects(manifest: Manifest, settings: DataSettings, cache: Cache) -> list[LocalObject]:
    """Return the objects of a manifest as local Parquet files, in key order.

    Eight are fetched at a time. They stay in the cache until this process ends, whatever its limit.

    Raises:
        OutsideError: An object is gone, or no longer holds what the manifest says.
        StoppedByGate: It cannot be converted with the types that the settings name now.
    """
    source = open_source(manifest.given)
    columns = ["key", "sha256", "size", "rows", "version_id"]
    rows = list(zip(*(manifest.table[c].to_pylist() for c in columns), strict=True))
    names = [local_name(key, content.hex(), settings) for key, content, *_ in rows]
    cache.need(names)
    wanted = zip(rows, names, strict=True)
    cache.make_room(sum(row[2] for row, name in wanted if not cache.has(name)))

    def bring(row: tuple[str, bytes, int, int, str], name: str) -> LocalObject:
        key, content, _, count, version_id = row
        path = cache.place(name)
        if not cache.has(name):
            path = _fetch(source, cache, key, content.hex(), version_id, settings)
        return LocalObject(key, path, count)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(bring, rows, names))


def _fetch(
    source: Source, cache: Cache, key: str, sha256: str, version_id: str, settings: DataSettings
) -> Path:
    """Bring an object back whose hash is known: it alone decides whether it is the right one."""
    temporary = cache.reading()
    try:
        try:
            source.fetch(key, temporary, version_id=version_id)
        except ObjectMissing:
            if not version_id:
                raise
            source.fetch(key, temporary)  # the version was removed; the object may hold the same
        if sha256_of(temporary) != sha256:
            raise OutsideError(
                f"{shown(key)} in {source.uri} does not hold what was recorded (expected sha256 "
                f"{sha256[:12]}…)",
                hint="it was changed or damaged since; start a new run to take a new snapshot",
            )
        return take_in(cache, temporary, key=key, sha256=sha256, settings=settings).path
    except LeadsOut as error:
        raise StoppedByGate(error.what, hint=error.hint) from error
    finally:
        temporary.unlink(missing_ok=True)


def refuse_mixed_schemas(objects: Sequence[LocalObject]) -> None:
    """Stop where an object has other columns or types than most; name it and them.

    The order of columns is no difference, nor how a writer stored a text or an instant (dictionary,
    offsets, unit, zone); nor is a column without values, or, in objects that were
    CSV or JSON lines, whole numbers here and fractions there: those types were inferred.

    Raises:
        StoppedByGate: An object differs.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        schemas = list(pool.map(_schema_of, objects))
    kinds = Counter(json.dumps(sorted(schema)) for schema in schemas)
    names: list[str] = json.loads(kinds.most_common(1)[0][0])
    usual = {}
    for name in names:
        types = Counter(schema.get(name, "null") for schema in schemas)
        del types["null"]
        usual[name] = types.most_common(1)[0][0] if types else "null"
    for o, schema in zip(objects, schemas, strict=True):
        words = [f"lacks column {name!r}" for name in names if name not in schema]
        words += [f"has an extra column {name!r}" for name in schema if name not in usual]
        words += [
            f"has {name!r} as {schema[name]}, not {usual[name]}"
            for name in names
            if name in schema and not _same(schema[name], usual[name], _was_text(o))
        ]
        if words:
            raise StoppedByGate(
                f"{shown(o.key)} differs from the other objects: it {', '.join(words[:4])}",
                hint="a renamed column shows as one missing and one extra; write the object again "
                "with the usual columns",
            )


def _same(found: str, usual: str, was_text: bool) -> bool:
    return found in (usual, "null") or (was_text and {found, usual} <= _NUMBERS)


def _was_text(o: LocalObject) -> bool:
    return o.path.suffix == _CONVERTED


def _plain(kind: pa.DataType) -> str:
    """A type by what its values are, however a writer stored them: DuckDB reads them as one."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "string"
    if pa.types.is_large_binary(kind):
        return "binary"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamp with time zone"
    return str(kind)


def _schema_of(o: LocalObject) -> dict[str, str]:
    """Columns and Arrow types; `null` where a converted column has no values."""
    metadata = pq.read_metadata(o.path)
    schema = {f.name: _plain(f.type) for f in metadata.schema.to_arrow_schema()}
    if _was_text(o):
        empty = {name for name, kind in schema.items() if kind == "bool"}
        for number in range(metadata.num_row_groups):
            for place in range(metadata.num_columns):
                chunk = metadata.row_group(number).column(place)
                if chunk.statistics is None or chunk.statistics.null_count != chunk.num_values:
                    empty.discard(chunk.path_in_schema)
        schema |= dict.fromkeys(empty, "null")
    return schema
