"""What counting alone makes of the text: bits per byte of n-grams, and of the network beside them.

    python examples/text/ngrams.py --data examples/text/data            # counting: a minute
    python examples/text/ngrams.py --data examples/text/data --seeds 2  # and networks: many

Documents are divided as split_data divides them. An n-gram model knows what the network knows: the
characters before, back to the beginning of the passage. Orders are mixed after Witten and Bell
1991: the more different characters followed a context, the more is left to the shorter one.
Intervals are from drawing documents.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
import yaml

sys.path.insert(0, str(Path(__file__).parent))  # when it is imported instead of run

from characters import BEGIN, SIZE, indices
from task import TextTask

from training_core import (
    Examples,
    SingleProcess,
    Trainer,
    TrainingSettings,
    outputs_of,
    seed_everything,
)

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
LENGTH, NONE = 128, -1
RESAMPLES = 2000
CPU = torch.device("cpu")
SETTINGS = yaml.safe_load((Path(__file__).parent / "evertrain.yaml").read_text())


def side_of(document: str) -> str:
    """The part that split_data puts a document into: by the MD5 of its name, its length before."""
    place = hashlib.md5(f"{len(document)}:{document}".encode(), usedforsecurity=False).hexdigest()
    share = int(place, 16) / 16**32
    split = SETTINGS["split"]
    if share < split["holdout"]:
        return "holdout"
    return "validation" if share < split["holdout"] + split["validation"] else "train"


class NGrams:
    """Counts of what followed each context of up to `order - 1` characters.

    Args:
        texts: Of the train split.
        order: 1: no context.
    """

    def __init__(self, texts: pd.Series[str], *, order: int) -> None:
        self.order = order
        read = indices(texts, LENGTH, padding=NONE)
        counted = read >= 0
        self.tables = []
        for size in range(order):  # of the context
            context, whole = self._codes(read, size)
            self.tables.append(
                (
                    np.unique(whole[counted], return_counts=True),
                    np.unique(context[counted], return_counts=True),
                    np.unique(np.unique(whole[counted]) // SIZE, return_counts=True),
                )
            )

    def nats(self, texts: pd.Series[str]) -> list[Floats]:
        """By order from 1, what each text's characters cost: float64 [N]."""
        read = indices(texts, LENGTH, padding=NONE)
        chance = np.full(read.shape, 1 / (SIZE - 2))
        found = []
        for size, (wholes, contexts, followers) in enumerate(self.tables):
            context, whole = self._codes(read, size)
            seen, times = _count(wholes, whole), _count(contexts, context)
            different = _count(followers, context)
            known = times > 0
            mixed = (seen + different * chance) / np.maximum(times + different, 1)
            chance = np.where(known, mixed, chance)
            found.append(np.where(read >= 0, -np.log(chance), 0.0).sum(1))
        return found

    @staticmethod
    def _codes(read: Places, size: int) -> tuple[Places, Places]:
        """Each position's context as one number, and context and character as one."""
        begun = np.concatenate([np.full((len(read), size), BEGIN), read.clip(min=0)], axis=1)
        context = np.zeros_like(read)
        for back in range(size):
            context = context * SIZE + begun[:, back : back + read.shape[1]]
        return context, context * SIZE + read.clip(min=0)


def _count(table: tuple[Places, Places], asked: Places) -> Places:
    values, counts = table
    place = np.searchsorted(values, asked).clip(max=len(values) - 1)
    return np.where(values[place] == asked, counts[place], 0)


def network_nats(parts: dict[str, pd.DataFrame], *, seed: int) -> Floats:
    """What each holdout text costs the best of ten checkpoints, trained as evertrain.yaml says."""
    task = TextTask(TextTask.Options.model_validate(SETTINGS["task"]["options"]))
    preprocessor = task.preprocessor().fit(parts["train"])
    seed_everything(seed)
    model = task.build_model(preprocessor)
    best, weights = float("inf"), copy.deepcopy(model.state_dict())

    def keep_best(step: int, metrics: dict[str, float]) -> None:
        nonlocal best, weights
        print(f"seed {seed}, step {step}: {metrics['loss']:.4f}", file=sys.stderr, flush=True)
        if metrics["loss"] < best:
            best, weights = metrics["loss"], copy.deepcopy(model.state_dict())

    examples = {name: Examples.from_frame(task, preprocessor, rows) for name, rows in parts.items()}
    Trainer(
        task=task,
        model=model,
        train=examples["train"],
        validation=examples["validation"],
        settings=TrainingSettings.model_validate({**SETTINGS["training"], "seed": seed}),
        strategy=SingleProcess(CPU),
        on_evaluation=keep_best,
    ).fit()
    model.load_state_dict(weights)
    holdout = examples["holdout"]
    nats = [
        task.loss(outputs_of(model, part, device=CPU), part.target)
        for start in range(0, len(holdout), 256)
        for part in [holdout.take(slice(start, start + 256))]
    ]
    return torch.cat(nats).double().numpy()


def bits_per_byte(nats: Floats, rows: pd.DataFrame) -> list[Any]:
    """Mean and its 95% interval, from documents drawn with replacement."""
    lengths = rows["text"].str.len().to_numpy()
    table = pd.DataFrame({"bits": nats / math.log(2), "bytes": lengths})
    parts = table.groupby(rows["document"].to_numpy()).sum().to_numpy()
    drawn = np.random.default_rng(0).integers(len(parts), size=(RESAMPLES, len(parts)))
    means = parts[drawn, 0].sum(1) / parts[drawn, 1].sum(1)
    edges = [round(float(edge), 4) for edge in np.quantile(means, [0.025, 0.975])]
    return [round(float(parts[:, 0].sum() / parts[:, 1].sum()), 4), edges]


def main(arguments: list[str] | None = None) -> int:
    """Print figures as one line of JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="what prepare.py wrote")
    parser.add_argument("--order", type=int, default=7, choices=range(1, 9), help="largest order")
    parser.add_argument("--seeds", type=int, default=0, help="networks to train as well")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    began = time.monotonic()
    rows = pd.concat([pd.read_parquet(file) for file in sorted(options.data.glob("*.parquet"))])
    side = rows["document"].map(side_of)
    parts = {
        name: rows[side == name].reset_index(drop=True)
        for name in ("train", "validation", "holdout")
    }
    holdout = parts["holdout"]
    # Counting has no checkpoint to choose: it learns from the validation split as well.
    counted = pd.concat([parts["train"]["text"], parts["validation"]["text"]])
    nats = {
        f"{order}-gram": found
        for order, found in enumerate(
            NGrams(counted, order=options.order).nats(holdout["text"]), start=1
        )
    }
    figures = {name: bits_per_byte(found, holdout) for name, found in nats.items()}
    networks = [network_nats(parts, seed=seed) for seed in range(options.seeds)]
    if networks:
        mean = np.mean(networks, axis=0)
        best = min(nats, key=lambda name: figures[name][0])
        figures["network"] = bits_per_byte(mean, holdout)
        figures[f"{best} - network"] = bits_per_byte(nats[best] - mean, holdout)
    said: dict[str, Any] = {
        "name": "text-ngrams",
        "passages": {name: len(part) for name, part in parts.items()},
        "documents": {name: int(part["document"].nunique()) for name, part in parts.items()},
        "seconds": round(time.monotonic() - began, 1),
        "bits_per_byte": figures,
    }
    if len(networks) > 1:
        each = [each.sum() / holdout["text"].str.len().sum() for each in networks]
        said["seed_sd_nats"] = round(float(np.std(each, ddof=1)), 5)
    print(json.dumps(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
