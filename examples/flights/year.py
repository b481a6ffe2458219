"""A year of monthly retraining, judged on the month that follows.

    python examples/flights/year.py --seeds 3 --output examples/flights/year.json

For each month from April to December every model is trained on all months before it, but for their
last 14 days, which choose the network's checkpoint, and is tested on that month. Flights of one day
share its weather and its troubles, so every interval comes from drawing days, not flights.

The table goes to stderr; stdout ends in one line of JSON.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
import yaml
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

sys.path.insert(0, str(Path(__file__).parent))  # when it is imported instead of run

from prepare import LABEL, build, source_folder
from task import FlightsTask

from training_core import (
    Examples,
    SingleProcess,
    Task,
    Trainer,
    TrainingSettings,
    outputs_of,
    seed_everything,
)

MONTHS = range(4, 13)
VALIDATION_DAYS = 14
RESAMPLES = 2000

Floats = npt.NDArray[np.float64]
Predictor = Callable[[pd.DataFrame], Floats]

# --- the network --------------------------------------------------------------------------------


def fit_network(task: Task, train: pd.DataFrame, validation: pd.DataFrame, seed: int) -> Predictor:
    """Train as `evertrain run` does; keep the best of ten checkpoints by validation loss."""
    settings = yaml.safe_load((Path(__file__).parent / "evertrain.yaml").read_text())["training"]
    preprocessor = task.preprocessor().fit(train)
    seed_everything(seed)
    model = task.build_model(preprocessor)
    best, weights = float("inf"), copy.deepcopy(model.state_dict())

    def keep_best(step: int, metrics: dict[str, float]) -> None:
        nonlocal best, weights
        if metrics["loss"] < best:
            best, weights = metrics["loss"], copy.deepcopy(model.state_dict())

    Trainer(
        task=task,
        model=model,
        train=Examples.from_frame(task, preprocessor, train),
        validation=Examples.from_frame(task, preprocessor, validation),
        settings=TrainingSettings.model_validate({**settings, "seed": seed}),
        strategy=SingleProcess(torch.device("cpu")),
        on_evaluation=keep_best,
    ).fit()
    model.load_state_dict(weights)

    def predict(frame: pd.DataFrame) -> Floats:
        arrays = {k: torch.from_numpy(v) for k, v in preprocessor.transform(frame).items()}
        examples = Examples(arrays, torch.zeros(len(frame)))
        outputs = outputs_of(model, examples, device=torch.device("cpu"))
        return task.predict(outputs).double().numpy()

    return predict


# --- the baselines ------------------------------------------------------------------------------


def fit_prior(train: pd.DataFrame) -> Predictor:
    """Everyone is late as often as everyone was."""
    rate = float(train[LABEL].mean())
    return lambda frame: np.full(len(frame), rate)


def fit_table(train: pd.DataFrame, *, smoothing: float = 100.0) -> Predictor:
    """Late rate by carrier and hour, drawn towards the mean where flights are few."""
    rate = float(train[LABEL].mean())
    cells = train.groupby(["carrier", "hour"])[LABEL].agg(["sum", "count"])
    rates = (cells["sum"] + smoothing * rate) / (cells["count"] + smoothing)

    def predict(frame: pd.DataFrame) -> Floats:
        found = rates.reindex(pd.MultiIndex.from_frame(frame[["carrier", "hour"]]))
        return found.fillna(rate).to_numpy(dtype=np.float64)

    return predict


def fit_logistic(train: pd.DataFrame) -> Predictor:
    """Logistic regression on the network's own inputs, categories one-hot."""
    preprocessor = FlightsTask().preprocessor().fit(train)
    arrays = preprocessor.transform(train)
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32)
    encoder.fit(arrays["categories"])

    def matrix(inputs: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.float32]:
        return np.hstack([encoder.transform(inputs["categories"]), inputs["numbers"]])

    model = LogisticRegression(max_iter=300).fit(matrix(arrays), train[LABEL])
    return lambda frame: model.predict_proba(matrix(preprocessor.transform(frame)))[:, 1]


def fit_trees(train: pd.DataFrame) -> Predictor:
    """Gradient-boosted trees on the network's own inputs.

    100 rounds at 0.1; 200 at 0.05 were 0.001 better for twice the time.
    """
    preprocessor = FlightsTask().preprocessor().fit(train)

    def matrix(frame: pd.DataFrame) -> npt.NDArray[np.float32]:
        arrays = preprocessor.transform(frame)
        return np.hstack([arrays["categories"].astype(np.float32), arrays["numbers"]])

    categories = len(preprocessor.transform(train.head(1))["categories"][0])
    model = HistGradientBoostingClassifier(
        categorical_features=list(range(categories)), early_stopping=False, random_state=0
    ).fit(matrix(train), train[LABEL])
    return lambda frame: model.predict_proba(matrix(frame))[:, 1]


BASELINES: dict[str, Callable[[pd.DataFrame], Predictor]] = {
    "prior": fit_prior,
    "table": fit_table,
    "logistic": fit_logistic,
    "trees": fit_trees,
}

# --- the comparison -----------------------------------------------------------------------------


