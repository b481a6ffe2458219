"""Two processes of one thread each, on a small GPT: `make bench-distributed`.

Ours, a hand-written DistributedDataParallel loop, accelerate and Lightning train the same model on
the same samples, without accumulation and with eight microbatches a step; in each round every
contestant runs once, in random order, in the same two processes. Only what they do in every step is
timed, logging every ten steps included: evaluation and checkpoints are off for all (`loop.py`
measures those). Timed from one forward to another; the slower rank counts. The final weights of all
must be those of the hand-written loop. A hand-written loop in one process on the same microbatches
says how much the second process brings.

FSDP2: bytes of weights and optimiser state that our trainer holds on a rank of two, beside those of
one process.

Figures: ddp_vs_raw, ddp_vs_best_peer (samples/s, ours / theirs, the worse of the two
accumulations), fsdp_state_ratio.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist

from benchmarks.contestants import contestants
from benchmarks.equality import difference_of
from benchmarks.networks import Network
from benchmarks.peers.run import Contestant, Run
from benchmarks.reporting import ROOT, last_line, table, words_of
from benchmarks.state_bytes import fsdp_state_ratio
from benchmarks.workloads import Workload, gpt

NAMES = ["raw DDP", "ours", "accelerate", "Lightning"]
PEERS = ["accelerate", "Lightning"]
ALONE = "one process"
STEPS = {1: (30, 6), 8: (6, 2)}  # accumulation: timed steps and those before them


def measure(
    contestant: Contestant, workload: Workload, *, accumulation: int, alone: bool = False
) -> tuple[float, Network]:
    """Train once; return samples a second on this rank's clock, and the model."""
    gc.collect()
    model = workload.build()
    # the last step is not timed: it is there for the forward that ends the one before
    model.clock.first = workload.warmup * accumulation
    model.clock.last = (workload.total_steps - 1) * accumulation
    with tempfile.TemporaryDirectory() as folder:
        run = Run(
            workload=workload,
            model=model,
            folder=Path(folder),
            rank=0 if alone else dist.get_rank(),
            world_size=1 if alone else dist.get_world_size(),
            accumulation=accumulation,
            features=False,
            log_every=10,
        )
        contestant(run)
    assert model.clock.calls == run.steps * accumulation, "another number of microbatches"
    seconds = model.clock.ended[0] - model.clock.began[0]
    return (workload.steps - 1) * run.step_size / seconds, model


def one_round(
    everyone: dict[str, Contestant],
    workload: Workload,
    *,
    accumulation: int,
    chance: random.Random,
) -> tuple[dict[str, float], dict[str, str]]:
    """Return each contestant's samples a second, and how far it is from the hand-written loop."""
    names = chance.sample([*everyone, ALONE], len(everyone) + 1)
    speeds: dict[str, float] = {}
    models: dict[str, Network] = {}
    for name in names:
        dist.barrier()
        if name == ALONE:  # rank 1 waits at the next barrier meanwhile
            speed = (
                measure(everyone["raw DDP"], workload, accumulation=accumulation, alone=True)[0]
                if dist.get_rank() == 0
                else float("inf")
            )
        else:
            speed, models[name] = measure(everyone[name], workload, accumulation=accumulation)
        slowest = torch.tensor(speed, dtype=torch.float64)
        dist.all_reduce(slowest, dist.ReduceOp.MIN)
        speeds[name] = slowest.item()
    raw = models["raw DDP"]
    return speeds, {n: difference_of(n, workload, m, raw) for n, m in models.items()}


def ratios(rounds: Sequence[dict[str, float]], one: str, other: str) -> list[float]:
    """Return one contestant's speed / another's, a round each."""
    return [speeds[one] / speeds[other] for speeds in rounds]


def figures_of(rounds: dict[int, list[dict[str, float]]]) -> dict[str, list[float]]:
    """Return the figures: of the two accumulations, the one in which ours does worse."""
    peers = [name for name in PEERS if name in rounds[1][0]]
    raw, best = [], []
    for speeds in rounds.values():
        raw.append(ratios(speeds, "ours", "raw DDP"))
        if peers:
            leader = max(peers, key=lambda name: statistics.median(r[name] for r in speeds))
            best.append(ratios(speeds, "ours", leader))
    figures = {"ddp_vs_raw": min(raw, key=statistics.median)}
    return figures | ({"ddp_vs_best_peer": min(best, key=statistics.median)} if best else {})


def work(arguments: argparse.Namespace) -> None:
    """Be one of the two ranks."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    everyone = contestants(NAMES, without_peers=arguments.without_peers)
    gc.freeze()
    chance = random.Random(0)
    rounds: dict[int, list[dict[str, float]]] = {}
    rows = []
    for accumulation, (steps, warmup) in STEPS.items():
        steps, warmup = (2, 1) if arguments.short else (steps, warmup)
        workload = replace(gpt(), steps=steps + 1, warmup=warmup)
        done = []
        for number in range(arguments.count):
            speeds, differences = one_round(
                everyone, workload, accumulation=accumulation, chance=chance
            )
            done.append(speeds)
            if dist.get_rank() == 0:
                words = ", ".join(f"{name} {speed:.0f}" for name, speed in speeds.items())
                which = f"accumulation {accumulation}, {number + 1}/{arguments.count}"
                print(f"{which}, samples/s: {words}", file=sys.stderr)
        rounds[accumulation] = done
        rows += [
            [str(accumulation), n, words_of(ratios(done, n, ALONE)),
             words_of(ratios(done, n, "raw DDP")), differences[n]]
            for n in everyone
        ]  # fmt: skip
    state = fsdp_state_ratio(gpt())
    if dist.get_rank() == 0:
        head = ["accumulation", "contestant", f"/ {ALONE}", "/ raw DDP", "difference"]
        print(table(head, rows))
        print(last_line("distributed", figures_of(rounds) | {"fsdp_state_ratio": [state]}))
    dist.destroy_process_group()


def launch() -> int:
    """Start this script on two ranks."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--local-addr=127.0.0.1", "--nproc-per-node=2", "-m", "benchmarks.distributed"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run([*command, *sys.argv[1:]], cwd=ROOT, env=environment).returncode


def main() -> None:
    """Measure on two ranks and print the table and the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=7, help="rounds")
    parser.add_argument("--without-peers", action="store_true", help="leave out what is missing")
    parser.add_argument("--short", action="store_true", help="few steps: to try, not to measure")
    arguments = parser.parse_args()
    if "LOCAL_RANK" in os.environ:
        work(arguments)
    else:
        raise SystemExit(launch())


if __name__ == "__main__":
    main()
