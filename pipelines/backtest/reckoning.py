"""From the scores of rows to the figures of each policy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import date
from functools import cache, partial
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from components.common.advice import Advice, Estimate, Kept, Lost, advise, waiting_of
from components.common.decision_settings import DecisionSettings
from components.common.resampling import mean_interval
from pipelines.backtest.policies import (
    ORACLE,
    OURS,
    POLICIES,
    Choice,
    Moment,
    best_so_far,
    follow,
)
from pipelines.backtest.result import Gain, PolicyFigures, ScoredPeriod
from pipelines.backtest.schedule import Period
from pipelines.backtest.scoring import CLUSTER

MONTH = 30.44  # days


@dataclass(frozen=True)
class Replayed:
    """One date, once all that it needs has been scored.

    Attributes:
        models: That there were, this date's included.
        scores: Of the period's rows, a column a model; None: it has no labelled row.
        holdout: Of the rows that this date's model was judged on.
        moved: What validate_data found; None: it did not look.
    """

    period: Period
    outcome: str
    reason: str
    model: bool
    seconds: dict[str, float]
    models: list[str]
    scores: pd.DataFrame | None
    holdout: pd.DataFrame | None
    moved: list[str] | None


@dataclass(frozen=True)
class Reckoned:
    """What comes out."""

    periods: list[ScoredPeriod]
    policies: list[PolicyFigures]
    gains: list[Gain]
    notes: list[str] = field(default_factory=list)


def reckon(
    replayed: list[Replayed], *, policies: list[str], metric: str, rule: DecisionSettings
) -> Reckoned:
    """Follow each policy through the dates and say what it came to."""
    moments = moments_of(replayed, metric=metric, rule=rule)
    choices = {name: follow(name, moments) for name in policies}
    periods, rows = [], []
    for place, each in enumerate(replayed):
        served = {
            name: model for name in policies if (model := choices[name][place].served) is not None
        }
        means = _means(each)
        whole = len(served) == len(policies) and each.scores is not None
        if whole:
            assert each.scores is not None
            served[ORACLE] = best_so_far(each.models, means)
            losses = {name: each.scores[model].to_numpy() for name, model in served.items()}
            rows.append(pd.DataFrame({CLUSTER: each.scores[CLUSTER].to_numpy(), **losses}))
        periods.append(
            ScoredPeriod(
                start=each.period.name,
                end=f"{each.period.end:%Y-%m-%d}",
                rows=0 if each.scores is None else len(each.scores),
                served=served,
                metric={name: means[model] for name, model in served.items()} if whole else {},
                models=means,
                outcome=each.outcome,
                reason=each.reason,
            )
        )
    scored = pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()
    figures = [
        _policy(name, scored, periods, choices.get(name), moments, rule)
        for name in [*policies, ORACLE]
        if len(scored)
    ]
    return Reckoned(periods, figures, gains_of(replayed), _notes(periods))


def moments_of(replayed: list[Replayed], *, metric: str, rule: DecisionSettings) -> list[Moment]:
    """What was known at each date: nothing of the period that follows."""
    moments = []
    for place, each in enumerate(replayed):
        past = replayed[:place]
        lost = [Lost(g.period, g.months, g.gain) for g in gains_of(past)]
        held = each.holdout
        moments.append(
            Moment(
                date=each.period.name,
                model=each.model,
                promoted=each.outcome == "promoted",
                seconds=each.seconds,
                holdout={} if held is None else {n: float(held[n].mean()) for n in each.models},
                advice=cache(
                    partial(_advice, now=each, past=past, lost=lost, metric=metric, rule=rule)
                ),
            )
        )
    return moments


def gains_of(replayed: list[Replayed]) -> list[Gain]:
    """In each period, how much worse the older models were than the newest."""
    gains = []
    for each in replayed:
        means = _means(each)
        if len(means) < 2:
            continue
        newest = max(means)
        gains += [
            Gain(
                period=each.period.name,
                months=months_between(name, newest),
                gain=value - means[newest],
            )
            for name, value in means.items()
            if name != newest
        ]
    return gains


def months_between(first: str, second: str) -> float:
    """Months between two days."""
    return (date.fromisoformat(second) - date.fromisoformat(first)).days / MONTH


def interval_of(values: Any, clusters: Any, rule: DecisionSettings) -> Estimate:
    """A mean with its interval, whole clusters drawn."""
    found = mean_interval(
        np.asarray(values, dtype=np.float64), clusters,
        confidence=rule.confidence, resamples=rule.resamples,
    )  # fmt: skip
    return Estimate(mean=found.mean, low=found.low, high=found.high)


def _advice(
    model: str,
    *,
    now: Replayed,
    past: list[Replayed],
    lost: list[Lost],
    metric: str,
    rule: DecisionSettings,
) -> Advice:
    """What would have been advised at a date with this model in production."""
    judged = next((each.holdout for each in past if each.period.name == model), None)
    newest = past[-1].scores if past else None
    kept = None
    if judged is not None and newest is not None and model in newest and model in judged:
        promised = interval_of(judged[model], judged[CLUSTER], rule)
        kept = Kept(
            metric=metric,
            promised=promised,
            now=interval_of(newest[model], newest[CLUSTER], rule),
            rows=len(newest),
            clusters=int(newest[CLUSTER].nunique()),
        )
    return advise(
        moved=now.moved,
        kept=kept,
        waiting=waiting_of(lost, months_between(model, now.period.name)),
        worth=rule.retraining_noise or 0.0,
        confidence=rule.confidence,
    )


def _means(each: Replayed) -> dict[str, float]:
    if each.scores is None:
        return {}
    return {name: float(each.scores[name].mean()) for name in each.models}


def _policy(
    name: str,
    scored: pd.DataFrame,
    periods: list[ScoredPeriod],
    choices: list[Choice] | None,
    moments: list[Moment],
    rule: DecisionSettings,
) -> PolicyFigures:
    loss, best = scored[name], float(scored[ORACLE].mean())
    against = interval_of(loss - scored[OURS], scored[CLUSTER], rule)
    known = math.isfinite(against.low)
    done = choices or []
    served = [p.served[name] for p in periods if p.metric]
    switches = sum(a != b for a, b in zip([None, *served], served, strict=False))
    reasons = {}
    if name == "drift":
        before = [None, *(choice.served for choice in done)]
        for moment, champion in zip(moments, before, strict=False):
            advice = moment.advice(champion) if champion else None
            if advice:
                words = [*advice.reasons, *(f"not known: {each}" for each in advice.unknown)]
                reasons[moment.date] = f"{advice.advice}: {'; '.join(words)}"
    return PolicyFigures(
        policy=name,
        metric=float(loss.mean()),
        period_metric=fmean(p.metric[name] for p in periods if p.metric),
        difference=against.mean,
        low=against.low if known else None,
        high=against.high if known else None,
        regret=float(loss.mean()) / best - 1 if best else 0.0,
        promotions=sum(c.took for c in done) if choices is not None else switches,
        trainings=sum(c.trained for c in done),
        hours=None if choices is None else sum(c.seconds for c in done) / 3600,
        hours_by_date={c.date: c.seconds / 3600 for c in done},
        reasons=reasons,
    )


def _notes(periods: list[ScoredPeriod]) -> list[str]:
    notes = []
    for period in periods:
        if not period.rows:
            notes.append(f"{period.start} to {period.end} is not scored: it has no labelled row")
        elif not period.metric:
            late = [name for name in POLICIES if name not in period.served]
            notes.append(
                f"{period.start} to {period.end} is not scored: there was no champion yet by "
                f"{', '.join(late)} ({period.reason})"
            )
        if period.outcome in ("stopped", "failed"):
            notes.append(f"the run of {period.start} left no new model: {period.reason}")
    return notes
