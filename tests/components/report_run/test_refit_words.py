"""What page and data of a report say of a refit."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from components.common.records import StepRecord
from components.common.refit_figures import RefitFigures, ShiftFigures, SliceShift
from components.common.refit_words import RISK, told
from components.common.run_record import RunRecord
from components.report_run.page import render
from tests.components.report_run.report_samples import finished

REFIT = RefitFigures(
    outcome="refitted", reason="trained again", judged={"network.pt2": "aa"},
    refitted={"network.pt2": "bb"}, rule="as many passes: 30 of 30 steps", step=30, judged_step=20,
    rows={"train": 1000, "holdout": 500},
    shift=ShiftFigures(mean=0.03, p95=0.1, rows=500, churned=0.02, of_seeds=0.02,
                       slices=[SliceShift(words="shop = north", rows=90, shift=0.05)]),
)  # fmt: skip


def test_the_risk_comes_first_and_both_weights_are_named() -> None:
    text = told(REFIT)
    assert text.startswith(RISK)
    for words in ("1,000 of train, 500 of holdout", "0.0300 in the mean",
                  "1.5 times what two seeds differ by", "2.00% are decided otherwise",
                  "shop = north: 0.0500", "sha256 bb", "the judged model: aa"):  # fmt: skip
        assert words in text


def test_a_refit_that_was_not_taken_says_why_and_one_that_nobody_asked_for_nothing() -> None:
    failed = RefitFigures(outcome="judged", reason="the judged model stays: it failed", judged={})
    assert told(failed) == "the judged model stays: it failed."
    assert told(RefitFigures(outcome="none", reason="hold", judged={})) == ""


@pytest.mark.parametrize("outcome", ["refitted", "judged", "none"])
def test_the_page_has_a_section_of_it_where_there_is_something_to_say(outcome: str) -> None:
    run, records = finished()
    figures = REFIT.model_copy(update={"outcome": outcome})
    page = render(run=run, records=_with(run, records, figures), replay="evertrain run p")
    assert ("Trained again on all rows" in page) == (outcome != "none")
    assert ("not measured" in page) == (outcome == "refitted")


def _with(
    run: RunRecord, records: dict[str, StepRecord], figures: RefitFigures
) -> dict[str, StepRecord]:
    record = StepRecord(
        step="refit_model", run=run.run, run_key="k", status="done",
        started=datetime(2025, 1, 1, tzinfo=UTC), figures=figures.model_dump(mode="json"),
    )  # fmt: skip
    return {**records, "refit_model": record}
