"""Files of named tensors in the safetensors format: numbers and where they lie, nothing to execute.

    8 bytes     length of the header, little-endian
    header      JSON: {name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}
    numbers     of all tensors, without gaps

Format: https://github.com/huggingface/safetensors#format.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from training_core.errors import ConfigurationError

_DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8,
    "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_LONGEST_HEADER = 100_000_000  # bytes, as the format's own library has it


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """Return a file's tensors by name, on the CPU.

    Raises:
        ConfigurationError: There is no such file, or it is no whole safetensors file.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}", hint="see training.start.file"
        ) from error
    try:
        return _tensors(content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"{path} is no safetensors file, or is damaged: {error}",
            hint="a PyTorch pickle (.pt, .pth, .bin) is never loaded, as it can run code; where "
            "you trust it: safetensors.torch.save_file(torch.load(…, weights_only=True), …)",
        ) from error


def write_safetensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors; the same ones give the same bytes, whatever their order.

    Raises:
        KeyError: The format has no such dtype.
    """
    header: dict[str, Any] = {}
    pieces: list[bytes] = []
    place = 0
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        piece = tensor.reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [place, place + len(piece)],
        }
        pieces.append(piece)
        place += len(piece)
    words = json.dumps(header, separators=(",", ":")).encode()
    words += b" " * (-len(words) % 8)
    path.write_bytes(len(words).to_bytes(8, "little") + words + b"".join(pieces))


def _tensors(content: bytes) -> dict[str, Tensor]:
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or not 0 < length <= min(_LONGEST_HEADER, len(content) - 8):
        raise ValueError("its header is not whole")
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    numbers, found = memoryview(content)[8 + length :], {}
    for name, told in header.items():
        dtype = _DTYPES.get(told["dtype"])
        if dtype is None:
            raise ValueError(f"{name} has the unknown dtype {told['dtype']!r}")
        shape, (start, stop) = [int(size) for size in told["shape"]], told["data_offsets"]
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or not 0 <= start <= stop <= len(numbers):
            raise ValueError(f"{name} lies outside the file")
        if stop - start != size:
            raise ValueError(f"{name} has {stop - start} bytes, and its shape needs {size}")
        piece = bytearray(numbers[start:stop])
        found[name] = (
            torch.frombuffer(piece, dtype=dtype).view(shape)
            if piece
            else (torch.empty(shape, dtype=dtype))
        )
    return found
