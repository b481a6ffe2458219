"""What a checkpoint of 504 MB costs a training, beside torch.save and DCP: `make bench-checkpoint`.

42 million fp32 weights in 100 matrices with their AdamW moments, trained by one thread. A round
takes the same few steps with each method, in turn: a checkpoint is begun before the first, and the
clock stops when the steps are done and the checkpoint is written. Blocked is the time inside the
method's calls; lost is all time beyond that of the same steps without a checkpoint (the mean of two
such runs, just before and just after). Ours alone flushes to disk, reads back and
compares before it counts as written; `torch.save, verified` does the same while training waits.

What ours loses is less than what a neighbour takes from three seconds now and then. So time is
compared part by part (the call, each step, the wait at the end): the median over the rounds of each
part's excess, and these added up. The range is that of 90% of bootstrap samples of the rounds.

Figures: blocked_ratio (torch.save / ours), lost_ratio (ours / torch.save).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict

from benchmarks.reporting import last_line, table
from infra.folder import FolderStore
from training_core.checkpoints.catalogue import Checkpoints
from training_core.checkpoints.saver import Saver
from training_core.checkpoints.settings import CheckpointSettings
from training_core.parallel.single import SingleProcess

Seconds = npt.NDArray[Any]

LAYERS, WIDTH, BATCH = 100, 648, 64
STEPS = 10  # long enough, some two seconds, for a checkpoint to be written meanwhile

SAMPLES = 400  # of the rounds, for the range of what is lost


class Training:
    """The training that is disturbed."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        layers = [nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)]
        self.model = nn.Sequential(*layers)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-5, fused=True)
        self.inputs = torch.randn(BATCH, WIDTH)

    def step(self, before_update: Callable[[], None]) -> None:
        """One step; `before_update` is called when weights are about to change."""
        self.model(self.inputs).square().mean().backward()
        before_update()
        self.optimiser.step()
        self.optimiser.zero_grad()


class Method:
    """A way to make checkpoints; this one makes none."""

    name = "none"

    def __init__(self, training: Training, folder: Path) -> None:
        self.training, self.folder = training, folder

    def save(self) -> None:
        """Make a checkpoint, or begin it."""

    def before_update(self) -> None:
        """Weights are about to change."""

    def wait(self) -> None:
        """Wait until the checkpoint is written."""


class TorchSave(Method):
    name = "torch.save"

    def save(self) -> None:
        state = {
            "model": self.training.model.state_dict(),
            "optimiser": self.training.optimiser.state_dict(),
        }
        torch.save(state, self.folder / "state.pt")


class TorchSaveVerified(TorchSave):
    name = "torch.save, verified"

    def save(self) -> None:
        super().save()
        with (self.folder / "state.pt").open("rb") as file:
            os.fsync(file)
            hashlib.file_digest(file, "sha256")


class DistributedSave(Method):
    name = "DCP save"

    def state(self) -> dict[str, Any]:
        model, optimiser = get_state_dict(self.training.model, self.training.optimiser)
        return {"model": model, "optimiser": optimiser}

    def save(self) -> None:
        dcp.save(self.state(), checkpoint_id=self.folder / "dcp")


class DistributedAsyncSave(DistributedSave):
    name = "DCP async_save"
    written: Future[Any]

    def save(self) -> None:
        self.written = dcp.async_save(self.state(), checkpoint_id=self.folder / "dcp")

    def wait(self) -> None:
        self.written.result()


class Ours(Method):
    name = "ours"

    def __init__(self, training: Training, folder: Path) -> None:
        super().__init__(training, folder)
        self.steps = 0
        self.saver = Saver(
            Checkpoints(FolderStore(folder), "run"),
            model=training.model,
            optimisers=[training.optimiser],
            strategy=SingleProcess(torch.device("cpu")),
            settings=CheckpointSettings(keep_last=1, keep_best=0),
        )
        self.before_update = self.saver.weights_may_change
        self.wait = self.saver.finish

    def save(self) -> None:
        self.steps += 1
        self.saver.begin(
            step=self.steps, samples=0, metrics={}, progress={}, extra={},
            own={"torch": torch.get_rng_state()},
        )  # fmt: skip


