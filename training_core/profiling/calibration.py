"""What this machine can do: FLOP/s, bytes a second, and what calling an operation costs.

Small measurements of some 0.8 s in all, with this process's threads, the best of several.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import log

import torch

from training_core.precision import Precision
from training_core.telemetry.flops import peak_flops

_SIZES = tuple(2**power for power in (12, 15, 18, 21, 24, 26))  # bytes that are copied, CPU
_SIZES_GPU = tuple(2**power for power in (16, 20, 24, 28, 30))
_SECONDS = 0.08


@dataclass(frozen=True)
class Machine:
    """What a device can do at best.

    Attributes:
        device: Its name.
        threads: CPU threads of this process.
        precision: That products are made in.
        flops: FLOP/s of large matrix products, measured.
        published: FLOP/s by the maker's data sheet; None: not known.
        bandwidths: Bytes a second, read and written, by the bytes that an operation moves: caches
            are faster than memory.
        call: Seconds that an operation on one number takes: what calling costs.
    """

    device: str
    threads: int
    precision: str
    flops: float
    published: float | None
    bandwidths: tuple[tuple[float, float], ...]
    call: float

    @property
    def bandwidth(self) -> float:
        """Bytes a second of main memory: of what fits no cache."""
        return self.bandwidths[-1][1]

    def seconds_to_move(self, count: float) -> float:
        """Seconds that moving so many bytes takes at least."""
        if count <= 0:
            return 0.0
        sizes = [size for size, _ in self.bandwidths]
        if count <= sizes[0] or count >= sizes[-1]:
            return count / self.bandwidths[0 if count <= sizes[0] else -1][1]
        right = bisect_left(sizes, count)
        (a, before), (b, after) = list(pairwise(self.bandwidths))[right - 1]
        share = log(count / a) / log(b / a)
        return count / (before + (after - before) * share)

    def seconds_to_compute(self, flops: float) -> float:
        """Seconds that so many FLOPs take at least."""
        return flops / self.flops


def calibrate(device: torch.device, precision: Precision) -> Machine:
    """Measure a device."""
    gpu = device.type == "cuda"
    dtype = precision.dtype or torch.float32
    side = 4096 if gpu else 384  # a CPU is done with it before another process gets its turn
    matrix = torch.ones(side, side, dtype=dtype, device=device)
    sizes = _SIZES_GPU if gpu else _SIZES
    one = torch.ones(1, device=device)
    return Machine(
        device=torch.cuda.get_device_name(device)
        if gpu
        else f"CPU, {torch.get_num_threads()} threads"
        if torch.get_num_threads() > 1
        else "CPU, one thread",
        threads=torch.get_num_threads(),
        precision=precision.name,
        flops=2 * side**3 / _best(lambda: torch.mm(matrix, matrix), device),
        published=peak_flops(device, precision.name) if gpu else None,
        bandwidths=tuple((float(size), _bandwidth(size, device)) for size in sizes),
        call=_best(lambda: one.add_(1), device, many=200),
    )


def _bandwidth(size: int, device: torch.device) -> float:
    """Bytes a second of an addition that reads and writes `size` bytes in all."""
    count = max(1, size // 8)
    source, target = torch.ones(count, device=device), torch.ones(count, device=device)
    many = max(1, min(100, 2**22 // size))
    empty = _best(lambda: torch.add(source[:1], 1, out=target[:1]), device, many=many)
    whole = _best(lambda: torch.add(source, 1, out=target), device, many=many)
    return 8 * count / max(whole - empty, 0.4 * whole)


def _best(function: Callable[[], object], device: torch.device, *, many: int = 1) -> float:
    """Seconds of one call, the best of several rounds of `many` calls."""
    wait = torch.cuda.synchronize if device.type == "cuda" else _nothing
    function()
    wait()
    best, until = float("inf"), time.perf_counter() + _SECONDS
    while True:
        began = time.perf_counter()
        for _ in range(many):
            function()
        wait()
        ended = time.perf_counter()
        best = min(best, (ended - began) / many)
        if ended > until:
            return best


def _nothing() -> None:
    pass
