"""Start real processes under torchrun, and read what rank 0 wrote down."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent


def run_ranks(
    count: int, scenario: str, folder: Path, *, worker: str = "ranks_worker.py"
) -> dict[str, Any]:
    """Run a scenario of a worker on `count` processes (gloo); return what it found."""
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1",
        f"--nproc-per-node={count}", str(HERE / worker), scenario, str(folder),
    ]  # fmt: skip
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    environment |= {"PYTHONPATH": f"{HERE.parents[1]}:{HERE}", "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=250, check=False
    )
    assert ended.returncode == 0, ended.stderr[-6000:]
    found: dict[str, Any] = torch.load(folder / f"{scenario}.pt", weights_only=True)
    return found
