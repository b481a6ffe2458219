"""What training says of itself: times of a step, memory, updates; points as plain data."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from ranks import start_ranks
from torch import Tensor, nn
from training_samples import trainer

from infra.folder import FolderStore
from training_core.checkpoints.catalogue import Checkpoints
from training_core.outcome import Point
from training_core.telemetry.meter import Meter

CPU = torch.device("cpu")
TIMES = ["data", "forward", "backward", "optimiser", "communication"]


def test_a_point_is_plain_data_and_comes_back_from_it() -> None:
    full = Point(
        20, 0.5, 1e-3, 1.25, 4e4, 5120, 0.01, 2, 0.1, 0.2, 0.3, 0.05, 0.02, 0.4, 10**9, 0.3
    )
    for point in (full, Point(step=1, loss=0.7, lr=0.1, gradient_norm=2.0, samples_per_second=9.0)):
        assert Point(**json.loads(json.dumps(asdict(point)))) == point


# ---- the meter -----------------------------------------------------------------------------------


def test_the_phases_of_the_measured_step_fill_it() -> None:
    meter = Meter(CPU)
    began = time.perf_counter()
    meter.begin()
    for phase in ("data", "forward", "backward", "forward", "backward", "optimiser"):
        time.sleep(0.004 if phase == "forward" else 0.002)
        meter.mark(phase)  # type: ignore[arg-type]
    meter.end()
    whole = time.perf_counter() - began
    read = meter.read()
    assert list(read) == [f"seconds_{name}" for name in TIMES] + ["checkpoint_stall"]
    times = [read[f"seconds_{name}"] for name in TIMES]
    assert all(seconds is not None for seconds in times)
    assert 6 * 0.002 + 2 * 0.002 <= sum(t or 0.0 for t in times) <= whole
    assert (read["seconds_forward"] or 0) >= 0.008
    assert (read["seconds_data"] or 0) >= 0.002
    assert read["seconds_communication"] == 0


def test_an_interval_without_a_whole_measured_step_has_no_times() -> None:
    meter = Meter(CPU)
    meter.stalled(0.5)
    meter.stalled(0.25)
    nothing = {f"seconds_{name}": None for name in TIMES}
    assert meter.read() == {**nothing, "checkpoint_stall": 0.75}
    meter.begin()
    meter.mark("data")
    assert meter.measuring
    assert meter.read() == {**nothing, "checkpoint_stall": 0.0}
    meter.end()
    assert not meter.measuring
    assert meter.read()["seconds_data"] is not None
    assert meter.read()["seconds_data"] is None


class _SlowStore(FolderStore):
    def put(self, key: str, data: bytes | memoryview) -> None:
        time.sleep(0.1)
        super().put(key, data)


def test_the_curve_says_how_long_checkpoints_kept_training_waiting(tmp_path: Path) -> None:
    place = Checkpoints(_SlowStore(tmp_path), "run")
    run = trainer(place=place, checkpoints={"asynchronous": False}, evaluate_every=3)
    waited = [point.checkpoint_stall for point in run.fit().curve]
    assert sum(waited) >= 0.1 * (run.outcome.steps // 3)
    assert trainer().fit().curve[0].checkpoint_stall == 0


def test_the_speed_counts_what_was_done_since_the_clock_was_started() -> None:
    run = trainer(log_every=3)
    run.recorder.restart(samples=16)
    run.interval.samples = 24
    time.sleep(0.01)
    point = run.recorder.point(
        outcome=run.outcome, loss=0.0, lr=0.0, interval=run.interval, update=run.update
    )
    assert 0 < point.samples_per_second < 8 / 0.01


def test_hooks_of_a_measured_step_are_gone_after_it() -> None:
    layer = nn.Linear(3, 1)
    meter = Meter(CPU, watched=layer.parameters())
    meter.begin()
    layer(torch.ones(2, 3)).sum().backward()
    meter.mark("backward")
    meter.end()
    assert not layer.weight._post_accumulate_grad_hooks  # type: ignore[attr-defined]
    assert (meter.read()["seconds_communication"] or 0) > 0


class _WaitingGradient(torch.autograd.Function):
    """Passes on; the gradient waits for a file, and then a while."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, awaited: Path) -> Tensor:
        ctx.awaited = awaited
        return inputs.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        while not ctx.awaited.exists():
            time.sleep(0.001)
        time.sleep(0.2)
        return gradients[0], None


def _late_gradients(place: Path) -> None:
    """Rank 1 computes its gradients 0.2 s after those of rank 0 are ready to be exchanged."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 1))
    ready = place / "ready"

    def tell(_: Tensor) -> None:
        if rank == 0 and meter.measuring and model.require_backward_grad_sync:
            ready.touch()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(tell)
    meter = Meter(CPU, watched=model.parameters())
    for step in range(2):
        if step == 1:
            meter.begin()
        for last in (False, True):
            with nullcontext() if last else model.no_sync():
                outputs = model(torch.ones(4, 8))
                if rank == 1 and step == 1 and last:
                    outputs = _WaitingGradient.apply(outputs, ready)
                if meter.measuring:
                    meter.mark("forward")
                outputs.sum().backward()
                if meter.measuring:
                    meter.mark("backward")
    meter.end()
    (place / f"{rank}.json").write_text(json.dumps(meter.read()))
    dist.destroy_process_group()


def test_waiting_for_another_ranks_gradients_is_communication(tmp_path: Path) -> None:
    start_ranks(2, _late_gradients, tmp_path)
    early, late = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert early["seconds_communication"] > 0.1
    assert late["seconds_backward"] >= 0.2


# ---- memory --------------------------------------------------------------------------------------


GROW = """
import sys, torch
from training_core.telemetry.memory import peak_bytes
before = peak_bytes(torch.device("cpu"))
grown = torch.ones(int(sys.argv[1]), dtype=torch.uint8)
after = peak_bytes(torch.device("cpu"))
del grown
print(before, after, peak_bytes(torch.device("cpu")))
"""


def test_peak_memory_is_this_processes_own_and_never_falls() -> None:
    size = 300_000_000
    held = torch.ones(4 * size, dtype=torch.uint8)  # a child would inherit this peak
    ended = subprocess.run(
        [sys.executable, "-c", GROW, str(size)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    before, after, freed = map(int, ended.stdout.split())
    assert len(held) > 3 * before
    assert size < after < before + 1.2 * size
    assert freed == pytest.approx(after, rel=0.01)  # the kernel counts in batches
