"""What the templates of the data need: the same section stands in the report and alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from components.common.data_figures import (
    ColumnDrift,
    Drift,
    SnapshotFigures,
    ValidateFigures,
)
from components.common.records import StepRecord
from components.common.run_record import RunRecord
from components.report_run import data_pictures, data_words, label_words
from components.report_run.seen import Seen, absences
from components.report_run.verdicts import judge


@dataclass(frozen=True)
class Card:
    """A column with its picture and the shares that it shows: label, now, before."""

    column: ColumnDrift
    picture: Markup
    shares: list[tuple[str, float, float | None]]


@dataclass(frozen=True)
class Comparison:
    """A reference with its pictures."""

    name: str  # in ids
    drift: Drift
    bars: Markup
    cut: bool  # of the bars some are longer than they are drawn
    cards: list[Card]  # of the columns that moved


def data_section(run: RunRecord, records: dict[str, StepRecord], seen: Seen) -> dict[str, Any]:
    """Return what `template_data.html` and `template_split.html` need.

    Args:
        run: The composed run.
        records: What the steps left.
        seen: Their figures.
    """
    absent = absences(seen, run, records)
    return {
        "run": run,
        "records": records,
        "seen": seen,
        "absent": absent,
        "judgement": judge(records, seen, absent),
        "comparisons": comparisons(seen.validate_data),
        "budget": quarantine_budget(seen.snapshot_data),
        "said": data_words,
        "labels": label_words,
        "spark": data_pictures.spark,
        "level_words": data_pictures.WORDS,
    }


def comparisons(seen: ValidateFigures | None) -> list[Comparison]:
    """The references, the first with its pictures in full."""
    return [_comparison(drift, index) for index, drift in enumerate(seen.drift if seen else [])]


def _comparison(drift: Drift, index: int) -> Comparison:
    name = f"drift-{index}"
    most = data_pictures.MOST_CARDS[min(index, 1)]
    cards = [
        _card(column, f"{name}-column-{i}")
        for i, column in enumerate(data_words.moved(drift)[:most])
    ]
    bars = data_pictures.drift_bars(drift, name)
    return Comparison(name, drift, bars, data_pictures.is_cut(drift), cards)


def _card(column: ColumnDrift, name: str) -> Card:
    bars = data_pictures.few_bins(column)
    before: Sequence[float | None] = bars.before or [None] * len(bars.now)
    shares = list(zip(bars.labels, bars.now, before, strict=True))
    return Card(column, data_pictures.column_card(column, name), shares)


def quarantine_budget(snapshot: SnapshotFigures | None) -> float | None:
    """The share of rows that may be set aside, as the run was configured."""
    section = snapshot.provenance.config.get("validation") if snapshot else None
    budget = section.get("quarantine_budget") if isinstance(section, dict) else None
    return float(budget) if isinstance(budget, (int, float)) else None
