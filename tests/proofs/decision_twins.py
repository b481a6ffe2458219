"""Networks on flights that differ by their seed alone: how often does one replace the other?"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import torch

from components.common.decision_figures import NoiseFigure, SmokeFigures
from components.common.decision_settings import DecisionSettings
from components.common.metrics import row_scores
from components.common.project import open_project
from components.common.resampling import mean_interval
from components.evaluate_model.comparing import Holdout
from components.evaluate_model.judging import judge
from components.evaluate_model.noise import pooled, train_replicas
from tests.examples.flights_example import EXAMPLE, load, prepare

year, noise = load("year"), load("noise")
DAYS = 14
DATES = (3, 5, 7, 9)  # the last month that is known when networks are trained
AFTER = 30  # days from which fortnights are drawn: those right after the validation split
WORKED = SmokeFigures(outcome="pass", message="it works")
GATES = ("ours", "ours, days drawn", "larger number", "rows")


class Date:
    """Networks that were trained alike at one date, and the days that came after."""

    def __init__(self, project: Any, rows: pd.DataFrame, last: int, networks: int) -> None:
        task, self.label_name = project.task(), project.task().label
        train, validation, _ = noise.divided(rows[noise.month_of(rows) <= last])
        end = validation["time_hour"].max().floor("D") + pd.Timedelta(days=1)
        after = (rows["time_hour"] >= end) & (rows["time_hour"] < end + pd.Timedelta(days=AFTER))
        self.rows = rows[after].sort_values("time_hour", ignore_index=True)
        self.label = task.target(self.rows)
        self.replicas = train_replicas(
            task, train, validation, training=project.settings.training,
            settings=_measuring(project), run=str(last),
        )  # fmt: skip
        self.scored = []
        for seed in range(networks):
            network = year.fit_network(task, train, validation, 1000 + seed)
            self.scored.append(network(self.rows))
            losses = row_scores(self.label, self.scored[-1])["log_loss"]
            _say(f"month {last}, seed {seed}: log loss {losses.mean():.4f}")
        days = self.rows["time_hour"].dt.floor("D")
        self.places = {d: g.to_numpy() for d, g in pd.Series(self.rows.index).groupby(days)}


def twins(trials: int, *, networks: int, dates: tuple[int, ...] = DATES) -> dict[str, float]:
    """Return how often each gate promotes one of two networks that differ by their seed alone."""
    torch.set_num_threads(1)
    rows = prepare.build(prepare.source_folder())
    rows = rows[rows[prepare.LABEL].notna()]
    project = open_project(EXAMPLE)
    trained = [Date(project, rows, last, networks) for last in dates]
    found = pooled([date.replicas for date in trained], "log_loss")
    _say(f"retraining noise: {found.deviation:.5f} ({found.freedom} degrees of freedom)")
    promoted = dict.fromkeys(GATES, 0)
    for trial in range(trials):
        random = np.random.default_rng(trial)
        date = trained[trial % len(trained)]
        one, other = random.choice(networks, 2, replace=False)
        for gate, passed in _meet(date, one, other, random, found, _measuring(project)).items():
            promoted[gate] += passed
    _say(f"promoted of {trials}: {promoted}")
    return {
        "aa_trials": trials,
        "aa_promoted": promoted["ours"] / trials,
        "aa_promoted_drawn": promoted["ours, days drawn"] / trials,
        "aa_point_gate": promoted["larger number"] / trials,
        "aa_row_gate": promoted["rows"] / trials,
        "aa_noise": round(found.deviation, 5),
    }


def _meet(
    date: Date,
    one: int,
    other: int,
    random: np.random.Generator,
    found: NoiseFigure,
    settings: DecisionSettings,
) -> dict[str, bool]:
    """Let one network challenge another on a fortnight; say which gates would promote it."""
    names = list(date.places)
    first = random.integers(0, len(names) - DAYS + 1)
    fortnight = names[first : first + DAYS]
    verdicts = {}
    for gate, days in (("ours, days drawn", random.choice(fortnight, DAYS)), ("ours", fortnight)):
        places = [date.places[day] for day in days]  # a day that is drawn twice is two
        chosen = np.concatenate(places)
        clusters = np.repeat(np.arange(DAYS), [len(each) for each in places])
        truth = date.label[chosen]
        mine, theirs = date.scored[one][chosen], date.scored[other][chosen]
        figures = judge(
            Holdout("binary", truth, clusters, date.rows.loc[chosen].reset_index(drop=True), []),
            {"challenger": mine, "champion": theirs},
            settings=settings,
            noise=found,
            smoke=WORKED,
            without=[date.label_name, "time_hour", "date"],
        )
        verdicts[gate] = figures.verdict == "promote"
    gain = row_scores(truth, theirs)["log_loss"] - row_scores(truth, mine)["log_loss"]
    by_rows = mean_interval(gain, np.arange(len(gain)), confidence=0.9, resamples=500)
    return verdicts | {"larger number": bool(gain.mean() > 0), "rows": by_rows.low > 0}


def _measuring(project: Any) -> DecisionSettings:
    settings: DecisionSettings = project.settings.decision
    update = {"retraining_noise": None, "must_beat": [], "resamples": 1000}
    return settings.model_copy(update=update)


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
