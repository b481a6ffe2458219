"""How much two trainings differ by their seed alone: what `decision.retraining_noise` is.

    python examples/flights/noise.py --seeds 8

The comparison is that of `make demo`: the model of January to March and that of January to April,
each trained and chosen as `evertrain run` does it, on the last 14 days of April. Over whole months
and with more to learn from (year.py) seeds differ half as much; what counts is the noise of the
comparison that is made.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).parent))  # when it is imported instead of run

from prepare import LABEL, build, source_folder
from task import FlightsTask
from year import fit_network, log_loss

PART = pd.Timedelta(days=14)  # of the holdout, and of the validation split before it
MONTHS = {"champion": 3, "challenger": 4}  # the last that each has seen


def losses(rows: pd.DataFrame, *, seeds: int) -> dict[str, list[float]]:
    """Mean log loss of each model on the newer one's holdout, seed by seed."""
    parts = {name: divided(rows[month_of(rows) <= last]) for name, last in MONTHS.items()}
    holdout = parts["challenger"][2]
    label = holdout[LABEL].to_numpy()
    found: dict[str, list[float]] = {}
    for name, (train, validation, _) in parts.items():
        for seed in range(seeds):
            network = fit_network(FlightsTask(), train, validation, seed)
            found.setdefault(name, []).append(float(log_loss(network(holdout), label).mean()))
            print(f"{name}, seed {seed}: {found[name][-1]:.4f}", file=sys.stderr, flush=True)
    return found


def month_of(rows: pd.DataFrame) -> pd.Series[int]:
    """The local month, by which the files are cut."""
    return pd.to_datetime(rows["date"]).dt.month


def divided(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """Train, validation and holdout as `split.by: time` makes them: whole days in UTC."""
    times = rows["time_hour"].dt.tz_localize(None)
    end = times.max().floor("D") + pd.Timedelta(days=1)
    cuts = [times.min(), end - 2 * PART, end - PART, end]
    return [rows[(times >= a) & (times < b)] for a, b in itertools.pairwise(cuts)]


def main(arguments: list[str] | None = None) -> int:
    """Print a line of JSON: by model, mean and standard deviation; and that of a difference."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=8, help="trainings of each model")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    rows = build(source_folder())
    found = losses(rows[rows[LABEL].notna()], seeds=options.seeds)
    spread = {name: float(np.std(values, ddof=1)) for name, values in found.items()}
    figures = {f"{name}_mean": round(float(np.mean(v)), 4) for name, v in found.items()}
    figures |= {f"{name}_sd": round(sd, 4) for name, sd in spread.items()}
    figures["retraining_noise"] = round(float(np.hypot(*spread.values())), 4)
    print(json.dumps({"name": "flights-noise", "seeds": options.seeds, "figures": figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
