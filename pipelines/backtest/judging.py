"""What the pipeline's own evaluation decided in a run.

The champion in a backtest's store is that of the policy `ours`, so the verdict of each of its runs
is that policy's decision: nothing is decided a second time here. Whoever changes how evaluate_model
and promote_model say so changes this one place.
"""

from __future__ import annotations

from typing import NamedTuple

from components.common.decision_figures import EvaluateFigures, PromoteFigures
from components.common.records import StepRecord


class Judged(NamedTuple):
    """A run's decision: whether its model became champion, and the first reason."""

    promoted: bool
    reason: str


def judged(records: dict[str, StepRecord]) -> Judged | None:
    """Return the decision; None where the run did not get to one."""
    evaluated, promoted = (records.get(name) for name in ("evaluate_model", "promote_model"))
    if evaluated is None or promoted is None or not promoted.figures or not evaluated.figures:
        return None
    verdict = EvaluateFigures.model_validate(evaluated.figures)
    figures = PromoteFigures.model_validate(promoted.figures)
    return Judged(figures.outcome == "promoted", (verdict.reasons or [figures.reason])[0])
