"""Examples on disk as a folder of `.npy` files, one for each array, that any tool can read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray
from torch import Tensor

from training_core.errors import ConfigurationError
from training_core.examples import Examples
from training_core.feeds.blocks import Segment

_MANIFEST = "manifest.json"
_VERSION = 1


def write_blocks(folder: Path, chunks: Iterable[Examples]) -> int:
    """Write examples, of which only one chunk has to be in memory, and return how many.

    The manifest comes last and at once: a folder without it holds nothing.

    Args:
        folder: Made if it is not there; what it held before is replaced.
        chunks: All with the same arrays; types that numpy has.

    Raises:
        ConfigurationError: A name cannot be an argument of the model, a type is not numpy's, or
            chunks differ.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MANIFEST).unlink(missing_ok=True)
    count = 0
    with ExitStack() as stack:
        files: dict[str, _Growing] = {}
        for chunk in chunks:
            columns = _named(chunk)
            if not files:
                files = {
                    name: stack.enter_context(_Growing(folder / f"{name}.npy", tensor))
                    for name, tensor in columns.items()
                }
            if columns.keys() != files.keys():
                raise ConfigurationError(
                    f"chunks differ: first {sorted(files)}, then {sorted(columns)}"
                )
            for name, tensor in columns.items():
                files[name].append(tensor)
            count += len(chunk)
    manifest = {
        "version": _VERSION,
        "count": count,
        "arrays": [name.removeprefix("array-") for name in files if name.startswith("array-")],
        "units": "units" in files,
        "teacher": "teacher" in files,
    }
    whole = folder / f".{_MANIFEST}"
    with whole.open("w") as file:
        json.dump(manifest, file)
        file.flush()
        os.fsync(file.fileno())
    whole.replace(folder / _MANIFEST)
    return count


def open_blocks(folder: Path) -> Segment:
    """Map what `write_blocks` wrote.

    Raises:
        ConfigurationError: It is not whole.
    """
    manifest = _manifest(folder)
    count = int(manifest["count"])

    def mapped(name: str) -> NDArray[Any]:
        file = folder / f"{name}.npy"
        try:
            array = np.asarray(np.load(file, mmap_mode="r", allow_pickle=False))
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{file} cannot be read: {error}", hint=_HINT) from error
        if len(array) != count:
            raise ConfigurationError(
                f"{file} has {len(array)} rows, the manifest says {count}", hint=_HINT
            )
        return array

    if not count:
        return Segment.of({}, np.empty(0, np.float32), None)
    target = mapped("target")
    return Segment.of(
        {name: mapped(f"array-{name}") for name in manifest["arrays"]},
        target,
        mapped("units") if manifest["units"] else None,
        teacher=mapped("teacher") if manifest.get("teacher") else None,
        classes=target.dtype == np.int64,  # as the task made it
    )


_HINT = "write the folder again with training_core.feeds.npy.write_blocks"


def _manifest(folder: Path) -> dict[str, Any]:
    file = folder / _MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{folder} holds no examples: {file.name} cannot be read ({error})", hint=_HINT
        ) from error
    if manifest.get("version") != _VERSION:
        raise ConfigurationError(
            f"{file} has version {manifest.get('version')}, this code reads {_VERSION}", hint=_HINT
        )
    return manifest


def _named(chunk: Examples) -> dict[str, Tensor]:
    for name in chunk.arrays:
        if not name.isidentifier():
            raise ConfigurationError(
                f"an array is named {name!r}, which cannot be an argument of the model"
            )
    named = {f"array-{name}": array for name, array in chunk.arrays.items()}
    named["target"] = chunk.target
    if chunk.units is not None:
        named["units"] = chunk.units
    if chunk.teacher is not None:
        named["teacher"] = chunk.teacher
    return named


class _Growing:
    """An `.npy` file of rows that are not all known yet."""

    def __init__(self, path: Path, like: Tensor) -> None:
        try:
            self._dtype = like[:0].numpy().dtype
        except TypeError as error:
            raise ConfigurationError(
                f"{path.stem}: numpy has no type {like.dtype}", hint="convert it, to float16 say"
            ) from error
        self._path, self._shape = path, tuple(like.shape[1:])
        self._count = 0

    def __enter__(self) -> _Growing:
        self._file: IO[bytes] = self._path.open("wb")
        self._header()
        return self

    def append(self, rows: Tensor) -> None:
        array = rows.numpy()
        if array.dtype != self._dtype or array.shape[1:] != self._shape:
            raise ConfigurationError(
                f"{self._path.stem}: chunks differ: first {self._dtype} {list(self._shape)}, then "
                f"{array.dtype} {list(array.shape[1:])}"
            )
        self._file.write(np.ascontiguousarray(array).data)
        self._count += len(array)

    def __exit__(self, *_: object) -> None:
        with self._file:
            self._file.seek(0)
            self._header()
            self._file.flush()
            os.fsync(self._file.fileno())

    def _header(self) -> None:
        """Write the header; numpy leaves room in it for the count to grow."""
        described = {
            "descr": npy_format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": (self._count, *self._shape),
        }
        npy_format.write_array_header_1_0(self._file, described)
