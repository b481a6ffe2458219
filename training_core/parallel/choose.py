"""Which device and which strategy a training gets."""

from __future__ import annotations

import os

import torch

from training_core.errors import ConfigurationError
from training_core.parallel.ddp import DataParallel
from training_core.parallel.fsdp import ShardedDataParallel
from training_core.parallel.single import SingleProcess
from training_core.parallel.strategy import Strategy
from training_core.parallel.topology import CanonicalMicrobatches
from training_core.precision import choose_precision
from training_core.settings import TrainingSettings


def choose_device(name: str) -> torch.device:
    """Turn `auto`, `cpu` or `cuda` into this process's device.

    Raises:
        ConfigurationError: A GPU is asked for and there is none.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigurationError(
            "training.device is cuda, but torch sees no GPU on this machine",
            hint="set training.device to auto, or give the pod a GPU",
        )
    if name == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    index = int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(index)
    return torch.device("cuda", index)


def choose_strategy(device: torch.device, settings: TrainingSettings) -> Strategy:
    """Follow the settings and the number of processes that torchrun started.

    Raises:
        ConfigurationError: They do not fit each other.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    parallel = settings.parallel
    if parallel.strategy == "single" and processes > 1:
        raise ConfigurationError(
            f"training.parallel.strategy is single, but {processes} processes were started",
            hint="set it to auto, or training.processes to 1",
        )
    if settings.deterministic == "topology":
        group = DataParallel(device) if processes > 1 else SingleProcess(device)
        return CanonicalMicrobatches(
            group, parts=settings.canonical_microbatches, seed=settings.seed
        )
    if parallel.strategy == "fsdp":
        if processes == 1:
            raise ConfigurationError(
                "training.parallel.strategy is fsdp, which needs more than one process",
                hint="set training.processes, or training.parallel.strategy to auto",
            )
        return ShardedDataParallel(
            device,
            dtype=choose_precision(settings.precision, device).dtype,
            replicas=parallel.replicas,
            cpu_offload=parallel.cpu_offload,
        )
    if processes > 1:
        return DataParallel(device, static_graph=parallel.static_graph)
    return SingleProcess(device)
