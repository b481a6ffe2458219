"""What a backtest says in numbers; kept as result.json, printed by --json."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from components.common.advice import Lost, Waiting, waiting_of

RESULT = "result.json"


class _Figures(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ScoredPeriod(_Figures):
    """The time from one date to the next.

    Attributes:
        rows: With a label.
        served: By policy, the date of the model that was in production.
        metric: By policy, its mean; lower is better. Empty where a policy had no model yet.
        models: By model, the mean of each that there was.
        outcome, reason: Of the pipeline's own run at the period's first day.
    """

    start: str
    end: str
    rows: int
    served: dict[str, str]
    metric: dict[str, float]
    models: dict[str, float]
    outcome: str
    reason: str


class PolicyFigures(_Figures):
    """What a policy would have come to.

    Attributes:
        metric: Mean over all rows of the scored periods.
        period_metric: Mean of the periods' means.
        difference, low, high: Its rows minus those of `ours`, paired, days drawn: above 0 it is
            worse. None: fewer than two days.
        regret: Share by which it is worse than the oracle.
        promotions, trainings: The first of each included.
        hours: That its steps took; None: nobody can follow the oracle.
        reasons: By date, what the advice was (of the policy `drift`).
    """

    policy: str
    metric: float
    period_metric: float
    difference: float
    low: float | None
    high: float | None
    regret: float
    promotions: int
    trainings: int
    hours: float | None
    hours_by_date: dict[str, float] = {}
    reasons: dict[str, str] = {}


class Gain(_Figures):
    """What waiting cost in one period: an older model against the newest.

    Attributes:
        months: Its age beyond the newest one's.
        gain: The difference of their means; above 0 the newest was better.
    """

    period: str
    months: float
    gain: float


class BacktestResult(_Figures):
    """A whole backtest.

    Attributes:
        metric: Of each row, lower is better; notes say where the project decides by another.
        notes: What a reader has to know, in sentences.
    """

    format: Literal["evertrain/backtest/1"] = "evertrain/backtest/1"
    project: str
    metric: str
    confidence: float
    first: str
    last: str
    every: str
    periods: list[ScoredPeriod]
    policies: list[PolicyFigures]
    gains: list[Gain]
    notes: list[str]


def read_results(folder: Path) -> list[BacktestResult]:
    """Return the results of all finished backtests below a folder, oldest first."""
    found = []
    for file in sorted(folder.glob(f"*/{RESULT}"), key=lambda file: file.stat().st_mtime):
        try:
            found.append(BacktestResult.model_validate_json(file.read_text()))
        except ValidationError:
            continue  # of another version; a backtest writes it again
    return found


def waiting_in(results: list[BacktestResult], metric: str, months: float) -> Waiting | None:
    """What waiting so long cost in these; each period once, as the newest result has it."""
    lost = {
        (gain.period, round(gain.months, 2)): Lost(gain.period, gain.months, gain.gain)
        for result in results
        if result.metric == metric
        for gain in result.gains
    }
    return waiting_of(list(lost.values()), months)
