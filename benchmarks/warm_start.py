"""Warm start against cold start: flights, retrained month after month, judged on the next month.

    make bench-warm-start        # or: python -m benchmarks.warm_start --count 3 --months 4-12

For each month every way trains on all months before it, but for their last 14 days, which choose
the checkpoint, and is judged on that month: the same flights for all, seen by none. A warm start
begins with its own way's model of the month before, as a champion's successor does; categories are
carried over by what they stand for. All ways begin the year with the same model.

    cold     from random weights, as evertrain.yaml has it (three epochs)
    warm     the same three epochs from the last model
    short    one epoch from the last model
    shrunk   three epochs from half of the last model's weights and a tenth of random ones

Every interval draws days, not flights. `--count` is the number of seeds.
"""

from __future__ import annotations

import copy
import sys
import time
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import yaml
from torch import Tensor

from benchmarks.months import CPU, FLIGHTS, studied
from benchmarks.reporting import last_line, table
from training_core import (
    Examples,
    SingleProcess,
    TabularPreprocessor,
    Trainer,
    TrainingSettings,
    outputs_of,
    seed_everything,
)
from training_core.transfer.vocabulary import by_vocabulary
from training_core.transfer.weights import start_from

WAYS: dict[str, dict[str, Any]] = {
    "cold": {},
    "warm": {"start": {"weights": "champion"}},
    "short": {"start": {"weights": "champion"}, "epochs": 1},
    "shrunk": {"start": {"weights": "champion", "shrink": 0.5, "perturb": 0.1}},
}


@dataclass(frozen=True)
class Model:
    """A trained network, and how its training went.

    Attributes:
        preprocessor, state: What the next month can begin with.
        loss: Of each test row.
        seconds: Of processor time in `fit()`, evaluations included; one thread.
        evaluations: (step, validation loss), the one before the first step left out.
    """

    preprocessor: TabularPreprocessor
    state: dict[str, Tensor]
    loss: np.ndarray[Any, np.dtype[np.float64]]
    seconds: float
    evaluations: list[tuple[int, float]]

    @property
    def best(self) -> float:
        """Lowest validation loss: the chosen checkpoint's."""
        return min(loss for _, loss in self.evaluations)

    def steps_to(self, loss: float) -> float:
        """Steps until the validation loss was as low as this; NaN: never."""
        return next((float(step) for step, each in self.evaluations if each <= loss), np.nan)


def fit(
    year: ModuleType,
    parts: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame],
    *,
    way: dict[str, Any],
    before: Model | None,
    seed: int,
) -> Model:
    """Train one way on one month's past; keep the best of ten checkpoints."""
    train, validation, test = parts
    task = year.FlightsTask()
    base = yaml.safe_load((FLIGHTS / "evertrain.yaml").read_text())["training"]
    settings = TrainingSettings.model_validate({**base, **way, "seed": seed, "device": "cpu"})
    preprocessor = task.preprocessor().fit(train)
    seed_everything(seed)
    model = task.build_model(preprocessor)
    if settings.start.weights != "none":
        assert before is not None
        found = by_vocabulary(model, before.state, before=before.preprocessor, now=preprocessor)
        start_from(model, settings.start, found.weights)
    evaluations: list[tuple[int, float]] = []
    best: dict[str, Tensor] = {}

    def keep(step: int, metrics: dict[str, float]) -> None:
        evaluations.append((step, metrics["loss"]))
        if metrics["loss"] <= min(loss for _, loss in evaluations):
            best.update(copy.deepcopy(model.state_dict()))

    trainer = Trainer(
        task=task,
        model=model,
        train=Examples.from_frame(task, preprocessor, train),
        validation=Examples.from_frame(task, preprocessor, validation),
        settings=settings,
        strategy=SingleProcess(CPU),
        on_evaluation=keep,
    )
    began = time.process_time()
    trainer.fit()
    seconds = time.process_time() - began
    model.load_state_dict(best)
    examples = Examples.from_frame(task, preprocessor, test)
    predicted = task.predict(outputs_of(model, examples, device=CPU)).double().numpy()
    loss = year.log_loss(predicted, test[year.LABEL].to_numpy())
    return Model(preprocessor, best, loss, seconds, evaluations)


def study(
    year: ModuleType, rows: pd.DataFrame, months: range, seed: int
) -> dict[int, dict[str, Model]]:
    """Retrain every way month after month; return the models by month."""
    first = fit(year, year.split(rows, month=months[0] - 1), way={}, before=None, seed=seed)
    last = dict.fromkeys(WAYS, first)
    found: dict[int, dict[str, Model]] = {}
    for month in months:
        parts = year.split(rows, month=month)
        found[month] = {
            name: fit(year, parts, way=way, before=last[name], seed=seed)
            for name, way in WAYS.items()
        }
        last = found[month]
        said = "  ".join(
            f"{name} {model.loss.mean():.4f} {model.seconds:.1f} s"
            for name, model in found[month].items()
        )
        print(f"seed {seed} month {month}: {said}", file=sys.stderr, flush=True)
    return found


def report(
    year: ModuleType, rows: pd.DataFrame, by_seed: list[dict[int, dict[str, Model]]]
) -> dict[str, list[float]]:
    """Print the months; return the figures, one value a seed."""
    lines = []
    for month in by_seed[0]:
        test = year.split(rows, month=month)[2]
        mean = {w: np.mean([s[month][w].loss for s in by_seed], axis=0) for w in WAYS}
        cells = [str(month), f"{mean['cold'].mean():.4f}"]
        for way in list(WAYS)[1:]:
            seen = year.compare(mean[way], mean["cold"], test["date"].to_numpy(), seed=month)
            low, high = seen["interval"]
            cells.append(f"{seen['mean']:+.4f} ({low:+.4f} to {high:+.4f})")
        seconds = [np.median([s[month][w].seconds for s in by_seed]) for w in WAYS]
        lines.append([*cells, ", ".join(f"{each:.1f}" for each in seconds)])
    others = [f"{way} − cold" for way in list(WAYS)[1:]]
    head = ["month", "cold", *others, f"processor seconds ({', '.join(WAYS)})"]
    print(table(head, lines))
    figures: dict[str, list[float]] = {}
    for months in by_seed:
        models = list(months.values())
        for way in list(WAYS)[1:]:
            lost = [m[way].loss.mean() - m["cold"].loss.mean() for m in models]
            figures.setdefault(f"{way}_minus_cold", []).append(float(np.mean(lost)))
            spent = sum(m[way].seconds for m in models) / sum(m["cold"].seconds for m in models)
            figures.setdefault(f"{way}_seconds_ratio", []).append(spent)
        reached = [m["warm"].steps_to(m["cold"].best) / m["cold"].steps_to(m["cold"].best)
                   for m in models]  # fmt: skip
        figures.setdefault("warm_steps_ratio", []).append(float(np.nanmedian(reached)))
        never = float(np.isnan(reached).sum())
        figures.setdefault("warm_never_as_low", []).append(never)
    return figures


def main() -> None:
    """Print the table and the figures."""
    year, rows, by_seed = studied(__doc__ or "", study, seeds=3)
    print(last_line("warm-start", report(year, rows, by_seed)))


if __name__ == "__main__":
    main()
