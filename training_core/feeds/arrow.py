"""Examples on disk as Arrow IPC files, memory-mapped without a copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from training_core.errors import ConfigurationError
from training_core.feeds.blocks import Segment


def open_arrow(path: Path, *, target: str = "target", units: str | None = None) -> list[Segment]:
    """Map an Arrow IPC file: a segment for each of its record batches.

    A numeric column becomes an array [N], one of fixed-size lists of length D an array [N, D].

    Args:
        path: The file, not compressed.
        target: Column with the labels.
        units: Column with how many units each example's summed loss covers; None: one each.

    Raises:
        ConfigurationError: It is not an Arrow IPC file, it is compressed, a column is missing or
            has nulls or another type.
    """
    import pyarrow as pa

    try:
        file = pa.memory_map(str(path)).read_buffer()  # the columns keep it alive
        reader = pa.ipc.open_file(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise ConfigurationError(
            f"{path} cannot be read as an Arrow IPC file: {error}", hint=_HINT
        ) from error
    names = reader.schema.names
    for wanted in [target] if units is None else [target, units]:
        if wanted not in names:
            raise ConfigurationError(f"{path} has no column {wanted!r}; it has: {', '.join(names)}")
    segments = []
    for number in range(reader.num_record_batches):
        batch = reader.get_batch(number)
        columns = {name: _mapped(path, name, batch.column(name)) for name in names}
        for name, column in columns.items():
            if not file.address <= column.ctypes.data < file.address + file.size:
                raise ConfigurationError(f"{path}: column {name!r} is compressed", hint=_HINT)
        labels = columns.pop(target)
        counted = None if units is None else columns.pop(units)
        segments.append(Segment.of(columns, labels, counted))
    return segments


_HINT = "write it with pyarrow.ipc.new_file, without compression"


def _mapped(path: Path, name: str, column: Any) -> NDArray[Any]:
    import pyarrow as pa

    if column.null_count:
        raise ConfigurationError(
            f"{path}: column {name!r} has {column.null_count} nulls", hint="fill or drop them"
        )
    kind, values = column.type, column
    width: tuple[int, ...] = ()
    if pa.types.is_fixed_size_list(kind):
        kind, width, values = kind.value_type, (kind.list_size,), column.flatten()
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if not numeric or values.null_count:
        raise ConfigurationError(
            f"{path}: column {name!r} is {column.type}, not numbers or lists of {width or 'equal'} "
            "length of numbers",
            hint="encode categories as integers before writing",
        )
    array: NDArray[Any] = np.asarray(values.to_numpy(zero_copy_only=True))
    return array.reshape(len(column), *width)
