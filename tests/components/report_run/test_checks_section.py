"""What the checks of the training code found, in the report and on a page of its own."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from report_data_cases import HOSTILE
from report_outline import Outline, check_pictures, checks_page_of, page_of
from report_sample_checks import checks
from report_sample_findings import findings, recorded
from report_samples import REPLAY, finished

from components.check_training.recording import figures_of
from components.common.figures import CheckFigures
from components.report_run import check_words
from components.report_run.check_pictures import image
from components.report_run.checks_page import render_checks
from components.report_run.page import render
from training_core.checks.contract import Finding, Heat, Sample

WHEN = datetime(2026, 1, 2, tzinfo=UTC)


def report_of(figures: CheckFigures | dict[str, Any]) -> str:
    run, records = finished()
    data = figures if isinstance(figures, dict) else figures.model_dump(mode="json")
    records["check_training"].figures = data
    return render(run=run, records=records, replay=REPLAY)


def alone(figures: CheckFigures) -> str:
    return render_checks(figures, project="flights", when=WHEN)


def in_order(text: str, *parts: str) -> None:
    places = [text.index(part) for part in parts]
    assert places == sorted(places), list(zip(parts, places, strict=True))


@pytest.mark.parametrize("page", ["broken", "checks"])
def test_the_worst_comes_first_and_every_check_is_there_with_its_reason(page: str) -> None:
    text = Outline(checks_page_of() if page == "checks" else page_of("broken")).text
    in_order(
        text, "What is broken", "overfit one batch", "gradient dependency", "What may be wrong",
        "update to weight ratio", "What is well", "rows keep their labels",
        "What this task does not have", "no future reaches the past", "The task has no augment()",
        "What was not looked at", "seconds of checks.seconds are used up",
    )  # fmt: skip
    for finding in findings():
        assert finding.message[1:] in text
        assert finding.advice[1:] in text
    assert "Measured 0.61, limit 0.05; took 6.3 s; named overfit_one_batch" in text


def test_a_run_that_a_check_stopped_says_so_at_the_top_with_what_to_do() -> None:
    text = Outline(page_of("broken")).text
    first = text[: text.index("The picture that decides")]
    for words in (
        "STOPPED", "check_training stopped the run, so version 3 stays champion",
        "The training code is broken (overfit_one_batch): after 400 steps",
        "also failed: gradient_dependency",
        "Let the gradient reach embedding.weight", "nothing was trained",
    ):  # fmt: skip
        assert words in first
    assert re.search(r"Not reached: [^.]*train_distributed", text)


def test_the_time_of_the_checks_is_shown_beside_the_training_that_is_planned() -> None:
    assert (
        "The checks took 24 s, 0.70 % of the 58 min 00 s that training is expected to take."
        in Outline(page_of("broken")).text
    )
    unknown = recorded().model_copy(update={"planned_seconds": None})
    assert check_words.share_of_plan(unknown) == "The checks took 24 s."
    assert check_words.share_of_plan(checks()) == ""  # recorded before it was measured


def test_the_page_alone_begins_with_its_verdict() -> None:
    sane = figures_of([f for f in findings(broken=False) if f.verdict != "warn"])
    for figures, words in (
        (recorded(), ("BROKEN", "is broken: 2 checks failed", "Let the gradient")),
        (recorded(broken=False), ("SANE, WITH WARNINGS", "1 warning", "Lower the learning rate")),
        (sane, ("SANE", "Nothing is wrong with the training code", "Nothing has to be done")),
        (figures_of([]), ("NOT JUDGED", "nothing was looked at", "No check was made")),
    ):
        text = Outline(alone(figures)).text
        for part in words:
            assert part in text


def test_records_of_before_checks_had_their_own_curves_are_still_read() -> None:
    old: dict[str, Any] = {
        "checks": [
            {"name": "overfit_one_batch", "verdict": "pass", "measured": 0.01, "limit": 0.05,
             "message": "32 rows were learned"},
            {"name": "throughput", "verdict": "skipped", "measured": None, "limit": None,
             "message": "only on a GPU"},
        ],
        "curves": {"overfit_one_batch": [[0, 0.7], [10, 0.01]]},
    }  # fmt: skip
    text = Outline(report_of(old)).text
    assert "2 checks: none failed, 1 passed, 1 not made." in text
    assert "overfit one batch: from 0.700 to 0.0100." in text
    assert "a sound model learns one batch by heart" in text


def test_what_a_check_saw_is_drawn_and_stands_in_tables_behind_the_pictures() -> None:
    page = checks_page_of()
    text = Outline(page).text
    check_pictures(page)
    assert "8 rows by 8 columns; the largest is 0.310 (input row 0, out 0)" in text
    assert "The chart as a table" in text
    chart = page[page.index("The chart as a table") :]
    assert re.search(r'<th scope="row">input row 7</th>.*?−0\.02', chart, re.S)
    assert "blocks.13.attention.output" in text
    assert "12 of 64" in text
    assert "24 curves, each a thin line" in text
    assert page.count("data:image/png;base64,") == 4
    assert "network of example 2" in text
    assert "28 by 28 pixels, 4 times as large." in text
    in_order(text, "Raw row", "departure_hour", "As the network gets it", "categories[carrier]")


def hostile() -> list[Finding]:
    names = [f"{HOSTILE}{i}" for i in range(5)]
    pixels = [["#00ff00"] * 3] * 3
    return [
        replace(
            finding,
            name=f"{HOSTILE}{i}",
            message=HOSTILE,
            advice=HOSTILE,
            curves={n: [(0, 1.0), (1, 0.5)] for n in names},
            table=[dict.fromkeys(names, HOSTILE)],
            heat=Heat(rows=names, columns=names[:2], values=[[1.0, -2.0]] * 5),
            samples=[Sample(raw={HOSTILE: HOSTILE}, network={HOSTILE: HOSTILE},
                            images={HOSTILE: pixels})],
        )
        for i, finding in enumerate(findings())
    ]  # fmt: skip


def test_words_of_a_check_are_escaped_wherever_they_stand() -> None:
    for page in (alone(figures_of(hostile())), report_of(figures_of(hostile()))):
        tags = {tag for tag, _ in Outline(page).tags}
        assert not tags & {"script", "img", "iframe", "object", "embed"}
        assert "<script" not in page
        assert "\x00" not in page
        check_pictures(page)


@pytest.mark.parametrize("png", ["", 'x"/><script>', "QUJD", "aGVsbG8gaGVsbG8gaGVsbG8gaGVsbG8h"])
def test_what_is_no_picture_is_not_put_on_the_page(png: str) -> None:
    assert image(png, "p", words="w") == ""


def test_checks_that_saw_everything_leave_the_page_small_and_it_says_what_it_left_out() -> None:
    names = [f"<&>a_name_of_a_parameter_{i}" for i in range(200)]
    finding = replace(
        findings()[2],
        message="<&>" * 400,
        advice="<&>" * 400,
        curves={n: [(i, i / 7) for i in range(300)] for n in names},
        table=[dict.fromkeys(names, "<&>" * 50) for _ in range(50)],
        heat=Heat(rows=names, columns=names, values=[[1 / 3] * 200] * 200),
        samples=[Sample(raw=dict.fromkeys(names, "<&>" * 90), network={})] * 20,
    )
    (one,) = figures_of([finding]).checks  # 70 of them are more than a record holds
    figures = CheckFigures(checks=[one.model_copy(update={"name": f"c_{i}"}) for i in range(70)])
    for page in (alone(figures), report_of(figures)):
        assert len(page.encode()) < 300_000
        text = Outline(page).text
        assert re.search(r"And \d+ checks more", text)
        assert "More of what it saw would make this page too large" in text
        assert "c 3" in text


def test_numbers_that_are_missing_or_infinite_do_not_break_the_page() -> None:
    figures = recorded()
    for check in figures.checks:
        check.measured, check.limit = float("nan"), float("inf")
        check.curves = {"loss": [(0, float("nan")), (1, float("inf"))]}
        check.heat = None
        check.table = [{"a": float("nan")}, {"b": "only here"}]
    text = Outline(alone(figures)).text
    assert "unknown" in text
    assert "only here" in text
    assert not re.search(r"\b(nan|inf|NaN|None)\b", text)
