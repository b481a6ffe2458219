"""Our training loop beside a plain hand-written one and four trainers: `make bench-loop`.

Every contestant trains the same model from the same weights on the same batches, with AdamW,
clipping, a schedule and logging every 50 steps. Ours and the peers also evaluate and keep the three
best checkpoints at a fixed interval; the plain loop does neither. One process, one thread; in each
round every contestant runs once, in random order; a ratio is a contestant's time / the plain loop's
in the same round. A trainer may write checkpoints and gather batches on threads of its own (ours
does): `--one-core` shows what remains when there is no second core for them.

Timed from the first forward after the warm-up until `fit` returns: the last evaluation and
checkpoint included. The final weights of all contestants must be those of the plain loop.

Figures: mlp_ratio, cnn_ratio, gpt_ratio (ours / plain), best_peer_mlp_ratio.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.contestants import contestants
from benchmarks.peers.run import Contestant, Run, Trained
from benchmarks.reporting import last_line, table, words_of
from benchmarks.workloads import KEEP_BEST, LOG_EVERY, WORKLOADS, Network, Workload, evaluate

NAMES = ["plain", "ours", "Lightning", "Fabric", "accelerate", "HF Trainer"]
WEIGHTS, LOSS = 1e-4, 1e-3  # what may differ from the plain loop: rounding, amplified by AdamW


@dataclass(frozen=True)
class Measured:
    """One contestant's training.

    Attributes:
        seconds: Of the timed steps.
        model: As trained.
    """

    seconds: float
    model: Network


def measure(name: str, contestant: Contestant, workload: Workload) -> Measured:
    """Let one contestant train once, and check that it did what it was asked to do."""
    gc.collect()
    model = workload.build()
    model.clock.first = workload.warmup
    with tempfile.TemporaryDirectory() as folder:
        trained = contestant(Run(workload=workload, model=model, folder=Path(folder)))
        seconds = time.perf_counter() - model.clock.began
    _check_work(name, workload, model, trained)
    return Measured(seconds, model)


def _check_work(name: str, workload: Workload, model: Network, trained: Trained) -> None:
    evaluations = workload.total_steps // workload.evaluate_every
    found = (len(trained.evaluations), trained.checkpoints)
    wanted = (0, 0) if name == "plain" else (evaluations, min(KEEP_BEST, evaluations))
    if (
        model.clock.calls != workload.total_steps
        or len(trained.losses) < workload.total_steps // LOG_EVERY
        # the newest checkpoint is kept also where it is none of the best
        or found[0] != wanted[0]
        or not wanted[1] <= found[1] <= wanted[1] + 1
    ):
        raise SystemExit(
            f"error: {name} on {workload.name}: {model.clock.calls} forwards, "
            f"{len(trained.losses)} logged losses, {found[0]} evaluations and {found[1]} "
            f"checkpoints instead of {workload.total_steps}, "
            f"{workload.total_steps // LOG_EVERY}, {wanted[0]} and {wanted[1]}"
        )


def check_equal(name: str, workload: Workload, model: Network, plain: Network) -> str:
    """Return how far a contestant's result is from the plain loop's; stop if it is another."""
    theirs = plain.state_dict()
    weights = max(float((v - theirs[k]).abs().max()) for k, v in model.state_dict().items())
    loss = abs(evaluate(model, workload) - evaluate(plain, workload))
    words = f"weights {weights:.0e}, loss {loss:.0e}"
    if not (weights <= WEIGHTS or loss <= LOSS) or math.isnan(weights):
        raise SystemExit(f"error: {name} on {workload.name} trained something else: {words}")
    return words


def one_round(
    everyone: dict[str, Contestant], workload: Workload, chance: random.Random
) -> tuple[dict[str, float], dict[str, str]]:
    """Return each contestant's seconds, and how far its result is from the plain loop's."""
    names = chance.sample(list(everyone), len(everyone))
    done = {name: measure(name, everyone[name], workload) for name in names}
    equal = {n: check_equal(n, workload, done[n].model, done["plain"].model) for n in everyone}
    return {name: measured.seconds for name, measured in done.items()}, equal


def main() -> None:
    """Run the rounds and print the table and the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=7, help="rounds")
    parser.add_argument("--only", choices=WORKLOADS, help="one workload")
    parser.add_argument("--contestants", help=f"comma-separated, of: {', '.join(NAMES)}")
    parser.add_argument("--without-peers", action="store_true", help="leave out what is missing")
    parser.add_argument("--one-core", action="store_true", help="no second core for threads")
    parser.add_argument("--short", action="store_true", help="few steps: to try, not to measure")
    arguments = parser.parse_args()
    if arguments.one_core:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    names = arguments.contestants.split(",") if arguments.contestants else NAMES
    names = ["plain", *(name for name in names if name != "plain")]
    everyone = contestants(names, without_peers=arguments.without_peers)
    gc.freeze()  # the peers' modules are no garbage to look through
    chance = random.Random(0)
    figures: dict[str, list[float]] = {}
    rows = []
    for workload in [WORKLOADS[n]() for n in ([arguments.only] if arguments.only else WORKLOADS)]:
        if arguments.short:
            workload = workload.shortened(steps=6, warmup=2, evaluate_every=2)
        rounds = []
        for number in range(arguments.count):
            seconds, equal = one_round(everyone, workload, chance)
            rounds.append(seconds)
            words = ", ".join(f"{n} {s / workload.steps * 1e6:.0f} µs" for n, s in seconds.items())
            print(f"{workload.name} {number + 1}/{arguments.count}: {words}", file=sys.stderr)
        ratios = {n: [r[n] / r["plain"] for r in rounds] for n in everyone}
        rows += [[workload.name, n, words_of(v), equal[n]] for n, v in ratios.items()]
        figures |= _figures(workload.name, ratios)
    print(table(["workload", "contestant", "time / plain", "difference"], rows))
    print(last_line("loop", figures))


def _figures(workload: str, ratios: dict[str, list[float]]) -> dict[str, list[float]]:
    figures = {f"{workload}_ratio": ratios["ours"]} if "ours" in ratios else {}
    peers = [values for name, values in ratios.items() if name not in ("ours", "plain")]
    if workload == "mlp" and peers:
        figures["best_peer_mlp_ratio"] = min(peers, key=statistics.median)
    return figures


if __name__ == "__main__":
    main()