METHODS = (TorchSave, TorchSaveVerified, DistributedSave, DistributedAsyncSave, Ours)


def measure(method: Method) -> tuple[float, Seconds]:
    """Return the seconds that one checkpoint blocks; and those of the call, each step, the wait."""
    instants = [time.perf_counter()]
    method.save()
    instants.append(time.perf_counter())
    blocked = instants[1] - instants[0]
    for _ in range(STEPS):
        waited = 0.0

        def before_update() -> None:
            nonlocal waited
            start = time.perf_counter()
            method.before_update()
            waited = time.perf_counter() - start

        method.training.step(before_update)
        instants.append(time.perf_counter())
        blocked += waited
    method.wait()
    instants.append(time.perf_counter())
    return blocked, np.diff(instants)


def one_round(methods: list[Method], none: Method) -> dict[str, tuple[float, Seconds]]:
    """Return each method's seconds blocked, and those beyond the ones without a checkpoint."""
    undisturbed = [measure(none)[1]]
    found = {}
    for method in methods:
        blocked, parts = measure(method)
        undisturbed.append(measure(none)[1])
        found[method.name] = blocked, parts - sum(undisturbed[-2:]) / 2
    words = " ".join(f"{parts.sum():.2f}" for parts in undisturbed)
    print(f"seconds of {STEPS} steps without a checkpoint: {words}", file=sys.stderr)
    return found


def lost(excess: Seconds, rounds: Seconds) -> float:
    """Add up the median excess of each part, [rounds, parts], over some of the rounds."""
    return float(np.median(excess[rounds], axis=0).sum())


def main() -> None:
    """Run the rounds and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=9, help="rounds")
    count = parser.parse_args().count
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "Detected an existing checkpoint")  # it is to be replaced
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # for DCP
    folder = Path(tempfile.mkdtemp(prefix="checkpoint-"))
    try:
        training = Training()
        training.step(lambda: None)
        methods = [kind(training, folder) for kind in METHODS]
        for method in methods:  # first time: memory is allocated, modules are imported
            method.save()
            method.before_update()
            method.wait()
        rounds = [one_round(methods, Method(training, folder)) for _ in range(count)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        dist.destroy_process_group()
    blocked = {m.name: [each[m.name][0] for each in rounds] for m in METHODS}
    excess = {m.name: np.stack([each[m.name][1] for each in rounds]) for m in METHODS}
    # one round counts as it is; of several, 90% of the samples
    samples = np.random.default_rng(0).integers(0, count, size=(SAMPLES if count > 1 else 1, count))
    seconds = {name: [lost(each, sample) for sample in samples] for name, each in excess.items()}
    rows = [[m.name, _words(blocked[m.name]), _words(_middle(seconds[m.name]))] for m in METHODS]
    print(table(["checkpoint of 504 MB", "seconds blocked", "seconds lost in all"], rows))
    plain, ours = TorchSave.name, Ours.name
    ratios = [a / b for a, b in zip(seconds[ours], seconds[plain], strict=True)]
    figures = {
        "blocked_ratio": [a / b for a, b in zip(blocked[plain], blocked[ours], strict=True)],
        "lost_ratio": _middle(ratios),
    }
    print(last_line("checkpoint", figures))


def _middle(values: list[float]) -> list[float]:
    """Return the middle 90% of values, in order."""
    cut = len(values) // 20
    return sorted(values)[cut : len(values) - cut]


def _words(values: list[float]) -> str:
    return f"{statistics.median(values):.4f} ({min(values):.4f} to {max(values):.4f})"


if __name__ == "__main__":
    main()
