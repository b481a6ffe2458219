"""Scores of dates without a run: what the reckoning of a backtest reads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from pipelines.backtest.reckoning import Replayed
from pipelines.backtest.schedule import parse_day, periods
from pipelines.backtest.scoring import CLUSTER

DAYS, ROWS = 20, 30  # of each period
SECONDS = {"snapshot_data": 1.0, "validate_data": 9.0, "train_distributed": 80.0, "report_run": 5.0}


def losses(means: Mapping[str, float], *, seed: int) -> pd.DataFrame:
    """Losses of rows with these means exactly, and their days: days differ, models share that."""
    random = np.random.default_rng(seed)
    shared = random.normal(0, 0.05, DAYS).repeat(ROWS) + random.normal(0, 0.1, DAYS * ROWS)
    frame = {CLUSTER: [f"day {n}" for n in np.arange(DAYS).repeat(ROWS)]}
    for place, (name, mean) in enumerate(means.items()):
        own = np.random.default_rng([seed, place]).normal(0, 0.01, DAYS * ROWS)
        values = shared + own
        frame[name] = values - values.mean() + mean
    return pd.DataFrame(frame)


def replay_of(
    means: list[dict[str, float]],
    *,
    outcomes: list[str],
    holdouts: list[dict[str, float]] | None = None,
    moved: list[list[str] | None] | None = None,
) -> list[Replayed]:
    """Dates a month apart from April 2013: of each the models' means on its period.

    Args:
        means: Empty: no row was labelled in that period.
        outcomes: As in a note; `stopped` and `nothing` leave no model.
        holdouts: Means on the holdout of each date; default: as on the period.
        moved: What validate_data found.
    """
    last = parse_day("2013-12-31", "--to")
    schedule = periods(parse_day("2013-04-01", "--from"), last, "month")[: len(means)]
    found, models = [], []
    for place, period in enumerate(schedule):
        model = outcomes[place] in ("promoted", "held")
        if model:
            models.append(period.name)
        held = (holdouts or means)[place]
        found.append(
            Replayed(
                period=period,
                outcome=outcomes[place],
                reason="it is said",
                model=model,
                seconds=dict(SECONDS),
                models=list(models),
                scores=losses(means[place], seed=place) if means[place] else None,
                holdout=losses(held, seed=100 + place) if held and model else None,
                moved=moved[place] if moved else [],
            )
        )
    return found
