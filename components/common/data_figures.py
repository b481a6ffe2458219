"""What the three data steps say in numbers; see `figures.py`.

Shares are between 0 and 1, of rows. A figure that could not be taken is None, never 0.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from components.common.data_settings import CheckName
from components.common.figures import Figures, Provenance


class DataObject(Figures):
    """One object of a snapshot."""

    key: str
    size: int
    version: str
    sha256: str
    rows: int
    new: bool = False  # not in the snapshot before this one


class SnapshotFigures(Figures):
    digest: str
    source: str
    rows: int
    object_count: int
    new_count: int  # objects that were not in the snapshot before this one
    new_rows: int
    size: int  # bytes
    objects: list[DataObject]  # the newest by key, at most `MOST_OBJECTS`
    decision: Literal["train", "nothing_new"]
    same_key_run: str = ""  # the run that already finished with this key
    start: str = ""  # what training begins with, in words; empty: as initialised
    teacher: str = ""  # whom it learns from beside the labels, in words; empty: nobody
    provenance: Provenance


MOST_OBJECTS = 50


class Expectation(Figures):
    """One expectation of the suite and what was seen."""

    name: str
    column: str
    severity: str
    success: bool
    expected: str
    observed: str


class Finding(Figures):
    """What a check other than the suite found: nothing is said where nothing is wrong."""

    check: CheckName
    column: str  # empty: the rows as a whole
    level: Literal["block", "warn"]
    measured: float | None
    limit: float | None
    message: str  # a sentence without its full stop: what, where, how much
    hint: str = ""


LabelKind = Literal["binary", "multiclass", "multilabel", "regression", "sequence"]
Why = Literal[
    "off",  # in validation.levels
    "refused",  # by the suite, which comes first
    "no_key",  # the data lacks a column of the row's key
    "no_rows",  # all were put aside, or none came
    "no_time",  # there is no time column
    "no_reference",
    "no_new_rows",  # since any reference
    "kind",  # there is no such check of a label of this kind
]


class NotRun(Figures):
    """Checks that were not made, so that finding nothing says nothing of them."""

    checks: list[CheckName]
    why: Why


class Bars(Figures):
    """A small histogram, now and before, of the same bins."""

    labels: list[str]  # of the bins: categories, or "low to high"
    now: list[float]  # shares of rows
    before: list[float]  # empty: nothing to compare with


class ColumnFigures(Figures):
    """What a column of the snapshot looks like."""

    column: str
    kind: Literal["number", "category", "time", "boolean"]
    type: str  # as DuckDB names it
    nulls: float
    distinct: int  # about
    low: str  # smallest value, or ""
    high: str
    typical: str  # median, or the most frequent category
    mean: float | None
    label_correlation: float | None  # Pearson for numbers, Cramer's V for categories
    bars: Bars


class ColumnDrift(Figures):
    """How far a column of the new rows is from a reference."""

    column: str
    kind: Literal["number", "category", "time", "boolean"]
    psi: float | None  # population stability index, nulls being a bin of their own
    js: float | None  # Jensen-Shannon distance, base 2: 0 the same, 1 nothing in common
    ks: float | None  # Kolmogorov-Smirnov; numbers only
    chi2_p: float | None  # categories only; rows as independent, so for orientation only
    threshold: float | None  # of the PSI, from the data's own history; None: no history
    level: Literal["steady", "warn", "block", "off"]  # off: measured, and not judged
    now: str  # mean, or the most frequent category
    before: str
    null_now: float
    null_before: float
    new_categories: list[str]  # the most frequent ones
    vanished_categories: list[str]
    bars: Bars


class Drift(Figures):
    """The new rows against one reference."""

    reference: str  # in words: "the data of champion 3"
    rows_now: int
    rows_before: int
    since: str = ""  # first day of the new rows, but for the earliest of 1,000; empty: no time
    columns: list[ColumnDrift]  # the furthest first
    label_now: float | None  # mean of a binary label
    label_before: float | None
    classifier_auc: float | None  # of telling new rows from old, cross-validated
    classifier_columns: list[str]  # what it goes by, the most telling first
    label_kind: LabelKind = "binary"
    label_columns: list[str] = Field(default_factory=list)  # among `columns`


class ValidateFigures(Figures):
    rows: int  # of the snapshot, those put aside included
    new_rows: int  # since the reference
    quarantined: dict[str, int]  # rule -> rows
    quarantine: str  # key of the rows put aside in the object store; empty: none
    expectations: list[Expectation]
    warnings: int  # expectations that failed without blocking
    columns: list[ColumnFigures]
    drift: list[Drift]  # against the champion's data, against the last snapshot; or fewer
    findings: list[Finding]  # those that block first
    not_run: list[NotRun] = Field(default_factory=list)
    label_kind: LabelKind = "binary"


class Part(Figures):
    """Train, validation or holdout."""

    rows: int
    start: str
    end: str
    positive_rate: float | None = None  # of a binary label; None: it is of another kind
    # binary: share of yes; multilabel: of each label; multiclass: share of each class; regression:
    # mean; sequence: mean number of tokens
    labels: dict[str, float] = Field(default_factory=dict)


class Proof(Figures):
    """A query whose answer shows that the parts are apart."""

    claim: str
    query: str
    answer: str


class SplitFigures(Figures):
    parts: dict[str, Part]
    unlabelled: int
    rule: str
    proof: list[Proof]
    kind: LabelKind = "binary"
    # in words: values of the label that are none, rare classes that a part lacks
    notes: list[str] = Field(default_factory=list)
