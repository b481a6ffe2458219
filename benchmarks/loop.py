"""Our training loop beside a plain hand-written one and four trainers: `make bench-loop`.

Every contestant trains the same model from the same weights on the same batches, with AdamW,
clipping, a schedule and logging every 50 steps. Ours and the peers also evaluate and keep the three
best checkpoints at a fixed interval; the plain loop does neither. One process, one thread; in each
round every contestant runs once, in random order; a ratio is a contestant's time / the plain loop's
in the same round. A trainer may write checkpoints and gather batches on threads of its own, on
another core (ours does): the ratio of CPU time, beside it in the table, counts those too.

Timed from the first forward after the warm-up until `fit` returns: the last evaluation and
checkpoint included. The final weights of all contestants must be those of the plain loop.

Figures: mlp_ratio, cnn_ratio, gpt_ratio (ours / plain), best_peer_mlp_ratio.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.contestants import contestants
from benchmarks.equality import difference_of
from benchmarks.networks import Network
from benchmarks.peers.run import Contestant, Run, Trained
from benchmarks.reporting import last_line, table, words_of
from benchmarks.workloads import KEEP_BEST, WORKLOADS, Workload

NAMES = ["plain", "ours", "Lightning", "Fabric", "accelerate", "HF Trainer"]


@dataclass(frozen=True)
class Measured:
    """One contestant's training: seconds of the timed steps, and the model as trained."""

    wall: float
    cpu: float
    model: Network


def measure(name: str, contestant: Contestant, workload: Workload) -> Measured:
    """Let one contestant train once, and check that it did what it was asked to do."""
    gc.collect()
    model = workload.build()
    model.clock.first = workload.warmup
    with tempfile.TemporaryDirectory() as folder:
        run = Run(workload=workload, model=model, folder=Path(folder))
        trained = contestant(run)
        (wall, cpu), began = model.clock.now(), model.clock.began
    check_work(name, run, trained)
    return Measured(wall - began[0], cpu - began[1], model)


def check_work(name: str, run: Run, trained: Trained) -> None:
    """Stop if a contestant trained, logged, evaluated or kept less than it was to, or more."""
    evaluations = run.steps // run.workload.evaluate_every if name != "plain" else 0
    best = min(KEEP_BEST, evaluations)
    wanted = {
        "forwards": [run.steps],
        "evaluations": [evaluations],
        "checkpoints": [best, best + 1],  # the newest is kept where it is none of the best, too
        "logged losses": [run.steps // run.log_every, run.steps // run.log_every + 1],
    }
    found = {
        "forwards": run.model.clock.calls,
        "evaluations": len(trained.evaluations),
        "checkpoints": trained.checkpoints,
        "logged losses": len(trained.losses),
    }
    for what, count in found.items():
        if count not in wanted[what]:
            raise SystemExit(
                f"error: {name} on {run.workload.name}: {count} {what} instead of {wanted[what][0]}"
            )


def one_round(
    everyone: dict[str, Contestant], workload: Workload, chance: random.Random
) -> tuple[dict[str, Measured], dict[str, str]]:
    """Measure every contestant once; return also how far each is from the plain loop's result."""
    names = chance.sample(list(everyone), len(everyone))
    done = {name: measure(name, everyone[name], workload) for name in names}
    return done, {
        n: difference_of(n, workload, done[n].model, done["plain"].model) for n in everyone
    }


def all_rounds(
    everyone: dict[str, Contestant], workload: Workload, *, count: int, chance: random.Random
) -> tuple[dict[str, list[float]], list[list[str]]]:
    """Return each contestant's ratios of wall time, and the rows of the table."""
    wall: dict[str, list[float]] = {name: [] for name in everyone}
    cpu: dict[str, list[float]] = {name: [] for name in everyone}
    for number in range(count):
        done, equal = one_round(everyone, workload, chance)
        for name, measured in done.items():
            wall[name].append(measured.wall / done["plain"].wall)
            cpu[name].append(measured.cpu / done["plain"].cpu)
        steps = ", ".join(f"{n} {m.wall / workload.steps * 1e6:.0f}" for n, m in done.items())
        print(f"{workload.name} {number + 1}/{count}, µs a step: {steps}", file=sys.stderr)
    rows = [[workload.name, n, words_of(wall[n]), words_of(cpu[n]), equal[n]] for n in everyone]
    return wall, rows


def figures_of(workload: str, ratios: dict[str, list[float]]) -> dict[str, list[float]]:
    """Return a workload's figures, one value a round."""
    figures = {f"{workload}_ratio": ratios["ours"]} if "ours" in ratios else {}
    peers = [values for name, values in ratios.items() if name not in ("ours", "plain")]
    if workload == "mlp" and peers:
        figures["best_peer_mlp_ratio"] = min(peers, key=statistics.median)
    return figures


def main() -> None:
    """Run the rounds and print the table and the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=7, help="rounds")
    parser.add_argument("--only", choices=WORKLOADS, help="one workload")
    parser.add_argument("--contestants", help=f"comma-separated, of: {', '.join(NAMES)}")
    parser.add_argument("--without-peers", action="store_true", help="leave out what is missing")
    parser.add_argument("--short", action="store_true", help="few steps: to try, not to measure")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    names = arguments.contestants.split(",") if arguments.contestants else NAMES
    names = ["plain", *(name for name in names if name != "plain")]
    everyone = contestants(names, without_peers=arguments.without_peers)
    gc.freeze()  # the peers' modules are no garbage to look through
    chance = random.Random(0)
    figures: dict[str, list[float]] = {}
    rows: list[list[str]] = []
    for name in [arguments.only] if arguments.only else WORKLOADS:
        workload = WORKLOADS[name]()
        if arguments.short:
            workload = workload.shortened(steps=6, warmup=2, evaluate_every=2)
        ratios, lines = all_rounds(everyone, workload, count=arguments.count, chance=chance)
        figures |= figures_of(name, ratios)
        rows += lines
    head = ["workload", "contestant", "time / plain", "CPU time / plain", "difference"]
    print(table(head, rows))
    print(last_line("loop", figures))


if __name__ == "__main__":
    main()
