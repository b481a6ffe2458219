# ruff: noqa: RUF012 (pydantic copies defaults)
"""What the steps of the decision say in numbers: selection, evaluation, promotion.

A difference is oriented: above 0 the challenger is better, whichever way its metric points.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, PlainSerializer

from components.common.ensemble_figures import EnsembleFigures
from components.common.figures import Figures

Outcome = Literal["pass", "fail", "unsure", "skipped"]


def _told(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


# JSON has no word for an interval without an end, as that of a single day: it is a text there.
Bound = Annotated[float, PlainSerializer(_told, return_type=float | str, when_used="json")]


class Candidate(Figures):
    """One checkpoint, or the mean of several, on the whole validation split.

    Attributes:
        step: The checkpoint's; of a mean, the last that is in it.
        low, high: Interval of the loss.
        members: Steps that a mean is made of; empty: it is a checkpoint.
        difference, difference_low, difference_high: Paired, its loss minus the best one's.
        as_good: Not distinguishable from the best: the rule chooses among these.
    """

    step: int
    metrics: dict[str, float]
    low: Bound
    high: Bound
    members: list[int] = []
    difference: float = 0.0
    difference_low: Bound = 0.0
    difference_high: Bound = 0.0
    as_good: bool = True


class Optimism(Figures):
    """How much better the chosen candidate looks on the validation split than it is.

    Attributes:
        expected: Mean of it over the draws: what choosing the best of several costs in honesty.
        deviation: Standard deviation of a draw: choosing and sampling together.
        measured: Loss on the holdout minus loss on the validation split, once both are known.
        clusters: What `deviation` was estimated from: clusters of the validation split, counted as
            if of equal size.
        low, high: Where `measured` is expected to lie, given both splits' sampling.
    """

    expected: float
    deviation: float
    clusters: float | None = None
    measured: float | None = None
    low: float | None = None
    high: float | None = None


class SelectFigures(Figures):
    """Attributes:
    chosen: Step of the chosen candidate; of a mean, the last that is in it.
    averaged: Each checkpoint stands for the average that training kept (training.averaging).
    ensemble: Of which what is chosen here is one member; None: it is the candidate by itself.
    alone: Why what is chosen here is the candidate by itself, though settings ask for an ensemble.
    """

    metric: str
    rule: str
    candidates: list[Candidate]
    chosen: int
    damaged: list[str]
    chosen_members: list[int] = []
    averaged: bool = False
    optimism: Optimism | None = None
    ensemble: EnsembleFigures | None = None
    alone: list[str] = []


class Comparison(Figures):
    """Paired difference on the holdout: above 0 the challenger is better.

    Attributes:
        noise: Standard deviation of retraining, which is inside the interval.
        clusters: Independent units that were drawn.
    """

    against: str
    difference: float
    low: Bound
    high: Bound
    noise: float
    clusters: int


class Gate(Figures):
    """One gate of the decision. `unsure` holds back just as `fail` does, and says so.

    Attributes:
        kind: What is judged; gates of one kind are drawn on one axis.
        value, low, high: What was measured and its interval; None: nothing was, or it has none.
        limit: What it was held against.
        unit: Of the four; a metric's own name, "ms", "MB"; empty: none.
    """

    name: str
    outcome: Outcome
    observed: str
    threshold: str
    message: str
    kind: Literal[
        "floor", "baseline", "champion", "slices", "calibration", "package", "size", "latency", ""
    ] = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    unit: str = ""


class ReliabilityBin(Figures):
    predicted: float
    observed: float
    rows: int


class SliceFigure(Figures):
    """The main metric on a part of the holdout.

    Attributes:
        words: The part in words: "carrier = AA", "distance above 1,089".
        source: Asked for in the settings, or found by the search.
        challenger, champion: Values of the metric; None: it cannot be computed there.
        difference, low, high: Against the champion; the interval holds for all slices at once.
        margin: How much worse is accepted.
        outcome: `fail`: shown to be worse than its margin; `unsure`: neither shown.
    """

    words: str
    source: Literal["settings", "search"]
    rows: int
    clusters: int
    challenger: float | None
    champion: float | None
    difference: float | None
    low: float | None
    high: float | None
    margin: float
    outcome: Outcome


class NoiseFigure(Figures):
    """What two trainings differ by for their seeds alone.

    Attributes:
        deviation: Standard deviation of the difference of two trainings, in the main metric.
        source: Said in the settings, or measured: with replicas of this run and of earlier ones.
        freedom: Degrees of freedom of a measured deviation; None: taken as known.
        runs: Runs whose replicas it was measured with.
        shift: What their predictions differ by in the mean (`components/common/shift.py`).
    """

    deviation: float
    source: Literal["settings", "replicas"]
    freedom: int | None = None
    runs: list[str] = []
    shift: float | None = None


class QuestionFigure(Figures):
    """How often these holdout rows have been asked for a decision.

    Attributes:
        number: Of the ledger's entry.
        uses: 1 for rows never asked before; each earlier question adds the share of the rows that
            it had asked.
        confidence: Of this question's intervals, so that all of them together are wrong as seldom
            as the settings say.
        left_out: Rows that were asked too often and were left out of this question.
    """

    number: int
    uses: float
    confidence: float
    rows: int
    left_out: int = 0


class SmokeFigures(Figures):
    """The package, loaded afresh in another process and given raw rows.

    Attributes:
        outcome: `fail`: it could not be loaded, or predicts something else than was recorded.
        how: What loaded it: torch alone, or the project's own code beside.
        rows: That were scored.
        largest_difference: From the recorded predictions.
        load_seconds: From the process's start to the loaded package, imports included.
        latency_ms: Median of one row; `latency_p99_ms`: 99th percentile.
        rows_per_second: In batches.
        peak_memory_mb: Of the whole process.
        size_mb: Of the package's files.
    """

    outcome: Literal["pass", "fail"]
    message: str
    how: str = ""
    rows: int = 0
    largest_difference: float | None = None
    load_seconds: float | None = None
    latency_ms: float | None = None
    latency_p99_ms: float | None = None
    rows_per_second: float | None = None
    peak_memory_mb: float | None = None
    size_mb: float | None = None


class EvaluateFigures(Figures):
    """Attributes:
    metrics: Model (challenger, champion, each baseline) to metric to value.
    intervals: The same, to its interval.
    directions: Metric to what is better.
    compared_entry: Number of the promotion-log entry compared against; 0: no champion.
    champion: Its version; empty: none.
    reliability, calibration_error: Of challenger and champion, where probabilities are predicted.
    roc: False positive rate, true positive rate; of binary tasks.
    confusion: Rows: truth; columns: predicted; in the order of `classes`.
    predictions: Key of the per-example predictions in the object store.
    rehearsal: sha256 of some raw holdout rows with the challenger's predictions (the column
        `prediction`, or `prediction.0`, `prediction.1`, …), with which a package is tried out.
    package: sha256 of each file of the package that was judged; no other may be promoted by it.
    """

    verdict: Literal["promote", "hold", "inconclusive"]
    reasons: list[str]
    metric: str
    rows: int
    clusters: int
    compared_entry: int
    champion: str
    metrics: dict[str, dict[str, float]]
    comparisons: list[Comparison]
    gates: list[Gate]
    reliability: dict[str, list[ReliabilityBin]]
    calibration_error: dict[str, float]
    roc: list[tuple[float, float]]
    confusion: list[list[int]]
    predictions: str
    kind: str = "binary"
    classes: list[str] = ["no", "yes"]
    confidence: float = 0.95
    intervals: dict[str, dict[str, tuple[float, float]]] = {}
    directions: dict[str, Literal["lower", "higher"]] = {}
    slices: list[SliceFigure] = []
    noise: NoiseFigure | None = None
    question: QuestionFigure | None = None
    smoke: SmokeFigures | None = None
    optimism: Optimism | None = None
    rehearsal: str = ""
    package: dict[str, str] = {}


class PromoteFigures(Figures):
    """Attributes:
    outcome: `proposed`: the verdict was promote, and the settings want a person to approve it.
    version: Of the new champion or of what is proposed; empty when held.
    entry: Number of the promotion-log entry written; 0: none.
    """

    outcome: Literal["promoted", "proposed", "held"]
    reason: str
    version: str
    entry: int
    champion_before: str
    champion_after: str
    card: str = Field("", description="Key of the model card in the object store; empty: none.")
