"""Write the text that Python brings with itself as Parquet, some documents at a time.

    python examples/text/prepare.py --data examples/text/data --parts 1-6
    python examples/text/prepare.py --data examples/text/data --parts 7-10

The source is the standard library of the Python that runs this: the topics of its language
reference (`pydoc_data/topics.py`), and the docstrings of its modules, read and not imported; under
the PSF License Version 2. A document is one topic, or all docstrings of one module. They quote one
another (a topic may hold four others whole), so a paragraph is kept only where it comes first:
otherwise a model would be judged on what it had read.

Each row is a passage: 128 characters of a document (its last one shorter), in ASCII, so that a
character is a byte. Nobody dated the documents: which part one lands in follows from its name's
hash.

The same Python gives the same bytes, another 3.11 perhaps a few others, and a file appears whole or
not at all, so landing a part twice changes nothing.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import sys
import sysconfig
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

SCHEMA = pa.schema([("document", pa.string()), ("position", pa.int64()), ("text", pa.string())])
PARTS = 10
LENGTH = 128  # characters of a passage
LEAST = 200  # a shorter document is hardly one
_QUOTABLE = 40  # a shorter paragraph ("Example:") comes up again by itself

# Tests, vendored code, and the table of topics itself, which is read by other means.
_LEFT_OUT = {
    *("test", "tests", "idle_test", "site-packages", "dist-packages"),
    *("lib2to3", "idlelib", "pydoc_data", "lib-dynload"),
}  # fmt: skip


def documents(library: Path) -> dict[str, str]:
    """The texts by name, sorted: `topics/…` and `modules/…`.

    Args:
        library: Folder of the standard library.

    Raises:
        FileNotFoundError: It has no `pydoc_data/topics.py`.
    """
    source = library / "pydoc_data" / "topics.py"
    if not source.is_file():
        raise FileNotFoundError(
            f"there is no {source}\n\nhint: some distributions pack Python's documentation apart"
        )
    (assigned,) = (n for n in ast.parse(source.read_bytes()).body if isinstance(n, ast.Assign))
    found = {f"topics/{name}": text for name, text in ast.literal_eval(assigned.value).items()}
    for file in sorted(library.rglob("*.py")):
        parts = file.relative_to(library).with_suffix("").parts
        if _LEFT_OUT & set(parts):
            continue
        found["modules/" + ".".join(parts)] = "\n\n".join(docstrings(file))
    plain = {name: ascii_of(text) for name, text in sorted(found.items())}
    return {name: text for name, text in without_quotes(plain).items() if len(text) >= LEAST}


def docstrings(file: Path) -> Iterator[str]:
    """Those of a module, its classes and functions, in the order of the file."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node for node in ast.walk(ast.parse(file.read_bytes())) if isinstance(node, kinds)]
    for node in sorted(found, key=lambda node: getattr(node, "lineno", 0)):
        if text := ast.get_docstring(node):
            yield text


def without_quotes(texts: dict[str, str]) -> dict[str, str]:
    """Keep each paragraph only where it comes first, whatever its indentation."""
    seen: set[str] = set()

    def is_new(paragraph: str) -> bool:
        words = " ".join(paragraph.split())
        known = words in seen
        if len(words) >= _QUOTABLE:
            seen.add(words)
        return bool(words) and not known

    return {
        name: "\n\n".join(filter(is_new, text.split("\n\n"))).strip()
        for name, text in texts.items()
    }


def ascii_of(text: str) -> str:
    """Line breaks and printable ASCII only: accents are dropped, and what is left becomes `?`."""
    decomposed = unicodedata.normalize("NFKD", text.expandtabs())
    plain = "".join(c for c in decomposed if not unicodedata.combining(c))
    return "".join(c if c == "\n" or 32 <= ord(c) < 127 else "?" for c in plain)


def part_of(document: str) -> int:
    """The part that a document lands in, from 1."""
    return 1 + int(hashlib.sha256(document.encode()).hexdigest(), 16) % PARTS


def write_part(texts: dict[str, str], *, part: int, folder: Path) -> Path:
    """Write the passages of a part's documents: a temporary file, then a rename."""
    rows = [
        {"document": name, "position": place, "text": text[start : start + LENGTH]}
        for name, text in texts.items()
        if part_of(name) == part
        for place, start in enumerate(range(0, len(text), LENGTH))
    ]
    target = folder / f"text-{part:02d}.parquet"
    unfinished = folder / f".{target.name}.{os.getpid()}.unfinished"  # no reader looks for this
    try:
        table = pa.Table.from_pylist(rows, schema=SCHEMA)
        pa.parquet.write_table(table, unfinished, compression="zstd")
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)
    return target


def parse_parts(text: str) -> list[int]:
    """Read `4`, `1-3` or `1-3,6` as parts.

    Raises:
        argparse.ArgumentTypeError: It is none of these.
    """
    parts: set[int] = set()
    for span in text.split(","):
        first, dash, last = span.partition("-")
        try:
            numbers = range(int(first), int(last if dash else first) + 1)
        except ValueError:
            numbers = range(0)
        if not numbers or numbers[0] < 1 or numbers[-1] > PARTS:
            raise argparse.ArgumentTypeError(
                f"{span!r} is no part or span of parts, as in 1-3, up to {PARTS}"
            )
        parts.update(numbers)
    return sorted(parts)


def main(arguments: list[str] | None = None) -> int:
    """Write the files that were asked for; print one path a line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder the files go to")
    parser.add_argument(
        "--parts", type=parse_parts, default=parse_parts(f"1-{PARTS}"), help="1-6 or 7"
    )
    options = parser.parse_args(arguments)
    try:
        texts = documents(Path(sysconfig.get_path("stdlib")))
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    options.data.mkdir(parents=True, exist_ok=True)
    for part in options.parts:
        print(write_part(texts, part=part, folder=options.data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
