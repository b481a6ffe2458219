"""The data's page: what stands where, for data that is fit, refused, or was never judged."""

from __future__ import annotations

import re

import pytest
from report_data_cases import DATA_CASES, judged, refused_by_a_finding
from report_outline import Outline, data_page_of, page_of
from report_sample_data import validation
from report_samples import stopped

from components.common import data_figures as d
from components.report_run.data_page import render_data

PARTS = [
    "What came", "What the checks found", "What changed", "What was set aside",
    "What was expected", "Every column", "How the rows were split",
]  # fmt: skip


def headings(page: str, level: int) -> list[str]:
    return re.findall(rf"<h{level}[^>]*>([^<]*)</h{level}>", page)


def test_the_parts_are_the_same_in_the_report_and_alone() -> None:
    assert headings(data_page_of("warned"), 2) == PARTS
    report = page_of("promoted")
    first = report.index('id="data"')
    assert headings(report[first:], 3)[: len(PARTS) - 1] == PARTS[:-1]
    assert PARTS[-1] in headings(report, 2)


def test_findings_that_block_stand_before_those_that_warn() -> None:
    run, records = refused_by_a_finding()
    records["validate_data"].figures["findings"].reverse()
    page, _ = render_data(run=run, records=records)
    table = page[page.index('aria-label="Findings"') :]
    words = re.findall(r"</svg> (blocks|warns)</span>", table[: table.index("</table>")])
    assert words == ["blocks", "blocks", "blocks", "warns", "warns"]


def test_expectations_that_block_stand_before_those_that_warn() -> None:
    page = data_page_of("expectation")
    table = page[page.index('aria-label="Expectations that failed"') :]
    words = re.findall(r"</svg> (blocks|warns)</span>", table[: table.index("</table>")])
    assert words == ["blocks", "warns"]


def test_the_first_screen_names_rows_set_aside_the_furthest_column_and_the_label() -> None:
    facts = data_page_of("quarantine")
    facts = facts[facts.index("<dl") : facts.index("</dl>") + len("</dl>")]
    text = Outline(facts).text
    for words in ("109,119", "28,330 new rows", "48,214", "44.2 %", "temperature", "21.9 %"):
        assert words in text, words


@pytest.mark.parametrize("case", ["failed", "no_snapshot"])
def test_what_was_not_judged_is_said_once_and_links_lead_to_what_is_there(case: str) -> None:
    page = data_page_of(case)
    assert headings(page, 2) == ["What came", "What validation found", "How the rows were split"]
    assert "Every column" not in page
    links = re.findall(r'href="#([a-z]+)"', page[page.index("<nav") : page.index("</nav>")])
    assert all(f'id="{link}"' in page for link in links)


def test_a_first_run_has_nothing_to_compare_with_and_says_so() -> None:
    text = Outline(data_page_of("first")).text
    assert "Nothing was compared: there is no champion’s data and no snapshot before" in text
    assert "Not checked: drift, new category, label shift" in text
    assert "Furthest column nothing to compare" in text


def test_checks_that_were_not_made_are_named_where_nothing_was_found() -> None:
    run, records = judged(validation(failed=True, calm=True), why="1 expectation failed")
    text = Outline(render_data(run=run, records=records)[0]).text
    assert "The checks that were made found nothing." in text
    assert (
        "Not checked: missing column, constant column, leak, id feature, future rows, "
        "near duplicates, label noise; the suite refused the rows, and what it says comes first."
    ) in text
    assert "Not checked" not in Outline(data_page_of("calm")).text


def test_columns_that_are_measured_and_not_judged_are_not_called_steady() -> None:
    figures = validation(calm=True)
    figures.not_run = [d.NotRun(checks=["drift"], why="off")]
    for column in figures.drift[0].columns:
        column.level = "off"
    figures.drift = figures.drift[:1]
    run, records = judged(figures)
    page, said = render_data(run=run, records=records)
    text = Outline(page).text
    assert "13 not judged, for drift is off." in text
    assert "Not checked: drift; validation.levels turns this off." in text
    assert "Not checked: drift" in said.reason
    assert "steady" not in text
    assert "not judged" in text


def test_figures_that_were_not_taken_are_not_shown_as_zero() -> None:
    page = data_page_of("bare")
    text = Outline(page).text
    assert "PSI not measured" in text
    assert "not measured – – –" in text  # a steady column: PSI, JS, KS
    assert "PSI 0" not in text
    assert "Positive labels not compared" in text


def test_the_proofs_of_the_split_stand_with_their_queries() -> None:
    text = Outline(data_page_of("calm")).text
    assert "3 claims about the parts, each proved by a query:" in text
    assert "no row key is in two parts: 0" in text
    assert "SELECT part, count(DISTINCT late) FROM parts GROUP BY part" in text


def test_every_small_picture_has_a_table_behind_it() -> None:
    page = data_page_of("warned")
    cards = page[page.index('class="cards"') : page.index("The small pictures as a table")]
    table = page[page.index("The small pictures as a table") :]
    table = table[: table.index("</table>")]
    named = re.findall(r"<b>([^<]*)</b>", cards)
    assert named == ["temperature", "dew_point", "carrier"]
    assert re.findall(r'<th scope="rowgroup"[^>]*>([^<]*)</th>', table) == named
    assert "13.1 %" in table[table.index("<td>ZZ</td>") :][:80]


def test_every_subset_of_records_makes_a_page_that_says_its_judgement() -> None:
    for case in ("warned", "finding"):
        run, records = DATA_CASES[case]()
        subsets = [{n: r for n, r in records.items() if n != left_out} for left_out in records]
        for rest in (*subsets, {}):
            page, judgement = render_data(run=run, records=rest)
            assert judgement.headline in Outline(page).text


def test_the_report_of_a_refused_run_says_of_the_data_what_its_own_page_says() -> None:
    run, records = stopped()
    alone, judgement = render_data(run=run, records=records)
    for page in (alone, page_of("stopped")):
        assert judgement.headline in Outline(page).text
