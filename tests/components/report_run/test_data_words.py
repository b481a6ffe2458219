"""Sentences about the data, and whether it is called fit."""

from __future__ import annotations

import pytest
from report_data_cases import DATA_CASES, judged
from report_sample_data import snapshot, split, validation
from report_samples import CASES

from components.common import data_figures as d
from components.report_run import data_words as words
from components.report_run.label_words import label
from components.report_run.seen import absences, read
from components.report_run.verdicts import Fitness, Judgement, judge


def verdict(case: str) -> Judgement:
    run, records = (CASES if case in ("nothing_new", "skipped") else DATA_CASES)[case]()
    seen = read(records)
    return judge(records, seen, absences(seen, run, records))


VERDICTS = {
    "calm": ("fit", "The data is fit to train on.", "4 of 4 expectations held.", "Nothing has to"),
    "warned": ("fit, with warnings", "with 5 warnings.", "carrier has 2 values", "Add them to"),
    "first": ("fit, with warnings", "with 2 warnings.", "7.1 % of the labels", "Look at what"),
    "finding": ("refused", "by validate_data: 3 findings block it.", "departure_delay alone",
                "Find out whether"),
    "expectation": ("refused", "by validate_data: 1 expectation blocks it.", "The data fails 1",
                    "Mend the data, or change"),
    "quarantine": ("refused", "refused by validate_data.", "48214 of 109119 rows", "Mend the data"),
    "wide": ("refused", "120 findings and 60 expectations block it.", "Much is wrong.", "Mend"),
    "no_snapshot": ("refused", "by snapshot_data.", "april.parquet changed", "Wait until"),
    "failed": ("not judged", "The data was not judged.", "The object store did not answer.", ""),
    "nothing_new": ("nothing new", "Nothing changed since an earlier run.",
                    "those of run 20130430T041201Z-11aa.", "--run 20130430T041201Z-11aa"),
    "skipped": ("skipped", "another run was under way", "20130430T041201Z-11aa of eve@laptop holds",
                "a later run"),
}  # fmt: skip


@pytest.mark.parametrize("case", sorted(VERDICTS))
def test_the_verdict_says_whether_the_data_is_fit_why_and_what_to_do(case: str) -> None:
    said = verdict(case)
    fitness, headline, reason, advice = VERDICTS[case]
    assert said.fitness.value == fitness
    for words_, part in ((said.headline, headline), (said.reason, reason), (said.advice, advice)):
        assert part in words_, words_


def test_a_columns_name_at_the_start_of_a_sentence_is_not_written_large() -> None:
    assert verdict("warned").reason.startswith("carrier has 2 values")
    assert words.stated("carrier moved", ["carrier"]) == "carrier moved."
    assert words.stated("the label moved", ["carrier", ""]) == "The label moved."


def test_fit_is_claimed_only_where_validation_ended_well_and_can_be_read() -> None:
    run, records = judged(validation(calm=True))
    for status in ("running", "failed", "interrupted"):
        records["validate_data"].status = status
        seen = read(records)
        said = judge(records, seen, absences(seen, run, records))
        assert said.fitness == Fitness.NOT_JUDGED
    records["validate_data"].status = "done"
    records["validate_data"].figures["rows"] = None
    seen = read(records)
    said = judge(records, seen, absences(seen, run, records))
    assert said.fitness == Fitness.NOT_JUDGED
    assert "cannot be read: rows" in said.reason
    del records["validate_data"]
    seen = read(records)
    assert judge(records, seen, absences(seen, run, records)).fitness == Fitness.NOT_JUDGED


def test_a_split_that_stopped_refuses_data_that_validation_let_pass() -> None:
    run, records = judged(validation(calm=True))
    records["split_data"].status, records["split_data"].reason = "stopped", "the holdout is empty"
    seen = read(records)
    said = judge(records, seen, absences(seen, run, records))
    assert (said.fitness, said.headline) == (
        Fitness.REFUSED, "The data was refused by split_data."
    )  # fmt: skip
    assert said.reason == "The holdout is empty."


def test_what_came_counts_objects_rows_and_what_is_new() -> None:
    assert words.came(snapshot()) == (
        "109,119 rows in 4 objects (3.38 MB); 1 object is new since the snapshot before, with "
        "28,330 rows: flights-2013-04.parquet."
    )
    many = snapshot().model_copy(update={"new_count": 900})
    assert words.came(many).endswith(": among them flights-2013-04.parquet.")
    assert words.came(snapshot(first=True)).endswith("; all of them are new.")
    same = snapshot().model_copy(update={"new_count": 0, "new_rows": 0})
    assert words.came(same).endswith("; no object is new.")


