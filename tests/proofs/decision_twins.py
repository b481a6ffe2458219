"""Networks on flights that differ by their seed alone: how often does one replace the other?"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from components.common.decision_figures import NoiseFigure, SmokeFigures
from components.common.metrics import row_scores
from components.common.project import open_project
from components.common.resampling import mean_interval
from components.evaluate_model.comparing import Holdout
from components.evaluate_model.judging import judge
from components.evaluate_model.noise import pooled, train_replicas
from tests.examples.flights_example import EXAMPLE, noise, prepare, year

Floats = npt.NDArray[np.float64]
DAYS = 14
RUNS = 3  # whose replicas measure the noise, as in a project that has run three times
WORKED = SmokeFigures(outcome="pass", message="it works")


def twins(trials: int, *, networks: int) -> dict[str, float]:
    """Return how often each gate promotes one of two networks that differ by their seed alone."""
    torch.set_num_threads(1)
    rows = prepare.build(prepare.source_folder())
    rows = rows[rows[prepare.LABEL].notna()]
    months = noise.month_of(rows)
    train, validation, _ = noise.divided(rows[months <= 3])
    later = rows[months > 3].sort_values("time_hour", ignore_index=True)
    project = open_project(EXAMPLE)
    task = project.task()
    found = _noise(project, task, train, validation)
    print(f"noise of retraining: {found.deviation:.4f}, measured by replicas", file=sys.stderr)
    label = task.target(later)
    scored = []
    for seed in range(networks):
        scored.append(year.fit_network(task, train, validation, 1000 + seed)(later))
        losses = row_scores(label, scored[-1])["log_loss"]
        print(f"seed {seed}: log loss {losses.mean():.4f}", file=sys.stderr, flush=True)
    days = later["time_hour"].dt.floor("D")
    places = {day: group.to_numpy() for day, group in pd.Series(later.index).groupby(days)}
    settings = project.settings.decision.model_copy(
        update={"retraining_noise": None, "must_beat": [], "resamples": 1000}
    )
    promoted = {"ours": 0, "larger number": 0, "rows": 0}
    for trial in range(trials):
        random = np.random.default_rng(trial)
        chosen, clusters = _fortnight(places, random)
        one, other = random.choice(networks, 2, replace=False)
        truth, mine, theirs = label[chosen], scored[one][chosen], scored[other][chosen]
        figures = judge(
            Holdout("binary", truth, clusters, later.loc[chosen].reset_index(drop=True), []),
            {"challenger": mine, "champion": theirs},
            settings=settings,
            noise=found,
            smoke=WORKED,
            without=[task.label, "time_hour", "date"],
        )
        promoted["ours"] += figures.verdict == "promote"
        gain = row_scores(truth, theirs)["log_loss"] - row_scores(truth, mine)["log_loss"]
        promoted["larger number"] += gain.mean() > 0
        promoted["rows"] += mean_interval(
            gain, np.arange(len(gain)), confidence=0.9, resamples=500
        ).low > 0  # fmt: skip
    print(f"promoted of {trials}: {promoted}", file=sys.stderr, flush=True)
    return {
        "aa_trials": trials,
        "aa_promoted": promoted["ours"] / trials,
        "aa_point_gate": promoted["larger number"] / trials,
        "aa_row_gate": promoted["rows"] / trials,
        "aa_noise": round(found.deviation, 5),
    }


def _noise(project: Any, task: Any, train: pd.DataFrame, validation: pd.DataFrame) -> NoiseFigure:
    settings = project.settings.decision.model_copy(update={"retraining_noise": None})
    measured = []
    for run in range(RUNS):
        training = project.settings.training.model_copy(update={"seed": 100 * run})
        measured.append(
            train_replicas(
                task, train, validation, training=training, settings=settings, run=str(run)
            )
        )
    return pooled(measured, "log_loss")


def _fortnight(
    places: dict[Any, npt.NDArray[np.int64]], random: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Draw 14 days with replacement from 14 that follow each other; a day drawn twice is two."""
    names = list(places)
    first = random.integers(0, len(names) - DAYS + 1)
    drawn = random.choice(names[first : first + DAYS], DAYS)
    rows = [places[day] for day in drawn]
    clusters = np.repeat(np.arange(DAYS), [len(each) for each in rows])
    return np.concatenate(rows), clusters
