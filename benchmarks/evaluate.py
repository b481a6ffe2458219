"""What the intervals of an evaluation cost: `make bench-evaluate`.

A million examples of 400 days, challenger and champion, all metrics of a binary task (ten) on the
whole and on twenty slices (four columns of five values), each with its paired interval from 2,000
draws of days. Beside it, in the same round, one draw the plain way: rows of the drawn days put
together, the same metrics by scikit-learn, for both models and all slices.

Figures: bootstrap_seconds (ours, all draws), plain_draw_seconds (one draw the plain way),
draws_for_one (how many of our draws take as long as one plain one).
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import sklearn.metrics as skm

from benchmarks.reporting import last_line, table, words_of
from components.common.metrics import METRICS, drawn, exact
from components.evaluate_model.comparing import CHALLENGER, CHAMPION, Holdout, Models, better_by
from components.evaluate_model.slices import Slice, declared

ROWS, DAYS, DRAWS = 1_000_000, 400, 2000
CONFIDENCE = 0.95


def examples(rows: int) -> tuple[Holdout, dict[str, npt.NDArray[np.float64]]]:
    """Return labels, clusters, four columns of five values, and what two models predict."""
    random = np.random.default_rng(0)
    logit = random.normal(-1.5, 1.0, rows)
    truth = (random.random(rows) < 1 / (1 + np.exp(-logit))).astype(np.float32)
    columns = {f"c{i}": random.integers(0, 5, rows).astype(str) for i in range(4)}
    both = {
        name: 1 / (1 + np.exp(-(logit + random.normal(0, width, rows))))
        for name, width in ((CHALLENGER, 0.3), (CHAMPION, 0.4))
    }
    days = np.arange(rows) * DAYS // rows
    return Holdout("binary", truth, days, pd.DataFrame(columns), ["no", "yes"]), both


def ours(holdout: Holdout, both: dict[str, Any], draws: int) -> tuple[float, int]:
    """Return the seconds for all intervals, and how many there are."""
    began = time.perf_counter()
    models = Models(holdout, both, resamples=draws)
    slices = [None, *declared(holdout.rows, holdout.rows.columns)]
    count = 0
    for part in slices:
        rows = None if part is None else part.rows
        points = {m: exact(models.families[m], rows) for m in both}
        values = {m: drawn(models.families[m], models.draws, rows, points=points[m]) for m in both}
        for name in METRICS["binary"]:
            found = models.draws.interval(
                better_by(name, points[CHAMPION][name], points[CHALLENGER][name]),
                better_by(name, values[CHAMPION][name], values[CHALLENGER][name]),
                confidence=CONFIDENCE,
            )
            count += np.isfinite(found.low)
    return time.perf_counter() - began, count


def plain_draw(holdout: Holdout, both: dict[str, Any], seed: int) -> float:
    """Return the seconds of one draw: its rows, and scikit-learn's metrics of them."""
    began = time.perf_counter()
    days = np.random.default_rng(seed).integers(0, DAYS, DAYS)
    by_day = np.split(
        np.arange(len(holdout.truth)), np.arange(1, DAYS) * len(holdout.truth) // DAYS
    )
    rows = np.concatenate([by_day[day] for day in days])
    truth, columns = holdout.truth[rows], holdout.rows.iloc[rows].reset_index(drop=True)
    parts: list[Slice | None] = [None, *declared(columns, columns.columns)]
    for part in parts:
        taken = slice(None) if part is None else part.rows
        for predictions in both.values():
            said, label = predictions[rows][taken], truth[taken]
            skm.roc_auc_score(label, said)
            skm.average_precision_score(label, said)
            skm.log_loss(label, said)
            skm.brier_score_loss(label, said)
            skm.precision_recall_fscore_support(label, said >= 0.5, average="binary")
            skm.accuracy_score(label, said >= 0.5)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=3, help="rounds")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--draws", type=int, default=DRAWS)
    options = parser.parse_args()
    holdout, both = examples(options.rows)
    figures: dict[str, list[float]] = {}
    for seed in range(options.count):
        seconds, count = ours(holdout, both, options.draws)
        plain = plain_draw(holdout, both, seed)
        print(f"{count} intervals in {seconds:.1f} s; a plain draw: {plain:.1f} s", file=sys.stderr)
        figures.setdefault("bootstrap_seconds", []).append(seconds)
        figures.setdefault("plain_draw_seconds", []).append(plain)
        figures.setdefault("draws_for_one", []).append(options.draws * plain / seconds)
    print(table(["figure", "median (range)"], [[n, words_of(v)] for n, v in figures.items()]))
    print(last_line("evaluate", figures))


if __name__ == "__main__":
    main()
