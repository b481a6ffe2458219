"""The page is one small file that stands alone, well-formed, and readable without seeing it."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import pytest
from report_data_cases import DATA_CASES, wide
from report_outline import Outline, check_pictures, checks_page_of, data_page_of, page_of
from report_sample_data import snapshot
from report_samples import CASES, REPLAY, finished

from components.common.data_figures import DataObject
from components.common.figures import TrainPoint
from components.report_run.data_page import render_data
from components.report_run.page import render

# A place on the page, nothing, or a small picture that is part of the page.
INSIDE = re.compile(r"#|data:,$|data:image/png;base64,[A-Za-z0-9+/]{0,8000}=*$")


@pytest.fixture(
    scope="module",
    params=[*sorted(CASES), *(f"data of {name}" for name in sorted(DATA_CASES)), "checks"],
)
def page(request: pytest.FixtureRequest) -> str:
    if request.param == "checks":
        return checks_page_of()
    _, _, name = request.param.rpartition("data of ")
    return page_of(name) if name == request.param else data_page_of(name)


def test_a_page_needs_nothing_from_outside(page: str) -> None:
    for tag, attributes in Outline(page).tags:
        assert tag != "script"
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("src", "href", "data", "action", "poster", "srcset"):
                assert INSIDE.match(value or ""), (tag, name, value)
    assert not re.search(r"url\(|@import", page)


@pytest.mark.parametrize("case", sorted(CASES))
def test_a_page_is_small(case: str) -> None:
    most = {"extreme": 300_000}.get(case, 200_000)
    assert len(page_of(case).encode()) < most
    assert len(data_page_of(case).encode()) < 90_000


def test_two_hundred_columns_are_all_on_the_page_and_it_stays_under_300_kilobytes() -> None:
    run, records = finished()
    data_run, data_records = wide()
    figures = data_records["validate_data"].figures
    figures["findings"] = figures["findings"][:10]
    figures["expectations"] = figures["expectations"][:40]
    records["validate_data"].figures = figures
    for page in (
        render(run=run, records=records, replay=REPLAY),
        render_data(run=data_run, records=data_records)[0],
    ):
        assert len(page.encode()) < 300_000
        columns = page[page.index("Table of the columns") :]
        named = re.findall(r'<th scope="row">a_column_with_a_rather_long_name_(\d+)', columns)
        assert named == [str(i) for i in range(200)]


def test_a_huge_run_is_still_under_300_kilobytes_and_says_what_it_left_out() -> None:
    run, records = finished()
    big, (_, many) = snapshot(), wide(1000, name="<&>" * 90)
    big.objects = [
        DataObject(key=f"{'long/' * 40}{i}", size=1, version="", sha256="0" * 64, rows=1)
        for i in range(50)
    ]
    big.object_count = 1_000_000
    big.provenance.packages = {f"package-{i}": "1.0" for i in range(3000)}
    big.provenance.config = {f"key_{i}": "x" * 100 for i in range(3000)}
    records["snapshot_data"].figures = big.model_dump(mode="json")
    records["validate_data"].figures = many["validate_data"].figures
    curve = [TrainPoint(step=i, loss=1.0 / (i + 1), lr=1, gradient_norm=1, samples_per_second=1)
             for i in range(50_000)]  # fmt: skip
    records["train_distributed"].figures["curve"] = [p.model_dump() for p in curve]
    for page in (
        render(run=run, records=records, replay=REPLAY),
        render_data(run=run, records=records)[0],
    ):
        assert len(page.encode()) < 300_000
        left_out = re.findall(r"And ([\d,]+) columns? more", Outline(page).text)
        assert min(int(n.replace(",", "")) for n in left_out) > 900
        assert re.search(r"And 999,9\d\d objects more", Outline(page).text)


def test_a_page_is_well_formed_and_its_parts_are_named_once(page: str) -> None:
    outline = Outline(page)
    ids = Counter(a["id"] for _, a in outline.tags if "id" in a)
    assert [name for name, times in ids.items() if times > 1] == []
    for _, attributes in outline.tags:
        for name in ("aria-labelledby", "href"):
            for target in (attributes.get(name) or "").split():
                if name != "href" or target.startswith("#"):
                    assert target.removeprefix("#") in ids
    assert dict(outline.tags)["html"]["lang"] == "en"


def test_headings_are_in_order_and_only_one_is_the_first(page: str) -> None:
    levels = [int(t[1]) for t, _ in Outline(page).tags if re.fullmatch(r"h[1-6]", t)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_table_headers_have_a_scope_and_pictures_have_words(page: str) -> None:
    for tag, attributes in Outline(page).tags:
        if tag == "th":
            assert attributes.get("scope") in ("row", "col", "rowgroup")
        if tag == "svg":
            assert attributes.get("aria-hidden") == "true" or attributes.get("role") == "img"
    check_pictures(page)


def test_a_picture_is_drawn_for_wide_pages_and_for_phones() -> None:
    page = page_of("promoted")
    assert page.count('class="chart wide"') == page.count('class="chart narrow"') == 6
    # Calibration, ROC, two curves of checks; the columns that moved against two references.
    assert page.count('class="chart"') == 4 + 3 + 2
