"""What format an object is of: told by its name, checked by its content.

Parquet, CSV and JSON lines; the latter two also compressed by gzip.
"""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow.parquet as pq
from pyarrow import ArrowException

from training_core.errors import StoppedByGate

Kind = Literal["parquet", "csv", "jsonl"]
_KINDS: dict[str, Kind] = {
    ".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"
}  # fmt: skip
_PARQUET = b"PAR1"
_GZIP = b"\x1f\x8b"
# What a file begins with that is none of ours, in the words of the refusal.
_OTHERS = {
    b"PK\x03\x04": "a ZIP archive",
    b"\x28\xb5\x2f\xfd": "compressed by Zstandard",
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ": "compressed by xz",
    b"ORC": "ORC",
    b"Obj\x01": "Avro",
    b"ARROW1": "Arrow IPC",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"%PDF": "a PDF",
    b"SQLite format 3": "an SQLite database",
}
_PIECE_BYTES = 1024 * 1024
# Below these no expansion is refused: small text may repeat itself, and neither fills a disk.
_HARMLESS_TEXT = 1024 * 1024
_HARMLESS_VALUES = 64 * 1024 * 1024
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT96": 12}  # others: 8 bytes a value


@dataclass(frozen=True)
class Format:
    """A kind of content, and whether gzip is around it."""

    kind: Kind
    gzip: bool = False

    @property
    def words(self) -> str:
        name = {"parquet": "Parquet", "csv": "CSV", "jsonl": "JSON lines"}[self.kind]
        return f"{name}, gzip" if self.gzip else name


def shown(key: str) -> str:
    """A key as it may stand in a sentence: quoted where it could be mistaken for more."""
    return key if key.isprintable() and key.strip() == key else repr(key)


def named_format(key: str) -> Format:
    """Return what an object's name says; of a name that says nothing, Parquet is expected.

    Raises:
        StoppedByGate: It is gzip around something unknown.
    """
    name, zipped = key.lower(), False
    if name.endswith(".gz"):
        name, zipped = name.removesuffix(".gz"), True
    kind = next((k for suffix, k in _KINDS.items() if name.endswith(suffix)), None)
    if zipped and kind in (None, "parquet"):
        raise StoppedByGate(
            f"{shown(key)} has a name that says no format",
            hint="use .parquet, .csv, .jsonl or .ndjson, the last three also with .gz",
        )
    return Format(kind or "parquet", zipped)


def check_content(key: str, path: Path, form: Format) -> None:
    """Hold the beginning of an object against the format of its name.

    Raises:
        StoppedByGate: It is empty, or of another format.
    """
    with path.open("rb") as file:
        head = file.read(16)
    if not head:
        raise StoppedByGate(
            f"{shown(key)} is empty: it has 0 bytes",
            hint="was it written to the end? write it again or remove it",
        )
    expected = "gzip" if form.gzip else "Parquet" if form.kind == "parquet" else ""
    found = _seen(head)
    if found != expected:
        raise StoppedByGate(
            f"{shown(key)} is no readable {form.words}: "
            + (f"its content looks like {found}" if found else "it does not begin like one"),
            hint="it may be damaged or wrongly named; write it again, rename it or remove it",
        )


def _seen(head: bytes) -> str:
    if head.startswith(_PARQUET):
        return "Parquet"
    if head.startswith(_GZIP):
        return "gzip"
    for magic, words in _OTHERS.items():
        if head.startswith(magic):
            return words
    return "binary data" if b"\0" in head else ""


def read_footer(key: str, path: Path, *, most_expansion: int) -> pq.FileMetaData:
    """Return the metadata of a Parquet file.

    Raises:
        StoppedByGate: The file is cut off or damaged, or grows too much when it is read.
    """
    size = path.stat().st_size
    try:
        with pq.ParquetFile(path) as file:
            metadata = file.metadata
    except (ArrowException, OSError) as error:
        raise StoppedByGate(
            f"{shown(key)} is no readable Parquet file ({size} bytes): "
            f"{str(error).splitlines()[0]}",
            hint="it may be cut off or of another format; write it again or remove it",
        ) from error
    (name, count), *_ = Counter(metadata.schema.to_arrow_schema().names).most_common(1) or [("", 0)]
    if count != 1:
        raise StoppedByGate(
            f"{shown(key)} names the column {name!r} {count} times" if count
            else f"{shown(key)} has no columns",
            hint="write the object again with the usual columns",
        )  # fmt: skip
    written, values = 0, 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        written += group.total_byte_size
        # runs of one value take no space before they are decoded
        values += group.num_rows * sum(
            _WIDTHS.get(metadata.schema.column(c).physical_type, 8)
            for c in range(metadata.num_columns)
        )
    if written > _HARMLESS_TEXT:
        refuse_expansion(key, size, written, most_expansion)
    if values > _HARMLESS_VALUES:
        refuse_expansion(key, size, values, most_expansion)
    return metadata


def refuse_expansion(key: str, size: int, grown: int, most_expansion: int) -> None:
    """Stop where an object grows too much.

    Raises:
        StoppedByGate: It does.
    """
    if grown > most_expansion * size:
        raise StoppedByGate(
            f"{shown(key)} has {size} bytes and grows to {grown} or more when it is unpacked, over "
            f"{most_expansion} times as much",
            hint="a zip bomb? if it is data, raise data.most_expansion",
        )


def unpack(key: str, path: Path, target: Path, *, most_expansion: int) -> None:
    """Decompress a gzip file, counting.

    Raises:
        StoppedByGate: It is cut off or damaged, or grows too much.
    """
    size, grown = path.stat().st_size, 0
    try:
        with gzip.open(path, "rb") as source, target.open("wb") as file:
            while piece := source.read(_PIECE_BYTES):
                grown += len(piece)
                if grown > _HARMLESS_TEXT:
                    refuse_expansion(key, size, grown, most_expansion)
                file.write(piece)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise StoppedByGate(
            f"{shown(key)} cannot be unpacked ({size} bytes): {error}",
            hint="it may be cut off or damaged; write it again or remove it",
        ) from error
    if not grown:
        raise StoppedByGate(f"{shown(key)} is empty: unpacked it has 0 bytes",
                            hint="write it again or remove it")  # fmt: skip
