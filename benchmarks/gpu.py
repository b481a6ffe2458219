"""A GPT-2 of 124 million weights on one GPU, beside a hand-written loop: `make bench-gpu`.

By hand, on a machine with a GPU: it is no part of `make bench`. Ours and a hand-written loop
(compiled, autocast, fused AdamW, pinned batches) train the same model on the same batches, in turn;
tokens a second between two forwards. Also: what activation checkpointing saves and costs.

Model FLOPs utilisation is (6 · weights + 12 · layers · width · length) FLOPs a token (PaLM,
arXiv:2204.02311, appendix B) / the GPU's peak for dense 16-bit matrices.

Figures: bf16_vs_plain, fp16_vs_plain, fp32_vs_plain (tokens/s, ours / plain),
tokens_per_second, mfu (ours, bf16), recompute_memory_ratio, recompute_time_ratio (with activation
checkpointing / without).
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from benchmarks.networks import GPT
from benchmarks.peers.gpu_loops import train_ours, train_plain
from benchmarks.peers.run import Run
from benchmarks.reporting import last_line, table, words_of
from benchmarks.workloads import Workload, language_model

LAYERS, WIDTH, LENGTH, VOCABULARY = 12, 768, 1024, 50_304
# TFLOP/s for dense 16-bit matrices, from the makers' data sheets
PEAKS = {"H200": 989, "H100": 989, "A100": 312, "L40S": 362, "L4": 121, "V100": 125, "T4": 65}
LOSS = 0.05  # what the last logged losses may differ by: 16-bit rounding


@dataclass(frozen=True)
class Measured:
    """One training: tokens a second, peak bytes on the GPU, last logged loss."""

    speed: float
    memory: int
    loss: float


def gpt2(batch_size: int) -> Workload:
    """Return the workload."""
    network = partial(
        GPT,
        vocabulary=VOCABULARY,
        length=LENGTH,
        width=WIDTH,
        heads=WIDTH // 64,
        layers=LAYERS,
        tied=True,
    )
    workload = language_model(
        "gpt2", network, count=32 * batch_size, length=LENGTH, batch_size=batch_size
    )
    return replace(workload, lr=3e-4, steps=41, warmup=20)


def trial() -> Workload:
    """Return a tiny one, to see on a CPU that the script runs."""
    workload = language_model("trial", partial(GPT, tied=True), count=64, length=64, batch_size=8)
    return replace(workload, steps=11, warmup=2)


def measure(
    who: str, workload: Workload, *, device: str, precision: str, recompute: bool = False
) -> Measured:
    """Train once."""
    gc.collect()
    on_gpu = device == "cuda"
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    model = workload.build()
    model.clock.first, model.clock.last = workload.warmup, workload.total_steps - 1
    with tempfile.TemporaryDirectory() as folder:
        run = Run(workload=workload, model=model, folder=Path(folder), features=False, log_every=10)
        if who == "ours":
            losses = train_ours(run, device=device, precision=precision, recompute=recompute)
        else:
            losses = train_plain(run, device=device, precision=precision)
    seconds = model.clock.ended[0] - model.clock.began[0]
    tokens = (workload.steps - 1) * workload.batch_size * workload.inputs.shape[1]
    memory = torch.cuda.max_memory_allocated() if on_gpu else 0
    return Measured(tokens / seconds, memory, losses[-1])


def compared(
    workload: Workload, *, device: str, precision: str, count: int, chance: random.Random
) -> tuple[list[Measured], list[Measured]]:
    """Return the trainings of ours and of the hand-written loop, in rounds."""
    rounds = []
    for _ in range(count):
        order = chance.sample(["ours", "plain"], 2)
        done = {w: measure(w, workload, device=device, precision=precision) for w in order}
        if not abs(done["ours"].loss - done["plain"].loss) <= LOSS:
            raise SystemExit(
                f"error: in {precision} ours ended at loss {done['ours'].loss}, "
                f"the hand-written loop at {done['plain'].loss}"
            )
        rounds.append(done)
    return [done["ours"] for done in rounds], [done["plain"] for done in rounds]


def flops_a_token(workload: Workload) -> float:
    """Return the FLOPs of forward and backward, attention included."""
    model = workload.build()
    weights = (
        sum(p.numel() for p in model.parameters()) - model.get_parameter("positions.weight").numel()
    )
    return 6.0 * weights + 12.0 * LAYERS * WIDTH * LENGTH


def peak_flops(asked: float | None) -> float | None:
    """Return the GPU's peak in FLOP/s, if it is known."""
    if asked is not None:
        return asked * 1e12
    name = torch.cuda.get_device_name()
    return next((tera * 1e12 for known, tera in PEAKS.items() if known in name), None)


