"""The page says what happened, whatever happened, and holds nothing that could harm or leak."""

from __future__ import annotations

import re

import pytest
from report_data_cases import HOSTILE
from report_outline import Outline, check_pictures, data_page_of, page_of
from report_sample_data import snapshot, validation
from report_samples import CASES, REPLAY, RUN, composed, finished, stopped

from components.report_run.data_page import render_data
from components.report_run.page import render

VERDICTS = {
    "promoted": ("PROMOTED", "Version 4 replaces version 3 as champion.", "roll back"),
    "cold_start": ("PROMOTED", "Version 1 is the first champion.", "next run"),
    "held": ("HELD", "Version 3 stays champion.", "“not worse than champion”: it saw -0.0092"),
    "inconclusive": ("INCONCLUSIVE", "The evidence does not decide", "More rows in the holdout"),
    "proposed": (
        "PROPOSED",
        "Version 5 is proposed; a person has to approve it.",
        "evertrain approve PROJECT, or evertrain reject PROJECT. Until then version 3",
    ),
    "stopped": ("STOPPED", "validate_data stopped the run", "Mend flights-2013-04.parquet"),
    "crashed": ("FAILED", "train_distributed failed", "A retry alone will not help"),
    "interrupted": ("INTERRUPTED", "interrupted in train_distributed", "same command again"),
    "nothing_new": ("NOTHING NEW", "so version 3 stays champion", "Nothing has to be done"),
    "skipped": ("SKIPPED", "Another run was under way", "To wait instead: lease.busy: queue"),
}


@pytest.mark.parametrize("case", sorted(VERDICTS))
def test_the_verdict_its_reason_and_what_to_do_come_first(case: str) -> None:
    run, _ = CASES[case]()
    text = Outline(page_of(case)).text
    first = text[: text.index("The picture that decides")]
    for words in (*VERDICTS[case], run.reasons[0][1:]):
        assert words in first


@pytest.mark.parametrize("case", ["promoted", "cold_start", "held", "inconclusive"])
def test_every_gate_shows_its_outcome_what_it_saw_and_its_threshold(case: str) -> None:
    _, records = CASES[case]()
    rows = re.search(r'<table class="gates">.*?</table>', page_of(case), re.S)
    assert rows is not None
    cells = rows.group().split("<tr>")[2:]
    gates = records["evaluate_model"].figures["gates"]
    assert len(cells) == len(gates)
    for gate, cell in zip(gates, cells, strict=True):
        for part in (gate["outcome"], gate["observed"], gate["threshold"]):
            assert part in cell


def test_a_held_model_is_never_called_promoted() -> None:
    for case in sorted(CASES):
        promoted = CASES[case]()[1].get("promote_model")
        if promoted is not None and promoted.figures["outcome"] == "promoted":
            continue
        assert "PROMOTED" not in Outline(page_of(case)).text


def test_a_verdict_without_a_finished_promotion_is_not_called_a_promotion() -> None:
    run, records = finished()
    del records["promote_model"]
    page = render(
        run=run.model_copy(update={"status": "interrupted"}), records=records, replay=REPLAY
    )
    assert "PROMOTED" not in Outline(page).text


@pytest.mark.parametrize("case", ["stopped", "crashed", "interrupted", "nothing_new", "skipped"])
def test_steps_that_were_not_reached_say_so(case: str) -> None:
    _, records = CASES[case]()
    text = Outline(page_of(case)).text
    for name in ("select_checkpoint", "evaluate_model"):
        assert name not in records
        assert re.search(rf"Not reached: [^.]*{name}", text)


def test_every_subset_of_records_makes_a_page() -> None:
    run, records = finished()
    for left_out in records:
        rest = {name: record for name, record in records.items() if name != left_out}
        Outline(render(run=run, records=rest, replay=REPLAY))
    assert "left no record" in Outline(render(run=run, records={}, replay=REPLAY)).text


def test_figures_that_cannot_be_read_are_said_and_not_guessed() -> None:
    run, records = finished()
    records["train_distributed"].figures["curve"][3]["lr"] = None  # how JSON writes NaN
    text = Outline(render(run=run, records=records, replay=REPLAY)).text
    assert "train_distributed left figures that cannot be read: curve.3.lr" in text
    assert "PROMOTED" in text


def test_the_page_says_what_training_cost_and_that_it_went_back() -> None:
    run, records = finished()
    figures = records["train_distributed"].figures
    for i, point in enumerate(figures["curve"]):
        point |= {"seconds_data": 0.001, "seconds_forward": 0.003, "seconds_backward": 0.006}
        point |= {"seconds_optimiser": None if i % 2 else 0.0025, "seconds_communication": 0.0}
        point |= {"peak_memory_bytes": 10**6 * i, "mfu": 0.31, "checkpoint_stall": 0.001}
    figures["curve"][3] |= {"loss": None, "gradient_norm": None}  # every step was skipped
    figures["rollbacks"] = [
        {"step": 120, "to_step": 96, "reason": "the loss is 9", "lr_factor": 0.5}
    ]
    text = Outline(render(run=run, records=records, replay=REPLAY)).text
    assert (
        "A step took 12.5 ms (median of 237 steps measured): backward 48.0 %, forward 24.0 %, "
        "optimiser 20.0 %, data 8.0 %. Model FLOPs utilisation: 31.0 %. Peak memory of the first "
        "process: 236 MB. Checkpoints kept training waiting for 237 ms in all."
    ) in text
    assert "At step 120, to step 96, learning rate × 0.5 from there: the loss is 9." in text


