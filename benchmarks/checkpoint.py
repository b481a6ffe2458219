"""What a checkpoint of 504 MB costs a training, beside torch.save and DCP: `make bench-checkpoint`.

42 million fp32 weights in 100 matrices with their AdamW moments, trained by one thread. A round
takes the same few steps with each method, in turn: a checkpoint is begun before the first, and the
clock stops when the steps are done and the checkpoint is written. Blocked is the time inside the
method's calls; lost is all time beyond that of the same steps without a checkpoint (the mean of two
such runs, just before and just after). Ours alone flushes to disk, reads back and
compares before it counts as written; `torch.save, verified` does the same while training waits.

Figures: blocked_ratio (torch.save / ours), lost_ratio (ours / the median of torch.save).
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

LAYERS, WIDTH, BATCH = 100, 648, 64
STEPS = 10  # long enough, some two seconds, for a checkpoint to be written meanwhile


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


def measure(method: Method) -> tuple[float, float]:
    """Return the seconds that one checkpoint blocks, and those of it and the steps together."""
    began = time.perf_counter()
    method.save()
    blocked = time.perf_counter() - began
    for _ in range(STEPS):
        waited = 0.0

        def before_update() -> None:
            nonlocal waited
            start = time.perf_counter()
            method.before_update()
            waited = time.perf_counter() - start

        method.training.step(before_update)
        blocked += waited
    method.wait()
    return blocked, time.perf_counter() - began


def one_round(methods: list[Method], none: Method) -> dict[str, tuple[float, float]]:
    """Return each method's seconds blocked and lost."""
    undisturbed = [measure(none)[1]]
    found = {}
    for method in methods:
        blocked, total = measure(method)
        undisturbed.append(measure(none)[1])
        found[method.name] = blocked, total - sum(undisturbed[-2:]) / 2
    words = " ".join(f"{seconds:.2f}" for seconds in undisturbed)
    print(f"seconds of {STEPS} steps without a checkpoint: {words}", file=sys.stderr)
    return found


def main() -> None:
    """Run the rounds and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=7, help="rounds")
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
    rows = []
    for method in METHODS:
        blocked, lost = zip(*(each[method.name] for each in rounds), strict=True)
        rows.append([method.name, *map(_words, (blocked, lost))])
    print(table(["checkpoint of 504 MB", "seconds blocked", "seconds lost in all"], rows))
    plain, ours = TorchSave.name, Ours.name
    # a round's own loss to torch.save may be near nothing where something else ran beside it
    plain_lost = statistics.median(each[plain][1] for each in rounds)
    figures = {
        "blocked_ratio": [each[plain][0] / each[ours][0] for each in rounds],
        "lost_ratio": [each[ours][1] / plain_lost for each in rounds],
    }
    print(last_line("checkpoint", figures))


def _words(values: tuple[float, ...]) -> str:
    return f"{statistics.median(values):.4f} ({min(values):.4f} to {max(values):.4f})"


if __name__ == "__main__":
    main()
