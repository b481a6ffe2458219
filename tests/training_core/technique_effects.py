"""What each technique does on a small real case: scikit-learn's digits, 8 x 8 pixels.

    OMP_NUM_THREADS=1 python tests/training_core/technique_effects.py [SEEDS] [CASE ...]

prints each case's figure with and without the technique: mean over seeds, and the mean paired
difference with its standard error. The seeds choose rows, wrong labels, weights and order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from training_core.augmentations import shift
from training_core.examples import Examples
from training_core.feeds.memory import MemoryFeed
from training_core.feeds.sampling import sampling_of
from training_core.loop import Trainer
from training_core.parallel.single import SingleProcess
from training_core.regularisation.stochastic_depth import StochasticDepth
from training_core.settings import TrainingSettings
from training_core.task import MulticlassTask

CPU = torch.device("cpu")


class Digits:
    """What the trainer asks of a task; the losses and metrics of a multiclass task."""

    kind = "multiclass"
    loss = MulticlassTask.loss
    metrics = MulticlassTask.metrics


class Shifted(Digits):
    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> tuple[dict[str, Tensor], Tensor]:
        return {"image": shift(arrays["image"], generator, pixels=1)}, target


class Wide(nn.Module):
    """Two wide layers: enough to learn a few hundred digits by heart."""

    def __init__(self, norm: bool = False) -> None:
        super().__init__()
        normed = [nn.BatchNorm1d(128)] if norm else []
        self.body = nn.Sequential(
            nn.Flatten(), nn.Linear(64, 128), *normed, nn.ReLU(), nn.Linear(128, 128), nn.ReLU(),
            nn.Linear(128, 10),
        )  # fmt: skip

    def forward(self, image: Tensor) -> Tensor:
        outputs: Tensor = self.body(image)
        return outputs


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10),
        )  # fmt: skip

    def forward(self, image: Tensor) -> Tensor:
        outputs: Tensor = self.body(image)
        return outputs


class Cells(nn.Module):
    """Each pixel is a category of 17 values."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(64 * 17, 8)
        self.body = nn.Sequential(nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 10))
        self.register_buffer("first", torch.arange(64) * 17)

    def forward(self, cells: Tensor) -> Tensor:
        outputs: Tensor = self.body(self.embedding(cells + self.first).flatten(1))
        return outputs


class Deep(nn.Module):
    """Sixteen residual branches."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.head = nn.Linear(64, 64), nn.Linear(64, 10)
        self.branches = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
            for _ in range(16)
        )
        self.drops = nn.ModuleList(StochasticDepth() for _ in range(16))

    def forward(self, image: Tensor) -> Tensor:
        hidden = self.first(image.flatten(1))
        for branch, drop in zip(self.branches, self.drops, strict=True):
            hidden = hidden + drop(branch(hidden))
        outputs: Tensor = self.head(hidden)
        return outputs


@dataclass(frozen=True)
class Case:
    """One technique beside the plain training.

    Attributes:
        changes: Settings that are the technique.
        common: Settings of both.
        figure: Metric of the last evaluation, or what `judge` returns.
        model, task: Of both; `task_with` of the technique.
        rows: Of the train split.
        wrong: Share of its labels that are drawn anew.
        spoil: Changes rows and labels of the train split before they are fed.
    """

    changes: dict[str, Any]
    figure: str = "log_loss"
    common: dict[str, Any] = field(default_factory=dict)
    model: Callable[[], nn.Module] = Wide
    task_with: Callable[[], Any] = Digits
    rows: int = 300
    wrong: float = 0.0
    columns: Callable[[np.random.Generator, int], dict[str, Any]] | None = None
    spoil: Callable[[Examples, np.random.Generator], Examples] | None = None
    judge: Callable[[Trainer, Examples], float] | None = None


def data(case: Case, seed: int) -> tuple[Examples, Examples]:
    digits = load_digits()
    random = np.random.default_rng(seed)
    mixed = random.permutation(len(digits.target))
    train, held = mixed[: case.rows], mixed[-900:]

    def examples(rows: Any) -> Examples:
        pixels = torch.from_numpy(digits.data[rows])
        target = torch.from_numpy(digits.target[rows])
        if case.model is Cells:
            return Examples({"cells": pixels.long()}, target)
        return Examples({"image": (pixels.float() / 8 - 1).view(-1, 1, 8, 8)}, target)

    known = examples(train)
    if case.wrong:
        chosen = torch.from_numpy(random.random(len(train)) < case.wrong)
        other = torch.from_numpy(random.integers(0, 10, len(train)))
        known = Examples(known.arrays, torch.where(chosen, other, known.target))
    if case.spoil is not None:
        known = case.spoil(known, random)
    return known, examples(held)


def figure(case: Case, seed: int, *, using: bool) -> float:
    """Train once; return the case's figure."""
    train, held = data(case, seed)
    base = {"epochs": 30, "batch_size": 32, "device": "cpu", "evaluate_every": 10**6, "seed": seed}
    settings = TrainingSettings.model_validate(
        {**base, **case.common, **(case.changes if using else {})}
    )
    torch.manual_seed(seed)
    feed: Any = train
    if settings.sampling.active and case.columns is not None:
        columns: Any = case.columns(np.random.default_rng(seed), len(train))
        feed = MemoryFeed(
            train,
            sampling=sampling_of(
                settings.sampling, epochs=settings.epochs, target=train.target.numpy(),
                columns=columns,
            ),
        )  # fmt: skip
    trainer = Trainer(
        task=case.task_with() if using else Digits(),
        model=case.model(),
        train=feed,
        validation=held,
        settings=settings,
        strategy=SingleProcess(CPU),
    )
    outcome = trainer.fit()
    if case.judge is not None:
        return case.judge(trainer, held)
    return outcome.evaluations[-1][1][case.figure]


