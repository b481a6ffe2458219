"""The lines of CSV and JSON lines: the header, and where something is that a reader refused."""

from __future__ import annotations

import csv
import json
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Literal

from components.common.formats import shown
from training_core.errors import StoppedByGate

_DELIMITERS = (",", ";", "\t", "|")
_MOST_HEADER_BYTES = 1024 * 1024
_HINT = "write the object again with one line of column names, separated by , ; | or tabs"


def read_header(key: str, path: Path) -> tuple[list[str], str]:
    """Return the column names in the first line of a CSV file, and what separates them.

    Raises:
        StoppedByGate: The first line names no columns, one without a name, or one twice.
    """
    try:
        with path.open("rb") as file:
            head = file.readline(_MOST_HEADER_BYTES).decode("utf-8-sig")
            delimiter = max(_DELIMITERS, key=lambda sign: len(_fields(head, sign)))
            # quoted names may go on in the next line; nothing is decoded beyond them
            lines = chain([head], (line.decode() for line in file))
            names = next(csv.reader(lines, delimiter=delimiter, strict=True), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise StoppedByGate(
            f"{shown(key)} is no readable CSV: its first line: {error}", hint=_HINT
        ) from error
    if not any(name.strip() for name in names):
        raise StoppedByGate(f"{shown(key)} is no readable CSV: its first line is empty", hint=_HINT)
    if "" in names:
        raise StoppedByGate(
            f"{shown(key)} is no readable CSV: column {names.index('') + 1} has no name", hint=_HINT
        )
    # DuckDB takes A and a for one column
    (name, count), *_ = Counter(name.lower() for name in names).most_common(1)
    if count > 1:
        raise StoppedByGate(f"{shown(key)} names the column {name!r} {count} times", hint=_HINT)
    return names, delimiter


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def line_of_row(path: Path, row: int, kind: Literal["csv", "jsonl", "parquet"]) -> int:
    """Return the line, from 1, that a row of a table ends in; rows count from 0."""
    with path.open(encoding="utf-8-sig", newline="" if kind == "csv" else None) as file:
        if kind == "jsonl":
            full = (number for number, line in enumerate(file, 1) if line.strip())
            return next(number for count, number in enumerate(full) if count == row)
        reader = csv.reader(file, delimiter=_delimiter_of(path))
        rows = (reader.line_num for fields in reader if fields)
        next(rows)
        return next(number for count, number in enumerate(rows) if count == row)


def _delimiter_of(path: Path) -> str:
    return read_header(path.name, path)[1]


def malformed_line(path: Path) -> str:
    """Say which line of JSON lines is no object, or "" if all of them are."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                value = json.loads(line, object_pairs_hook=_without_doubles)
            except UnicodeDecodeError:
                return f"line {number} is no UTF-8"
            except ValueError as error:
                return f"line {number}: {error}"
            if not isinstance(value, dict):
                return f"line {number} is no object: {line[:80].decode(errors='replace').strip()!r}"
    return ""


def _without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    (name, count), *_ = Counter(name for name, _ in pairs).most_common(1) or [("", 0)]
    if count > 1:
        raise ValueError(f"it names {name!r} {count} times")
    return dict(pairs)
