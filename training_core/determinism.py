"""Random states, and kernels that give the same result every time."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.utils.deterministic
from torch import Tensor

from training_core.errors import ConfigurationError
from training_core.settings import TrainingSettings


def seed_everything(seed: int) -> None:
    """Seed Python's, numpy's and torch's generators (on every device)."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def random_states(device: torch.device) -> dict[str, Tensor]:
    """Return this process's random states: tensors by name."""
    _, python, spare = random.getstate()
    numpy: Any = np.random.get_state(legacy=False)
    inner = numpy["state"]
    states = {
        "torch": torch.get_rng_state(),
        "python": torch.tensor(python),
        "numpy": torch.tensor([*inner["key"].tolist(), inner["pos"], numpy["has_gauss"]]),
        # a normal number that was drawn and not yet handed out
        "spares": torch.tensor(
            [float("nan") if spare is None else spare, numpy["gauss"]], dtype=torch.float64
        ),
    }
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def set_random_states(states: dict[str, Tensor], device: torch.device) -> None:
    """Set what `random_states` returned."""
    spare, gauss = states["spares"].tolist()
    random.setstate((3, tuple(states["python"].tolist()), None if math.isnan(spare) else spare))
    *key, position, has_gauss = states["numpy"].tolist()
    np.random.set_state(("MT19937", np.array(key, np.uint32), position, has_gauss, gauss))
    torch.set_rng_state(states["torch"])
    if "cuda" in states and device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"], device)


_FILL = "fill_uninitialized_memory"


def _fill(wanted: bool) -> None:
    setattr(torch.utils.deterministic, _FILL, wanted)


@contextmanager
def reproducible_kernels(settings: TrainingSettings, device: torch.device) -> Iterator[None]:
    """Choose kernels whose result depends on nothing but their inputs, where there is a choice.

    The number of threads is one of them, where the settings fix it.

    Raises:
        ConfigurationError: An operator has none such.
    """
    filled = bool(getattr(torch.utils.deterministic, _FILL))
    before, threads = torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()
    try:
        if settings.fixed_threads:
            torch.set_num_threads(settings.fixed_threads)
        if settings.deterministic != "off":
            if device.type == "cuda":
                os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS asks for it
            torch.use_deterministic_algorithms(True)
            _fill(False)  # it costs time, and only shows programs that read what they never wrote
        yield
    except RuntimeError as error:
        if "deterministic" not in str(error):
            raise
        raise ConfigurationError(
            f"training.deterministic cannot be kept here: {str(error).splitlines()[0]}",
            hint="set training.deterministic to off, or replace that operator in the model",
        ) from error
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(before)
        _fill(filled)