def log_loss(probability: Floats, label: Floats) -> Floats:
    """Log loss of each row."""
    kept = np.clip(probability.astype(np.float64), 1e-7, 1 - 1e-7)
    return -np.where(label > 0, np.log(kept), np.log1p(-kept))


def day_draws(values: Floats, days: npt.NDArray[Any], *, seed: int) -> Floats:
    """Means of `values` over days drawn with replacement, `RESAMPLES` of them."""
    _, index = np.unique(days, return_inverse=True)
    sums, counts = np.bincount(index, weights=values), np.bincount(index)
    drawn = np.random.default_rng(seed).integers(len(sums), size=(RESAMPLES, len(sums)))
    return sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)


def interval(draws: Floats) -> list[float]:
    """The middle 95% of draws."""
    return [round(float(edge), 5) for edge in np.quantile(draws, [0.025, 0.975])]


def compare(net: Floats, other: Floats, days: npt.NDArray[Any], *, seed: int) -> dict[str, Any]:
    """Mean difference net − other with its interval; below zero the network is better."""
    difference = net - other
    return {
        "mean": round(float(difference.mean()), 5),
        "interval": interval(day_draws(difference, days, seed=seed)),
    }


def split(rows: pd.DataFrame, *, month: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Train and validation from the months before, and the month itself."""
    dates = pd.to_datetime(rows["date"])
    first = pd.Timestamp(year=2013, month=month, day=1)
    cut = first - pd.Timedelta(days=VALIDATION_DAYS)
    test = (dates >= first) & (dates.dt.month == month)
    return rows[dates < cut], rows[(dates >= cut) & (dates < first)], rows[test]


def study_month(
    rows: pd.DataFrame, *, month: int, seeds: int
) -> tuple[dict[str, Any], pd.DataFrame]:
    """Fit everything for one month; return its figures and the loss of each flight by model."""
    train, validation, test = split(rows, month=month)
    label, days = test[LABEL].to_numpy(), test["date"].to_numpy()
    losses = {name: log_loss(fit(train)(test), label) for name, fit in BASELINES.items()}
    by_seed = [
        log_loss(fit_network(FlightsTask(), train, validation, seed)(test), label)
        for seed in range(seeds)
    ]
    losses["net"] = np.mean(by_seed, axis=0)  # the expected loss of one network, not an ensemble
    figures = {
        "month": month,
        "rows": len(test),
        "log_loss": {name: round(float(values.mean()), 5) for name, values in losses.items()},
        "net_minus": {
            name: compare(losses["net"], losses[name], days, seed=month) for name in BASELINES
        },
        "net_by_seed": [round(float(values.mean()), 5) for values in by_seed],
    }
    return figures, pd.DataFrame(losses).assign(day=days)


def summarise(months: list[dict[str, Any]], losses: list[pd.DataFrame]) -> dict[str, Any]:
    """Means over months, each month counting once; days are drawn within their month."""
    net_minus = {}
    for name in BASELINES:
        draws = [
            day_draws((part["net"] - part[name]).to_numpy(), part["day"].to_numpy(), seed=i)
            for i, part in enumerate(losses)
        ]
        mean = float(np.mean([figures["net_minus"][name]["mean"] for figures in months]))
        net_minus[name] = {"mean": round(mean, 5), "interval": interval(np.mean(draws, axis=0))}
    by_seed = np.array([figures["net_by_seed"] for figures in months])
    return {
        "log_loss": {
            name: round(float(np.mean([figures["log_loss"][name] for figures in months])), 5)
            for name in [*BASELINES, "net"]
        },
        "net_minus": net_minus,
        "seed_sd": None
        if by_seed.shape[1] < 2
        else round(float(np.sqrt(by_seed.var(axis=1, ddof=1).mean())), 5),
    }


def line(name: str, figures: dict[str, Any]) -> str:
    """One row of the printed table."""
    cells = [f"{name:>5}"] + [f"{figures['log_loss'][model]:8.4f}" for model in [*BASELINES, "net"]]
    for model in BASELINES:
        low, high = figures["net_minus"][model]["interval"]
        cells.append(f"{figures['net_minus'][model]['mean']:+.4f} [{low:+.4f}, {high:+.4f}]")
    return "  ".join(cells)


def main(arguments: list[str] | None = None) -> int:
    """Run the study and print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1, help="networks trained a month")
    parser.add_argument("--output", type=Path, default=Path("year.json"), help="figures, as JSON")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    started = time.monotonic()
    rows = build(source_folder())
    rows = rows[rows[LABEL].notna()]
    heads = [f"{name:>8}" for name in [*BASELINES, "net"]]
    heads += [f"{'net - ' + name:<26}" for name in BASELINES]
    print("  ".join(["month", *heads]), file=sys.stderr)
    months, losses = [], []
    for month in MONTHS:
        figures, parts = study_month(rows, month=month, seeds=options.seeds)
        months.append(figures)
        losses.append(parts)
        print(line(str(month), figures), file=sys.stderr, flush=True)
    summary = summarise(months, losses)
    print(line("mean", summary), file=sys.stderr)
    seconds = round(time.monotonic() - started, 1)
    result = {"name": "flights-year", "seeds": options.seeds, "seconds": seconds, **summary}
    options.output.write_text(json.dumps({**result, "months": months}, indent=2) + "\n")
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
