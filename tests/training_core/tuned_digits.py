"""A network that tells handwritten digits is taken on to another question about them.

    PYTHONPATH=. python tests/training_core/tuned_digits.py 10       # seeds

It is trained on 1,000 digits; then, with a new output layer, on 60 others with other names for the
ten. Of each way: how many digits it names. Rates by depth and gradual unfreezing (Howard & Ruder
2018, arXiv:1801.06146, ULMFiT) and LoRA (Hu et al. 2021, arXiv:2106.09685: close to training all
weights with few of its own) are held against training all weights, and all against a start from
scratch.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch
from growing_digits import accuracy, digits, trained
from torch import Tensor

from training_core.examples import Examples

FIRST, THEN = 1000, 60
TAKEN = {"weights": "champion", "replace": ["layers.4.*"]}
WAYS: dict[str, dict[str, Any]] = {
    "all weights": TAKEN,
    "rates by depth": {**TAKEN, "lr_decay": 1 / 2.6},
    "gradual unfreezing": {**TAKEN, "unfreeze": [0.33, 0.67]},
    "output alone": {**TAKEN, "freeze": ["layers.0.*", "layers.2.*"]},
    "LoRA, rank 4": {**TAKEN, "lora": {"rank": 4, "patterns": ["layers.[02]"]}},
}


def study(seed: int) -> dict[str, tuple[float, int]]:
    """By way: accuracy on digits that no training saw, and how many numbers were trained."""
    pixels, labels = digits()
    random = np.random.default_rng(seed)
    order, names = random.permutation(len(labels)), torch.from_numpy(random.permutation(10))
    first, then, rest = np.split(order, [FIRST, FIRST + THEN])

    def rows(which: Any, told: Tensor) -> Examples:
        return Examples({"pixels": pixels[which]}, told[which])

    begun = trained(rows(first, labels), rows(rest, labels), seed=seed).module.state_dict()
    few, test = rows(then, names[labels]), rows(rest, names[labels])
    found = {}
    for way, start in {"from scratch": None, **WAYS}.items():
        run = trained(few, test, seed=seed + 100, start=start, weights=begun if start else None)
        many = sum(p.numel() for p in run.module.parameters() if p.requires_grad)
        found[way] = accuracy(run, test), many
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    seeds = [study(seed) for seed in range(int(sys.argv[1]))]
    for way in seeds[0]:
        told = np.array([found[way][0] for found in seeds])
        apart = told - np.array([found["all weights"][0] for found in seeds])
        error = apart.std(ddof=1) / len(seeds) ** 0.5
        print(
            f"{way:20} {told.mean():.3f} ({apart.mean():+.3f} ± {error:.3f})  "
            f"{seeds[0][way][1]:,} numbers"
        )