def _few_of_half(examples: Examples, random: np.random.Generator) -> Examples:
    """Leave one in twenty of the digits from 5 on."""
    keep = torch.from_numpy(random.random(len(examples)) < 0.05) | (examples.target < 5)
    return examples.take(keep.nonzero()[:, 0])


def _error_by_class(trainer: Trainer, held: Examples) -> float:
    """The mean over classes of the share that is wrong."""
    trainer.module.eval()
    with torch.no_grad():
        wrong = (trainer.module(**held.arrays).argmax(1) != held.target).float()
    return float(torch.stack([wrong[held.target == c].mean() for c in range(10)]).mean())


def _error_if_moved(trainer: Trainer, held: Examples) -> float:
    """The share that is wrong of images that are moved by up to a pixel."""
    random = torch.Generator().manual_seed(0)
    trainer.module.eval()
    with torch.no_grad():
        outputs = trainer.module(shift(held.arrays["image"], random, pixels=1))
    return float((outputs.argmax(1) != held.target).float().mean())


def _old_half_differs(examples: Examples, random: np.random.Generator) -> Examples:
    """In the older half another digit is called a 3, and a 3 that other one."""
    target = examples.target.clone()
    old = torch.arange(len(target)) < len(target) // 2
    target[old & (examples.target == 3)], target[old & (examples.target == 5)] = 5, 3
    return Examples(examples.arrays, target)


def _ages(random: np.random.Generator, count: int) -> dict[str, Any]:
    return {"age": np.arange(count)[::-1] * 86_400.0}


CONSTANT = {"schedule": {"shape": "constant"}}
LONG = {"epochs": 120, "optimiser": {"lr": 3e-3}}  # enough to learn every wrong label by heart
CASES: dict[str, Case] = {
    "ema": Case(
        {"averaging": {"kind": "ema", "decay": 0.99}},
        common={**CONSTANT, "optimiser": {"lr": 3e-3}, "batch_size": 16}, wrong=0.2,
    ),
    "swa": Case(
        {"averaging": {"kind": "swa", "start": 0.5, "high": 1.0}},
        common={**CONSTANT, "optimiser": {"name": "sgd", "lr": 0.05}, "batch_size": 16},
        wrong=0.2, figure="error",
    ),
    "label smoothing": Case(
        {"regularisation": {"label_smoothing": 0.2}}, wrong=0.2, common=LONG
    ),
    "mixup": Case({"regularisation": {"mixup": 1.0}}, wrong=0.2, common=LONG),
    "cutmix": Case(
        {"regularisation": {"cutmix": 1.0}}, model=Convolutions, wrong=0.2, common=LONG
    ),
    "gaussian noise": Case(
        {"regularisation": {"gaussian_noise": 0.5}}, wrong=0.2, common=LONG
    ),
    "swap noise": Case(
        {"regularisation": {"swap_noise": 0.3}}, model=Cells, wrong=0.3, common=LONG
    ),
    "stochastic depth": Case(
        {"regularisation": {"stochastic_depth": 0.5}}, model=Deep, wrong=0.2
    ),
    "ghost batchnorm": Case(
        {"regularisation": {"batch_norm": "ghost", "ghost_rows": 16}},
        model=lambda: Wide(norm=True), wrong=0.2,
        common={"batch_size": 300, "epochs": 150, "optimiser": {"lr": 3e-3}},
    ),
    "augmentation": Case(
        {}, model=Convolutions, task_with=Shifted, judge=_error_if_moved, common=LONG
    ),
    "class balance": Case(
        {"sampling": {"class_balance": 1.0}}, spoil=_few_of_half, judge=_error_by_class, rows=800
    ),
    "recency": Case(
        {"sampling": {"half_life_days": 75}}, spoil=_old_half_differs, columns=_ages,
    ),
    "curriculum by loss": Case(
        {"sampling": {"curriculum": "loss", "start_share": 0.7, "full_at": 1.0, "pacing": "step"}},
        wrong=0.3, common={"epochs": 12, "batch_size": 16, "optimiser": {"lr": 3e-3}},
        figure="error", rows=800,
    ),
}  # fmt: skip


def differences(name: str, seeds: int) -> tuple[float, float, np.ndarray[Any, Any]]:
    """Return the mean figure without, with, and the paired differences."""
    case = CASES[name]
    pairs = np.array(
        [[figure(case, s, using=False), figure(case, s, using=True)] for s in range(seeds)]
    )
    return float(pairs[:, 0].mean()), float(pairs[:, 1].mean()), pairs[:, 1] - pairs[:, 0]


if __name__ == "__main__":
    torch.set_num_threads(1)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    for each in sys.argv[2:] or CASES:
        without, using, apart = differences(each, count)
        error = apart.std(ddof=1) / np.sqrt(count)
        what = "error" if CASES[each].judge else CASES[each].figure
        print(
            f"{each:20} {what:9} {without:.3f} -> {using:.3f}, {apart.mean():+.3f} ± {error:.3f}",
            flush=True,
        )
