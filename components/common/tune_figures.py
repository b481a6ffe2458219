# ruff: noqa: RUF012 (pydantic copies defaults)
"""What the search of settings found: the step's record, the page and `--json` say the same."""

from __future__ import annotations

from typing import Literal

from components.common.figures import Figures
from components.common.tune_settings import Role, Value

Ended = Literal["running", "finished", "pruned", "diverged", "failed"]


class TrialFigures(Figures):
    """One trial.

    Attributes:
        sampler: What proposed it: quasi_random, bayesian, or present (the settings as they are).
        values: Of the searched settings, by path.
        value: The metric at its best checkpoint; None: it has none.
        best_step: Of that checkpoint.
        seconds: That its last process trained.
        evaluations: (step, metric) on the validation split.
        curve: (step, training loss), thinned.
    """

    number: int
    sampler: str
    values: dict[str, Value]
    ended: Ended = "running"
    reason: str = ""
    value: float | None = None
    best_step: int | None = None
    steps: int = 0
    seconds: float = 0.0
    evaluations: list[tuple[int, float]] = []
    curve: list[tuple[int, float | None]] = []


class DimensionFigures(Figures):
    """A setting that was searched, and what the search says of its range.

    Attributes:
        range: In words.
        importance: Share in how trials differ, by fANOVA; None: too few trials.
        boundary: low, high, or nothing: where the best trials gather.
        advice: What to do about it, in words.
    """

    path: str
    role: Role
    present: Value
    range: str
    log: bool
    low: float | None
    high: float | None
    choices: list[Value] = []
    importance: float | None = None
    boundary: Literal["", "low", "high"] = ""
    advice: str = ""


class IsolationFigures(Figures):
    """What a setting is worth, all others searched: the best trial of each piece of its range."""

    path: str
    pieces: list[IsolationPiece]


class IsolationPiece(Figures):
    """A piece of a range: its words, its trials, the best of them."""

    words: str
    middle: float
    trials: int
    best: float | None
    number: int | None


class CurveFinding(Figures):
    """What the curve of one of the best trials shows, and what to try."""

    trial: int
    finding: str
    words: str
    advice: str


class Repeated(Figures):
    """Two settings trained with the same seeds: what the second loses, seed by seed.

    Attributes:
        seeds: The differences, in the order of the seeds; above 0: the winner is better.
        error: Standard error of their mean over the seeds.
    """

    mean: float
    error: float
    seeds: list[float]


class ChangeFigures(Figures):
    """One line of the patch.

    Attributes:
        gained: What the winner loses on validation with this setting put back.
        note: Where it was not measured, why.
    """

    path: str
    old: Value
    new: Value
    gained: Repeated | None = None
    note: str = ""


class HoldoutFigures(Figures):
    """The one look at the holdout: present settings minus winner, means over the seeds, paired.

    Attributes:
        question: Number in the ledger of questions.
        uses: How often its rows have been asked, this time included.
    """

    mean: float
    low: float
    high: float
    confidence: float
    clusters: int
    rows: int
    present: float
    winner: float
    question: int
    uses: float


class ComparisonFigures(Figures):
    """Winner against the present settings, both trained with several seeds.

    Attributes:
        validation: On the rows that the winner was chosen by, which flatters it.
        holdout: None: it was not looked at.
        better: Whether the seeds show the winner ahead on validation.
    """

    validation: Repeated
    present: list[float]
    winner: list[float]
    better: bool
    words: str
    holdout: HoldoutFigures | None = None


class TuneFigures(Figures):
    """The whole search."""

    study: str
    asked: str = ""  # digest of the budget, and of what was to be compared
    project: str
    metric: str
    direction: Literal["minimise", "maximise"]
    run: str = ""
    batch_size: int | None = None
    trials: list[TrialFigures]
    seconds: float
    stopped_by: str
    winner: int | None = None
    dimensions: list[DimensionFigures]
    held: dict[str, Value] = {}
    notes: list[str] = []
    enough: str = ""
    isolation: list[IsolationFigures] = []
    curves: list[CurveFinding] = []
    changes: list[ChangeFigures] = []
    comparison: ComparisonFigures | None = None
    overrides: list[str] = []  # of the winner, as --set takes them


IsolationFigures.model_rebuild()
