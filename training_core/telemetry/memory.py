"""The most memory that this process has held."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import torch

_STATUS = Path("/proc/self/status")


def peak_bytes(device: torch.device) -> int:
    """Return the peak so far: of what torch allocated on the GPU, else of main memory.

    Linux hands `ru_maxrss` down to a new program, which then begins with the peak of the process
    that started it; the high-water mark in /proc is the program's own.
    """
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    if _STATUS.exists():
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