def test_findings_and_expectations_are_counted_by_what_they_do() -> None:
    assert words.found(validation(calm=True)) == "The checks found nothing."
    assert words.found(validation(first=True)) == "1 finding, which warns."
    assert words.found(validation()) == "4 findings, all of which warn."
    assert words.found(validation(broken=True)) == "5 findings: 3 block, 2 warn."
    assert words.expected(validation(calm=True)) == "4 of 4 expectations held."
    assert words.expected(validation()) == "3 of 4 expectations held; failed: 1 as a warning."
    assert words.expected(validation(failed=True)) == (
        "2 of 4 expectations held; failed: 1 blocking, 1 as a warning."
    )


def test_rows_set_aside_are_held_against_the_budget() -> None:
    seen = validation()
    assert words.set_aside(seen, 0.001) == (
        "15 of 109,119 rows (0.01 %) were set aside by 2 rules, within the budget of 0.1 %."
    )
    assert "more than the budget of 0.01 %" in words.set_aside(seen, 0.0001)
    assert words.set_aside(seen, None).endswith("by 2 rules.")
    seen.quarantined = {}
    assert words.set_aside(seen, 0.001) == "No row was set aside."


def test_drift_names_the_columns_that_moved_and_since_when() -> None:
    champion, last = validation(broken=True).drift
    assert words.drifted(champion) == (
        "28,330 rows against 80,789 rows of the data of champion 3: 3 of 13 columns moved, 2 of "
        "them so far that it blocks: temperature, dew_point, carrier."
    )
    champion.since = "2013-04-01"
    assert words.drifted(champion).startswith("28,330 rows since 2013-04-01, against 80,789 rows")
    assert words.since(champion, last) == (
        "Moved since the last snapshot, of 2013-04-01: temperature, carrier; moved before that: "
        "dew_point."
    )
    steady = validation(calm=True).drift[0]
    assert words.drifted(steady).endswith("no column of 13 moved.")
    steady.columns[3].psi = None
    assert words.drifted(steady).endswith(": 12 columns steady, 1 not measured.")


def test_label_shift_and_joint_shift_are_said_or_said_to_be_unknown() -> None:
    drift = validation().drift[0]
    assert label(drift) == (
        "The label is positive in 21.9 % of the labelled rows, before in 20.3 %."
    )
    assert words.joint(drift) == (
        "A classifier tells new rows from old with an AUC of 0.71 (0.5 is guessing, 1 is "
        "certainty), going by temperature, dew_point, carrier."
    )
    drift.label_now = drift.classifier_auc = None
    assert "could not be measured" in label(drift)
    assert "was not measured" in words.joint(drift)


def test_a_column_says_what_it_is_and_was_and_its_categories_that_came_and_went() -> None:
    columns = {c.column: c for c in validation().drift[0].columns}
    assert words.column_changed(columns["temperature"]) == (
        "Mean 52.8, was 38.1. Nulls 2.1 %, were 1.8 %."
    )
    assert words.column_changed(columns["carrier"]) == (
        "Mostly UA, was UA. Nulls 2.1 %, were 1.8 %. New: ZZ, YY. Gone: XX."
    )
    assert words.distance(columns["temperature"]) == "PSI 0.412, threshold 0.094"
    unknown = columns["carrier"].model_copy(update={"psi": None, "threshold": None})
    assert words.distance(unknown) == "PSI not measured"


def test_many_names_are_a_few_and_a_count() -> None:
    assert words.names([f"c{i}" for i in range(1203)]) == "c0, c1, c2 and 1,200 more"


def test_a_columns_extent_is_in_its_own_terms() -> None:
    column = validation().columns[0]
    assert (words.usual(column), words.extent(column)) == ("39.9", "10.9 to 100")
    when = column.model_copy(
        update={"kind": "time", "low": "2013-01-01T00:00:00", "high": "2013-04-30T23:00:00"}
    )
    assert words.extent(when) == "2013-01-01 to 2013-04-30 23:00 UTC"
    assert words.extent(column.model_copy(update={"low": "", "high": ""})) == "–"
    assert words.extent(column.model_copy(update={"low": "7", "high": "7"})) == "7"
    ends = {"low": "-3.672134361", "high": "1000000"}
    assert words.extent(column.model_copy(update=ends)) == "−3.672 to 1,000,000"
    assert words.extent(column.model_copy(update={"low": "1987", "high": "2013"})) == "1987 to 2013"


def test_a_split_without_proof_says_so() -> None:
    assert words.proved(split()) == "3 claims about the parts, each proved by a query:"
    bare = d.SplitFigures(parts={}, unlabelled=0, rule="", proof=[])
    assert "No proof was kept" in words.proved(bare)