def ratios(over: Sequence[float], under: Sequence[float]) -> list[float]:
    """Divide round by round."""
    return [a / b for a, b in zip(over, under, strict=True)]


def measured_figures(
    workload: Workload, *, device: str, precisions: Sequence[str], count: int, peak: float | None
) -> dict[str, list[float]]:
    """Return all figures, one value a round, and print the table."""
    chance = random.Random(0)
    figures: dict[str, list[float]] = {}
    rows = []
    ours: dict[str, list[float]] = {}
    for precision in precisions:
        mine, plain = compared(
            workload, device=device, precision=precision, count=count, chance=chance
        )
        ours[precision] = [m.speed for m in mine]
        figures[f"{precision}_vs_plain"] = ratios(ours[precision], [m.speed for m in plain])
        for who, done in (("ours", mine), ("plain", plain)):
            speed = statistics.median(m.speed for m in done)
            gib = max(m.memory for m in done) / 2**30
            versus = words_of(figures[f"{precision}_vs_plain"]) if who == "ours" else "1"
            rows.append([precision, who, f"{speed:,.0f}", versus, f"{gib:.1f}"])
    first = precisions[0]
    lean = [
        measure("ours", workload, device=device, precision=first, recompute=True)
        for _ in range(count)
    ]
    full = [measure("ours", workload, device=device, precision=first) for _ in range(count)]
    speed, gib = statistics.median(m.speed for m in lean), max(m.memory for m in lean) / 2**30
    rows.append([first, "ours, recomputing", f"{speed:,.0f}", "", f"{gib:.1f}"])
    print(table(["precision", "loop", "tokens/s", "ours / plain", "peak GiB"], rows))
    figures["tokens_per_second"] = ours[first]
    if peak is not None:
        figures["mfu"] = [speed * flops_a_token(workload) / peak for speed in ours[first]]
    figures["recompute_time_ratio"] = ratios([m.speed for m in full], [m.speed for m in lean])
    if device == "cuda":
        figures["recompute_memory_ratio"] = ratios(
            [float(m.memory) for m in lean], [float(m.memory) for m in full]
        )
    return figures


def main() -> None:
    """Measure and print the table and the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=3, help="rounds")
    parser.add_argument("--batch-size", type=int, default=16, help="sequences a step")
    parser.add_argument("--peak", type=float, help="the GPU's peak in TFLOP/s, 16-bit, dense")
    parser.add_argument(
        "--trial", action="store_true", help="tiny, on the CPU: to see that it runs"
    )
    arguments = parser.parse_args()
    if arguments.trial:
        measured_figures(trial(), device="cpu", precisions=["fp32"], count=1, peak=None)
        return
    if not torch.cuda.is_available():
        print(
            "error: torch sees no GPU on this machine\n\n"
            "hint: run it on a machine with one, after `make venv` there; "
            "--trial runs a tiny model on the CPU",
            file=sys.stderr,
        )
        raise SystemExit(2)
    figures = measured_figures(
        gpt2(arguments.batch_size),
        device="cuda",
        precisions=["bf16", "fp16", "fp32"],
        count=arguments.count,
        peak=peak_flops(arguments.peak),
    )
    print(last_line("gpu", figures))


if __name__ == "__main__":
    main()
