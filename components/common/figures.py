"""What each step says in numbers: the contract between the steps, `run.json` and the report.

Every step fills one of these into the `figures` of its record; the report reads nothing else.
Those of the three data steps are in `data_figures.py`, those of the decision in
`decision_figures.py`.
Losses and metrics are means over rows. Times are seconds, instants are UTC in ISO 8601.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class Figures(BaseModel):
    """Base of all figures."""

    model_config = ConfigDict(extra="forbid")


class Provenance(Figures):
    """What is needed to run the same again."""

    code_digest: str
    config_digest: str
    commit: str
    dirty: bool | None
    image_digest: str
    python: str
    packages: dict[str, str]
    config: dict[str, Any]
    overrides: list[str] = []  # settings that were given on the command line


class Heat(Figures):
    """A chart of values by row and column."""

    rows: list[str]
    columns: list[str]
    values: list[list[float | None]]


class Sample(Figures):
    """One example: the raw row beside what the network gets."""

    raw: dict[str, str]
    network: dict[str, str]
    images: dict[str, str] = {}  # PNG in base64, by name


class Check(Figures):
    """One sanity check of the training code: `training_core.checks.contract.Finding`, bounded."""

    name: str
    verdict: Literal["pass", "warn", "fail", "not_applicable", "skipped"]
    measured: float | None
    limit: float | None
    message: str
    advice: str = ""
    curves: dict[str, list[tuple[int, float]]] = {}  # value by step
    table: list[dict[str, str | float]] = []
    heat: Heat | None = None
    samples: list[Sample] = []
    seconds: float = 0.0


class CheckFigures(Figures):
    checks: list[Check]
    curves: dict[str, list[tuple[int, float]]] = {}  # of runs recorded before checks had their own
    seconds: float = 0.0
    planned_seconds: float | None = None  # expected time of the planned training


class HumanFigure(Figures):
    """A score of people, as the configuration records it: not taken on these rows."""

    metric: str
    value: float
    by: str
    when: str


class BaselineFigures(Figures):
    validation: dict[str, dict[str, float]]  # baseline -> metric -> value
    seconds: dict[str, float] = {}  # baseline -> to fit it and to predict
    absent: dict[str, str] = {}  # baseline -> why it was not trained
    human: HumanFigure | None = None


class TrainPoint(Figures):
    """One log interval: `training_core.outcome.Point`, where each figure is explained."""

    step: int
    loss: float | None  # None (as JSON writes NaN): every step of the interval was skipped
    lr: float
    gradient_norm: float | None
    samples_per_second: float
    samples: int = 0
    update_norm: float | None = None
    skipped_steps: int = 0
    seconds_data: float | None = None
    seconds_forward: float | None = None
    seconds_backward: float | None = None
    seconds_optimiser: float | None = None
    seconds_communication: float | None = None
    checkpoint_stall: float = 0.0
    peak_memory_bytes: int | None = None
    mfu: float | None = None


class Rollback(Figures):
    """A return to an earlier checkpoint, because training had diverged."""

    step: int
    to_step: int
    reason: str
    lr_factor: float  # what the schedule's learning rate is multiplied with from then on


class EvaluationPoint(Figures):
    step: int
    metrics: dict[str, float]


class MemberTraining(Figures):
    """One of several trainings of a run, which differ by their seeds.

    Attributes:
        seconds: It took, by its rate of samples; None: not known.
        found_finished: It was there already: an attempt before had trained it to its end.
        loss: Of its last evaluation on the validation split.
    """

    seed: int
    steps: int
    seconds: float | None = None
    found_finished: bool = False
    stop_reason: str = ""
    loss: float | None = None


class TrainFigures(Figures):
    parameters: int
    steps: int
    samples: int
    epochs: float
    processes: int  # on all nodes
    nodes: int = 1
    found_finished: bool = False  # its result was there already: an attempt before had ended well
    start: str = ""  # what it began with, in words; empty: as initialised
    members: list[MemberTraining] = []  # where ensemble.of is seeds: trainings of other seeds
    teacher: str = ""  # whom it learned from beside the labels, in words; empty: nobody
    device: str
    precision: str
    resumed_from: int  # the step it went on from; 0: started afresh
    skipped_steps: int
    stop_reason: str
    samples_per_second: float
    rollbacks: list[Rollback] = []
    curve: list[TrainPoint]
    evaluations: list[EvaluationPoint]
    checkpoints: list[int]  # steps of the checkpoints that are kept
    damaged: list[str]  # checkpoints that were passed over, and why
