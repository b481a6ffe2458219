"""What bounds the benchmarks' small networks, and what the profile's advice brings.

Says what `evertrain profile --try` would; one thread, batches as the other benchmarks have them.

Figures: mlp_advice_ratio, cnn_advice_ratio, gpt_advice_ratio (examples a second with the best of
the advised settings / as it was; the spread is the interval of the median).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.reporting import last_line
from benchmarks.workloads import Workload, cnn, gpt, mlp
from pipelines.profiling import words
from training_core.examples import Examples
from training_core.feeds.memory import MemoryFeed
from training_core.profiling.advice import bars, changes
from training_core.profiling.noise_scale import noise_along
from training_core.profiling.planned import Planned
from training_core.profiling.profile import profile
from training_core.profiling.trying import try_changes
from training_core.settings import TrainingSettings

WORKLOADS: dict[str, Callable[[], Workload]] = {"mlp": mlp, "cnn": cnn, "gpt": gpt}


class Bench:
    """A workload as a task."""

    kind = "sequence"

    def __init__(self, workload: Workload) -> None:
        self.workload = workload

    def build_model(self, preprocessor: Any) -> torch.nn.Module:
        return self.workload.network()

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return self.workload.loss(outputs, target)

    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        return {}


def planned(name: str) -> Planned:
    """Return a workload as a planned training in one thread."""
    workload = WORKLOADS[name]()
    examples = Examples({"inputs": workload.inputs}, workload.target)
    inputs, target = workload.validation
    settings = TrainingSettings.model_validate(
        {
            "batch_size": workload.batch_size,
            "threads": 1,
            "device": "cpu",
            "optimiser": {"lr": workload.lr},
        }
    )
    return Planned(
        task=Bench(workload),  # type: ignore[arg-type]
        preprocessor=None,  # type: ignore[arg-type]
        feed=MemoryFeed(examples),
        examples=examples,
        validation=Examples({"inputs": inputs}, target),
        settings=settings,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workloads", nargs="+", choices=list(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument("--count", type=int, default=9, help="rounds")
    parser.add_argument("--noise", action="store_true", help="the gradient noise scale as well")
    given = parser.parse_args()
    torch.set_num_threads(1)
    figures: dict[str, list[float]] = {}
    for name in given.workloads:
        training = planned(name)
        found = profile(training)
        print(f"{name}: {words.headline(found)}\n{words.steps(found)}\n{words.roofline(found)}")
        print("  " + ", ".join(f"{limit} {share:.2f}" for limit, share in found.limits.items()))
        for bar in bars(training, found):
            print(f"  {words.bar(bar)}")
        for sync in found.syncs:
            print(f"  {words.wait(sync)}")
        advised = changes(training, found)
        tried = try_changes(training, advised, rounds=given.count) if advised else []
        for each in tried:
            print(f"  tried: {words.tried(each)}", flush=True)
        if possible := [each for each in tried if not each.failed]:
            best = max(possible, key=lambda each: each.ratio)
            figures[f"{name}_advice_ratio"] = [best.low, best.ratio, best.high]
        if given.noise:
            size = training.settings.batch_size
            print("\n".join(f"  {line}" for line in words.noise(noise_along(training), size)))
    print(last_line("advice", figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
