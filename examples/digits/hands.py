"""How well is a hand read that was never seen? Every sheet is held out once.

    python examples/digits/hands.py --data examples/digits/data --folds 7 --seeds 3

The sheets are dealt into folds; a fold is held out, the one after it chooses the network's
checkpoint as a run does, the others are learned from. Logistic regression and trees learn from both
of those. `--by rows` deals rows instead, with every hand on both sides, to show what that would
claim. Intervals are from drawing sheets, of which there are few.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
import yaml
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

sys.path.insert(0, str(Path(__file__).parent))  # when it is imported instead of run

from task import DigitsTask

from training_core import (
    Examples,
    SingleProcess,
    Trainer,
    TrainingSettings,
    outputs_of,
    seed_everything,
)

Floats = npt.NDArray[np.float64]
RESAMPLES = 2000
CPU = torch.device("cpu")


def network(
    train: pd.DataFrame, validation: pd.DataFrame, test: pd.DataFrame, *, seed: int
) -> Floats:
    """Probabilities [N, 10] of the best of ten checkpoints, trained as evertrain.yaml says."""
    settings = yaml.safe_load((Path(__file__).parent / "evertrain.yaml").read_text())
    task = DigitsTask(DigitsTask.Options.model_validate(settings["task"]["options"]))
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
        settings=TrainingSettings.model_validate({**settings["training"], "seed": seed}),
        strategy=SingleProcess(CPU),
        on_evaluation=keep_best,
    ).fit()
    model.load_state_dict(weights)
    outputs = outputs_of(model, Examples.from_frame(task, preprocessor, test), device=CPU)
    return task.predict(outputs).double().numpy()


def simple(kind: str, train: pd.DataFrame, test: pd.DataFrame) -> Floats:
    """Probabilities [N, 10] of a simple model on the network's own inputs."""
    preprocessor = DigitsTask().preprocessor().fit(train)
    inputs, asked = (
        preprocessor.transform(rows)["image"].reshape(len(rows), -1) for rows in (train, test)
    )
    model: Any = (
        LogisticRegression(max_iter=300)
        if kind == "linear"
        else HistGradientBoostingClassifier(early_stopping=False, random_state=0)
    )
    return np.asarray(model.fit(inputs, train["digit"]).predict_proba(asked), dtype=np.float64)


def scores(probabilities: Floats, digits: pd.Series[int]) -> pd.DataFrame:
    """Log loss and error of each row."""
    truth = digits.to_numpy()
    chosen = probabilities[np.arange(len(truth)), truth].clip(1e-7)
    return pd.DataFrame(
        {"log_loss": -np.log(chosen), "error": (probabilities.argmax(1) != truth).astype(float)},
        index=digits.index,
    )


def study(rows: pd.DataFrame, *, by: str, folds: int, seeds: int) -> pd.DataFrame:
    """Scores of each row and model, each row judged by models that have not seen its fold."""
    units = rows["sheet"] if by == "sheets" else rows["id"]
    names = np.sort(units.unique())
    dealt = dict(
        zip(np.random.default_rng(0).permutation(names), np.arange(len(names)) % folds, strict=True)
    )
    fold = units.map(dealt)
    found = []
    for held in range(folds):
        test = rows[fold == held]
        validation, train = (
            rows[fold == (held + 1) % folds],
            rows[~fold.isin({held, (held + 1) % folds})],
        )
        for seed in range(seeds):
            scored = scores(network(train, validation, test, seed=seed), test["digit"])
            found.append(scored.assign(model="network", seed=seed, fold=held, sheet=test["sheet"]))
        for kind in ("linear", "trees"):
            known = pd.concat([train, validation])
            scored = scores(simple(kind, known, test), test["digit"])
            found.append(scored.assign(model=kind, seed=0, fold=held, sheet=test["sheet"]))
        last = pd.concat(found[-seeds - 2 :]).groupby("model")[["log_loss", "error"]].mean()
        print(f"fold {held}: {last.round(4).to_dict()}", file=sys.stderr, flush=True)
    return pd.concat(found)


def interval(values: pd.Series[float], sheets: pd.Series[str]) -> list[float]:
    """The middle 95% of means over sheets drawn with replacement."""
    parts = values.groupby(sheets).agg(["sum", "size"]).to_numpy()
    drawn = np.random.default_rng(0).integers(len(parts), size=(RESAMPLES, len(parts)))
    means = parts[drawn, 0].sum(1) / parts[drawn, 1].sum(1)
    return [round(float(edge), 4) for edge in np.quantile(means, [0.025, 0.975])]


def summary(found: pd.DataFrame) -> dict[str, Any]:
    """Means by model with their intervals, the network's lead over each, and its seeds' spread."""
    by_row = found.groupby([found.index, "model"])[["log_loss", "error"]].mean().unstack()
    sheets = found.groupby(found.index)["sheet"].first()
    said: dict[str, Any] = {}
    for metric in ("log_loss", "error"):
        table = by_row[metric]
        said[metric] = {
            name: [round(float(table[name].mean()), 4), interval(table[name], sheets)]
            for name in table
        }
        for other in ("linear", "trees"):
            lead = table[other] - table["network"]
            said[metric][f"{other} - network"] = [
                round(float(lead.mean()), 4),
                interval(lead, sheets),
            ]
    networks = found[found["model"] == "network"]
    means = networks.groupby(["fold", "seed"])["log_loss"].mean().unstack()
    if means.shape[1] > 1:  # within a fold, since a run has one holdout as well
        said["seed_sd"] = round(float(np.sqrt(means.var(axis=1, ddof=1).mean())), 4)
    return said


def main(arguments: list[str] | None = None) -> int:
    """Print figures as one line of JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="what prepare.py wrote")
    parser.add_argument("--by", choices=["sheets", "rows"], default="sheets", help="what is dealt")
    parser.add_argument("--folds", type=int, default=7)
    parser.add_argument("--seeds", type=int, default=1, help="networks a fold")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    began = time.monotonic()
    rows = pd.concat(
        [pd.read_parquet(file) for file in sorted(options.data.glob("*.parquet"))],
        ignore_index=True,
    )
    found = study(rows, by=options.by, folds=options.folds, seeds=options.seeds)
    said = {"name": "digits-hands", "by": options.by, "folds": options.folds}
    said |= {"seeds": options.seeds, "seconds": round(time.monotonic() - began, 1)}
    print(json.dumps({**said, **summary(found)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
