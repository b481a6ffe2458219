"""Random states, and kernels that give the same result every time."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.utils.deterministic
from torch import Tensor


def seed_everything(seed: int) -> None:
    """Seed Python's and torch's generators (on every device)."""
    random.seed(seed)
    torch.manual_seed(seed)


def random_states(device: torch.device) -> dict[str, Tensor]:
    """Return this process's random states, uint8 by name."""
    states = {"torch": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def set_random_states(states: dict[str, Tensor], device: torch.device) -> None:
    """Set what `random_states` returned."""
    torch.set_rng_state(states["torch"])
    if "cuda" in states and device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"], device)


_FILL = "fill_uninitialized_memory"


def _fill(wanted: bool) -> None:
    setattr(torch.utils.deterministic, _FILL, wanted)


@contextmanager
def reproducible_kernels(wanted: bool, device: torch.device) -> Iterator[None]:
    """Choose kernels whose result depends on nothing but their inputs, where there is a choice.

    An operator that has none such raises, and says which it is.
    """
    filled = bool(getattr(torch.utils.deterministic, _FILL))
    before = torch.are_deterministic_algorithms_enabled()
    try:
        if wanted:
            if device.type == "cuda":
                os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS asks for it
            torch.use_deterministic_algorithms(True)
            _fill(False)  # it costs time, and only shows programs that read what they never wrote
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        _fill(filled)
