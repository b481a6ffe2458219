"""Runs as their data steps left them: what the data's page is tried on."""

from __future__ import annotations

from collections.abc import Callable

from report_sample_data import CHAMPION, bars, drift, expectations, snapshot, split, validation
from report_samples import Records, composed

from components.common import data_figures as d
from components.common.run_record import RunRecord

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=y>&\x00\ud800"
Case = tuple[RunRecord, Records]


def judged(validated: d.ValidateFigures, *, why: str = "", hint: str = "") -> Case:
    """A run whose validation said this; `why`: it stopped there."""
    made = {"snapshot_data": snapshot(), "validate_data": validated}
    if not why:
        return composed({**made, "split_data": split()}, champion="3")
    return composed(made, champion="3", bad=("validate_data", "stopped", 1, why, hint))


def first() -> Case:
    made = {"snapshot_data": snapshot(first=True), "validate_data": validation(first=True)}
    return composed({**made, "split_data": split()}, champion="")


def refused_by_a_finding() -> Case:
    return judged(
        validation(broken=True),
        why="departure_delay alone ranks the labels with an AUC of 0.998 (limit 0.95)",
        hint="find out whether it is known at prediction time",
    )


def refused_by_an_expectation() -> Case:
    return judged(
        validation(failed=True),
        why="the data fails 1 blocking expectation: values between on distance",
        hint="mend the data, or change the suite if it is wrong",
    )


def refused_for_rows_set_aside() -> Case:
    figures = validation(calm=True)
    figures.quarantined = {"pressure_possible": 48211, "seats_possible": 3}
    return judged(figures, why="48214 of 109119 rows break row rules, more than 0.10 %")


def wide(columns: int = 200, *, name: str = "a_column_with_a_rather_long_name") -> Case:
    """Two references, three findings in four, every picture there can be."""
    figures = validation(broken=True)
    kinds = ("number", "category", "time", "boolean")
    base = {c.kind: c for c in figures.columns}
    figures.columns = [
        base["number" if i % 2 else "category"].model_copy(
            update={"column": f"{name}_{i}", "kind": kinds[i % 4]}
        )
        for i in range(columns)
    ]
    for one in figures.drift:
        one.columns = [
            one.columns[i % 5].model_copy(
                update={
                    "column": f"{name}_{i}",
                    "kind": kinds[i % 4],
                    "bars": bars("number", shift=i % 7, bins=50),
                }
            )
            for i in range(columns)
        ]
    figures.findings = figures.findings * 40
    figures.expectations = expectations(failed=True, calm=False) * 60
    return judged(figures, why="much is wrong")


def bare() -> Case:
    """Everything that may be missing is."""
    figures = validation(calm=True)
    for one in figures.columns:
        one.mean, one.label_correlation = None, None
        one.low = one.high = one.typical = ""
        one.bars = d.Bars(labels=[], now=[], before=[])
    figures.drift = [drift(CHAMPION)]
    figures.drift[0].label_now = figures.drift[0].label_before = None
    figures.drift[0].classifier_auc, figures.drift[0].classifier_columns = None, []
    for moved in figures.drift[0].columns:
        moved.psi = moved.js = moved.ks = moved.chi2_p = moved.threshold = None
        moved.now = moved.before = ""
        moved.bars = d.Bars(labels=[], now=[], before=[])
    figures.quarantined, figures.quarantine, figures.expectations = {}, "", []
    return judged(figures)


def no_snapshot() -> Case:
    why = "april.parquet changed while it was read"
    bad = ("snapshot_data", "stopped", 1, why, "wait until it is written, then run again")
    return composed({"snapshot_data": None}, champion="3", bad=bad)


def failed() -> Case:
    bad = ("validate_data", "failed", 3, "the object store did not answer", "")
    return composed({"snapshot_data": snapshot(), "validate_data": None}, champion="3", bad=bad)


def hostile() -> Case:
    """Markup in every word that comes from data."""
    run, records = wide(30, name=HOSTILE)
    for record in records.values():
        record.figures = _poisoned(record.figures)
        record.reason = record.hint = HOSTILE
    return run.model_copy(update={"project": HOSTILE}), records


def _poisoned(value: object, key: str = "") -> object:
    if isinstance(value, dict):
        fixed = {"kind", "level", "check", "decision", "config"}
        return {k: v if k in fixed else _poisoned(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_poisoned(v, key) for v in value]
    return HOSTILE if isinstance(value, str) and key != "column" else value


DATA_CASES: dict[str, Callable[[], Case]] = {
    "calm": lambda: judged(validation(calm=True)),
    "warned": lambda: judged(validation()),
    "first": first,
    "finding": refused_by_a_finding,
    "expectation": refused_by_an_expectation,
    "quarantine": refused_for_rows_set_aside,
    "wide": wide,
    "bare": bare,
    "no_snapshot": no_snapshot,
    "failed": failed,
    "hostile": hostile,
}
