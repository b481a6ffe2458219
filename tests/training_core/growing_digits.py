"""Handwritten digits that arrive in four parts, 15 % of them mislabelled: Ash & Adams' case, small.

    PYTHONPATH=. python tests/training_core/growing_digits.py 10       # seeds

Each time more have arrived a network is trained on all of them, until it fits most; a warm start
begins with the network of the time before. "On Warm-Starting Neural Network Training" (2020,
arXiv:1910.08475) finds that such networks end worse on new data than networks from scratch, and
that shrinking and perturbing what they begin with mends most of it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from training_core.determinism import seed_everything
from training_core.evaluation import outputs_of
from training_core.examples import Examples
from training_core.loop import Trainer
from training_core.parallel.single import SingleProcess
from training_core.settings import TrainingSettings
from training_core.transfer.weights import start_from

CPU = torch.device("cpu")
ROWS, PARTS, EPOCHS, MISLABELLED = 400, 4, 40, 0.15
WARM = {"weights": "champion"}
WAYS: dict[str, dict[str, Any]] = {
    "warm": WARM,
    "shrunk": {**WARM, "shrink": 0.5, "perturb": 0.1},
}


class Digits:
    """What a trainer asks of a task."""

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return nn.functional.cross_entropy(outputs, target, reduction="none")

    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        return {"accuracy": (outputs.argmax(1) == target).double()}


class Network(nn.Module):
    """Large enough to learn wrong labels by heart."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
        )

    def forward(self, pixels: Tensor) -> Tensor:
        outputs: Tensor = self.layers(pixels)
        return outputs


def digits() -> tuple[Tensor, Tensor]:
    """All 1,797 of scikit-learn's, 8 by 8 pixels, and what they are."""
    pixels, labels = load_digits(return_X_y=True)
    return torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(labels)


def trained(
    train: Examples,
    test: Examples,
    *,
    seed: int,
    start: dict[str, Any] | None = None,
    weights: dict[str, Tensor] | None = None,
    **changes: Any,
) -> Trainer:
    """Train a network, from weights if there are any; its validation split is the test's."""
    given = {
        "epochs": EPOCHS, "batch_size": 32, "device": "cpu", "seed": seed, "log_every": 10**4,
        "evaluate_every": 10**6, "schedule": {"shape": "constant", "warmup": 0},
        "optimiser": {"name": "adam", "lr": 0.001, "weight_decay": 0, "clip_norm": 0},
        "recovery": {"attempts": 0}, "start": start or {}, **changes,
    }  # fmt: skip
    settings = TrainingSettings.model_validate(given)
    seed_everything(seed)
    model = Network()
    if weights is not None:
        start_from(model, settings.start, weights)
    run = Trainer(
        task=Digits(), model=model, train=train, validation=test, settings=settings,
        strategy=SingleProcess(CPU),
    )  # fmt: skip
    run.fit()
    return run


def accuracy(run: Trainer, examples: Examples) -> float:
    """Share of digits that a network tells."""
    said = outputs_of(run.module, examples, device=CPU).argmax(1)
    return float((said == examples.target).double().mean())


def study(seed: int) -> dict[str, float]:
    """Test accuracy after the last part has arrived, by way, and of a network from scratch."""
    pixels, labels = digits()
    random = np.random.default_rng(seed)
    order = random.permutation(len(labels))
    wrong = order[:ROWS][random.random(ROWS) < MISLABELLED]
    seen = labels.clone()
    seen[wrong] = torch.tensor(random.integers(0, 10, len(wrong)))
    test = Examples({"pixels": pixels[order[ROWS:]]}, labels[order[ROWS:]])

    def arrived(parts: int) -> Examples:
        rows = order[: ROWS * parts // PARTS]
        return Examples({"pixels": pixels[rows]}, seen[rows])

    first = trained(arrived(1), test, seed=seed).module.state_dict()
    last = dict.fromkeys(WAYS, first)
    found = {}
    for parts in range(2, PARTS + 1):
        for way, start in WAYS.items():
            run = trained(
                arrived(parts), test, seed=seed + 100 * parts, start=start, weights=last[way]
            )
            last[way] = run.module.state_dict()
            found[way] = accuracy(run, test)
    found["cold"] = accuracy(trained(arrived(PARTS), test, seed=seed + 100 * PARTS), test)
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    seeds = [study(seed) for seed in range(int(sys.argv[1]))]
    for way in ("cold", *WAYS):
        values = np.array([found[way] for found in seeds])
        behind = np.array([found["cold"] - found[way] for found in seeds])
        error = behind.std(ddof=1) / np.sqrt(len(seeds))
        print(f"{way:7} {values.mean():.4f}  behind cold {behind.mean():+.4f} ± {error:.4f}")
