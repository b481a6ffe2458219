"""`report.json` says what the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
from report_outline import Outline, page_of
from report_samples import CASES, REPLAY

from components.report_run.twin import report

SCHEMA = Path(__file__).parents[3] / "docs" / "report.schema.json"
NUMBER = re.compile(r"(?<![\w.,])[-−+]?\d[\d,]*(?:\.\d+)?(?![\w]|[.,]\d)")
SHOWN = {
    "verdict": r'<section class="verdict".*?</section>',
    "gates": r'<table class="gates">.*?</table>',
    "slices": r'<table class="slices">.*?</table>',
}


def data_of(case: str) -> dict[str, object]:
    run, records = CASES[case]()
    made = report(run=run, records=records, replay=REPLAY)
    return json.loads(made.model_dump_json())  # type: ignore[no-any-return]


def numbers_in(value: object) -> set[float]:
    """Every number of a JSON document, also those in its sentences."""
    if isinstance(value, dict):
        return set().union(*map(numbers_in, value.values()), *map(numbers_in, value))
    if isinstance(value, list):
        return set().union(*map(numbers_in, value))
    if isinstance(value, str):
        return {as_number(found) for found in NUMBER.findall(value)}
    return {float(value)} if isinstance(value, (int, float)) else set()


def as_number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", "").replace("+", ""))


def missing_from(shown: str, data: object) -> list[str]:
    there = numbers_in(data)
    texts = NUMBER.findall(re.sub(r"\d+ class|[\w-]+://\S+", " ", shown))
    return [
        text
        for text in texts
        if not any(
            abs(abs(as_number(text)) - abs(known)) <= 0.5001 * 10.0 ** -len(text.partition(".")[2])
            for known in there
        )
    ]


@pytest.mark.parametrize("case", ["promoted", "rich", "rich_held", "slice_worse", "proposed"])
def test_every_number_of_verdict_gates_and_slices_is_in_the_json(case: str) -> None:
    data, page = data_of(case), page_of(case)
    for part, pattern in SHOWN.items():
        found = re.search(pattern, page, re.S)
        assert found or (part, case) == ("slices", "promoted")
        if found:
            assert missing_from(Outline(found.group()).text, data) == []


def test_a_number_that_the_json_does_not_hold_is_noticed() -> None:
    data = data_of("slice_worse")
    assert missing_from("it saw 0.03121 of 77,123", data) == ["0.03121", "77,123"]
    data["evaluation"]["slices"] = []  # type: ignore[index]
    table = re.search(SHOWN["slices"], page_of("slice_worse"), re.S)
    assert table
    assert missing_from(Outline(table.group()).text, data)


@pytest.mark.parametrize("case", sorted(CASES))
def test_the_json_follows_its_schema_and_says_the_same_sentences(case: str) -> None:
    data, text = data_of(case), Outline(page_of(case)).text
    jsonschema.validate(data, json.loads(SCHEMA.read_text()))
    assert data["format"] == "evertrain/report/1"
    verdict, said = data["verdict"], data["sentences"]
    assert isinstance(verdict, dict)
    assert isinstance(said, dict)
    wanted = [verdict[key] for key in ("headline", "reason", "next_step")]
    wanted += [v for k, v in said.items() if k not in ("differences", "gates")]
    for sentence in wanted:
        assert " ".join(sentence.replace("\N{NO-BREAK SPACE}", " ").split()) in text.replace(
            "\N{NO-BREAK SPACE}", " "
        )
    assert data["replay"] == REPLAY
