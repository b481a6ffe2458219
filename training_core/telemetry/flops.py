"""FLOPs of a model, peak FLOP/s of a device, and the share of the peak that training reaches."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import nn

from training_core.evaluation import Objective
from training_core.examples import Examples

# Published peaks of dense matrix products, TFLOP/s: NVIDIA's data sheets of each product (A100
# 2021, H100 and H200 2024, L4, L40S and T4 2023, V100 2020, HGX B200 2025). Where a sheet gives
# the figure "with sparsity", half of it. bf16 stands for fp16 as well; fp32 is without tensor
# cores. The first name that the device's name contains counts.
_PEAKS: tuple[tuple[str, dict[str, float]], ...] = (
    ("B200", {"fp32": 75, "tf32": 1_125, "bf16": 2_250}),
    ("H200 NVL", {"fp32": 60, "tf32": 417.5, "bf16": 835.5}),
    ("H200", {"fp32": 67, "tf32": 494.5, "bf16": 989.5}),
    ("H100 PCIe", {"fp32": 51, "tf32": 378, "bf16": 756}),
    ("H100 NVL", {"fp32": 60, "tf32": 417.5, "bf16": 835.5}),
    ("H100", {"fp32": 67, "tf32": 494.5, "bf16": 989.5}),
    ("A100", {"fp32": 19.5, "tf32": 156, "bf16": 312}),
    ("L40S", {"fp32": 91.6, "tf32": 183, "bf16": 362}),
    ("L4", {"fp32": 30.3, "tf32": 60, "bf16": 121}),
    ("V100-PCIE", {"fp32": 14, "fp16": 112}),
    ("V100", {"fp32": 15.7, "fp16": 125}),
    ("T4", {"fp32": 8.1, "fp16": 65}),
)
_SECONDS = 0.02  # of measuring a CPU


def flops_per_example(model: nn.Module, task: Objective, examples: Examples) -> float | None:
    """Count forward and backward of one example: matrix products, convolutions and attention.

    Nothing is computed: the model runs on fake tensors, which have shapes and no data, so weights,
    gradients, buffers and random states stay as they are, and no memory is taken. Count before the
    model is wrapped: what is recomputed to save memory is no work of the model's.

    Returns:
        FLOPs (a multiplication and an addition are two); None where they cannot be counted: the
        model looks into its data, or has nothing of that kind.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.func import functional_call
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    try:
        with FakeTensorMode(allow_non_fake_inputs=True) as fake:
            state: dict[str, Any] = {
                name: fake.from_tensor(value.detach()).requires_grad_(value.requires_grad)
                for name, value in (*model.named_parameters(), *model.named_buffers())
            }
            there = next(model.parameters()).device
            arrays = {
                name: fake.from_tensor(array).to(there) for name, array in examples.arrays.items()
            }
            target = fake.from_tensor(examples.target).to(there)
            # attention as two matrix products: fused kernels are not all known to the counter,
            # and what they compute a second time in backward is no work of the model's either
            with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
                outputs = functional_call(model, state, kwargs=arrays)
                task.loss(outputs.float(), target).sum().backward()  # type: ignore[no-untyped-call]
        return counter.get_total_flops() / len(examples) or None
    except Exception:  # noqa: BLE001 (a figure for people: whatever a user's model does, go on)
        return None


def peak_flops(device: torch.device, precision: str) -> float | None:
    """Return the FLOP/s that one device can reach in fp32, tf32, bf16 or fp16; None if not known.

    A GPU's is published. A CPU's is measured in under 50 ms, with this process's threads: the best
    of several matrix products.
    """
    if device.type == "cuda":
        return published_peak(torch.cuda.get_device_name(device), precision)
    if device.type == "cpu":
        return _measured_peak(precision)
    return None


def published_peak(name: str, precision: str) -> float | None:
    """Return the peak FLOP/s of a GPU by its name, as `torch.cuda.get_device_name` gives it."""
    found = next((peaks for known, peaks in _PEAKS if known.lower() in name.lower()), {})
    peak = found.get(precision, found.get("bf16") if precision == "fp16" else None)
    return None if peak is None else peak * 1e12


def utilisation(
    *,
    flops: float | None,
    samples_per_second: float,
    peak: float | None,
    world_size: int,
) -> float | None:
    """Return the model FLOPs utilisation (PaLM, arXiv:2204.02311, appendix B), from 0 to 1.

    Args:
        flops: Of forward and backward of one example.
        samples_per_second: Over all ranks.
        peak: FLOP/s of one device.
        world_size: Number of devices.
    """
    if flops is None or peak is None:
        return None
    return flops * samples_per_second / (peak * world_size)


def _measured_peak(precision: str) -> float:
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision, torch.float32)
    size = 512 if dtype == torch.float32 else 256  # a CPU without 16-bit units takes 25 ms for it
    matrix = torch.ones(size, size, dtype=dtype)  # ones: no random number is drawn
    best, until = float("inf"), time.perf_counter() + _SECONDS
    while True:
        began = time.perf_counter()
        torch.mm(matrix, matrix)
        ended = time.perf_counter()
        best = min(best, ended - began)
        if ended > until:
            return 2 * size**3 / best