def test_a_training_that_measured_nothing_of_itself_claims_nothing() -> None:
    text = Outline(page_of("promoted")).text
    assert "A step took" not in text
    assert "Peak memory" not in text


def test_the_page_names_data_drift_quarantine_leaks_splits_and_lineage() -> None:
    text = Outline(page_of("promoted")).text
    for words in (
        "1 object is new since the snapshot before, with 28,330 rows", "temperature", "0.412 warns",
        "pressure possible 12 0.01 %", "within the budget of 0.1 %", "objects/5a175a17",
        "moved before that: dew_point", "mean between", "2013-04-17", "no row key is in two parts",
        "step 168", "ECE 0.0094",
        "Area 0.738", "9,588", "linear", "2 min 23 s", "sha256:51c2aa07e1", "4be1c02d9f",
        "torch==2.13.0", "retraining_noise: 0.0008", REPLAY, RUN, "shard model-0",
        "from the cache", "95 % interval", "entry 4 written",
    ):  # fmt: skip
        assert words in text, words
    broken = Outline(page_of("stopped")).text
    assert "departure_delay alone ranks the labels with an AUC of 0.998" in broken
    assert "failed: 1 as a warning" in broken
    assert "refused The data was refused by validate_data" in broken


def test_the_page_shows_every_baseline_its_time_and_why_one_is_absent() -> None:
    text = Outline(page_of("promoted")).text
    assert "trees 0.4733" in text
    assert "linear 0.4861 0.1572 0.2190 0.7090 3.6 s" in text
    assert "Not trained: rule (the task brings none)." in text


def test_a_human_score_stands_beside_the_others_and_is_compared_with_none() -> None:
    run, records = finished()
    text = Outline(page_of("promoted")).text
    assert "human, as recorded – – 0.2456 –" in text
    assert (
        "Human error rate, as evertrain.yaml records it: 0.2456; on the holdout the challenger’s "
        "is 0.2102 (by: three dispatchers, 400 flights each; when: 2012-11). It was not taken on "
        "these rows and has no predictions row by row, so no interval can compare the two."
    ) in text
    compared = [c["against"] for c in records["evaluate_model"].figures["comparisons"]]
    assert "human" not in compared
    del records["evaluate_model"]
    assert "0.2456 (by:" in Outline(render(run=run, records=records, replay=REPLAY)).text


def test_words_from_data_are_escaped_wherever_they_stand() -> None:
    run, records = finished()
    bad, bad_records = stopped()
    for record in [*records.values(), *bad_records.values()]:
        record.figures = _poisoned(record.figures)
        record.reason = HOSTILE
    changed = {"project": HOSTILE, "reasons": [HOSTILE], "hint": HOSTILE,
               "champion_after": HOSTILE, "key": HOSTILE}  # fmt: skip
    pages = [
        page
        for one, its in ((run, records), (bad, bad_records))
        for page in (
            render(run=one.model_copy(update=changed), records=its, replay=HOSTILE),
            render_data(run=one.model_copy(update=changed), records=its)[0],
        )
    ]
    for page in [*pages, data_page_of("hostile")]:
        tags = {tag for tag, _ in Outline(page).tags}
        assert not tags & {"script", "img", "iframe", "object", "embed"}
        assert "<script" not in page
        assert "\x00" not in page
        page.encode()
        check_pictures(page)


def _poisoned(value: object) -> object:
    free = {"key", "column", "name", "observed", "expected", "threshold", "message", "rule", "now",
            "before", "digest", "source", "commit", "reference", "python", "champion", "type",
            "claim", "query", "answer", "hint", "low", "high", "typical", "quarantine"}  # fmt: skip
    if isinstance(value, dict):
        return {
            k: HOSTILE if k in free and isinstance(v, str) else _poisoned(v)
            for k, v in value.items()
        }
    return [_poisoned(v) for v in value] if isinstance(value, list) else value


def test_numbers_that_are_missing_or_infinite_do_not_break_the_page() -> None:
    run, records = composed({"snapshot_data": snapshot(), "validate_data": validation()},
                            champion="3")  # fmt: skip
    figures = records["validate_data"].figures
    columns = figures["drift"][0]["columns"]
    columns[0]["psi"], columns[1]["psi"] = float("nan"), float("inf")
    columns[0]["bars"]["now"][3] = figures["columns"][0]["mean"] = float("nan")
    for page in (
        render(run=run, records=records, replay=REPLAY),
        render_data(run=run, records=records)[0],
    ):
        assert "unknown" in Outline(page).text
        assert not re.search(r"\b(nan|inf|NaN|None)\b", Outline(page).text)
        assert not re.search(r'"[^"]*\b(nan|inf)\b[^"]*"', page)
