# ruff: noqa: RUF012 (pydantic copies defaults)
"""What a refit came to: the certificate that ties its weights to the model that was judged."""

from __future__ import annotations

from typing import Literal

from components.common.decision_figures import EvaluateFigures, Gate, SmokeFigures
from components.common.figures import Figures


class SliceShift(Figures):
    """The shift within a part of the holdout."""

    words: str
    rows: int
    shift: float


class ShiftFigures(Figures):
    """How far the refitted model's predictions are from the judged one's, on the holdout's rows.

    Attributes:
        mean: As `components/common/shift.py` has it for the kind.
        p95: 95th percentile of a row's.
        churned: Share of rows that are decided otherwise; None: numbers are predicted.
        of_seeds: The same between two trainings that differ by their seeds; None: not measured.
        slices: The largest first.
    """

    mean: float
    p95: float
    rows: int
    churned: float | None = None
    of_seeds: float | None = None
    slices: list[SliceShift] = []


class RefitFigures(Figures):
    """Which of two models is to be promoted, and what is known of either.

    Attributes:
        outcome: `refitted`; `judged`: the refit was not taken; `none`: none was asked for.
        reason: Why, in words.
        judged: sha256 of each file of the package that evaluate_model judged.
        refitted: Of the package that was trained on all rows; empty: there is none.
        evaluation: Digest of evaluate_model's figures, which are the judged model's.
        judged_step, step: Of the judged checkpoint; where the refit ended. Of a mean, its last.
        members: Steps of the refit's mean; empty: it is one checkpoint.
        rows: By part, that it was trained on.
        seen: As in a promotion entry, the holdout included.
        gates: What the refitted package was held against.
        metrics: On the holdout: the judged model's, and the refitted one's, which has learned from
            these rows.
        rehearsal: sha256 of raw rows with the refitted model's predictions.
        seconds: Of the refit and its comparison, in the attempt that made it.
    """

    outcome: Literal["refitted", "judged", "none"]
    reason: str
    judged: dict[str, str]
    refitted: dict[str, str] = {}
    evaluation: str = ""
    rule: str = ""
    judged_step: int = 0
    step: int = 0
    members: list[int] = []
    rows: dict[str, int] = {}
    seen: dict[str, str] = {}
    shift: ShiftFigures | None = None
    gates: list[Gate] = []
    smoke: SmokeFigures | None = None
    metrics: dict[str, dict[str, float]] = {}
    rehearsal: str = ""
    seconds: float = 0.0


class DecidedFigures(EvaluateFigures):
    """A verdict as promote_model takes it.

    Attributes:
        refit: What became of the refit; None: the pipeline has none.
    """

    refit: RefitFigures | None = None
