"""The page is one small file that stands alone, well-formed, and readable without seeing it."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import pytest
from report_outline import Outline, check_pictures, page_of
from report_sample_data import snapshot, validation
from report_samples import CASES, REPLAY, finished

from components.common.data_figures import ColumnDrift, DataObject
from components.common.figures import TrainPoint
from components.report_run.page import render


@pytest.fixture(scope="module", params=sorted(CASES))
def page(request: pytest.FixtureRequest) -> str:
    return page_of(request.param)


def test_a_page_needs_nothing_from_outside(page: str) -> None:
    for tag, attributes in Outline(page).tags:
        assert tag != "script"
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("src", "href", "data", "action", "poster", "srcset"):
                assert re.match(r"#|data:,", value or ""), (tag, name, value)
    assert not re.search(r"url\(|@import", page)


def test_a_page_is_small(page: str) -> None:
    assert len(page.encode()) < 120_000


def test_a_huge_run_is_still_under_300_kilobytes() -> None:
    run, records = finished()
    huge = validation()
    huge.expectations = huge.expectations * 400
    huge.drift = [
        ColumnDrift(
            column=f"column_{i}" * 9,
            psi=0.3,
            now="a" * 500,
            before="b" * 500,
            null_now=0,
            null_before=0,
        )
        for i in range(3000)
    ]
    big = snapshot()
    big.objects = [
        DataObject(key=f"{'long/' * 40}{i}", size=1, version="", sha256="0" * 64, rows=1)
        for i in range(5000)
    ]
    big.provenance.packages = {f"package-{i}": "1.0" for i in range(3000)}
    big.provenance.config = {f"key_{i}": "x" * 100 for i in range(3000)}
    records["snapshot_data"].figures = big.model_dump(mode="json")
    records["validate_data"].figures = huge.model_dump(mode="json")
    curve = [TrainPoint(step=i, loss=1.0 / (i + 1), lr=1, gradient_norm=1, samples_per_second=1)
             for i in range(50_000)]  # fmt: skip
    records["train_distributed"].figures["curve"] = [p.model_dump() for p in curve]
    size = len(render(run=run, records=records, replay=REPLAY).encode())
    assert size < 300_000


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
            assert attributes.get("scope") in ("row", "col")
        if tag == "svg":
            assert attributes.get("aria-hidden") == "true" or attributes.get("role") == "img"
    check_pictures(page)


def test_a_picture_is_drawn_for_wide_pages_and_for_phones() -> None:
    page = page_of("promoted")
    assert page.count('class="chart wide"') == page.count('class="chart narrow"') == 5
    assert page.count('class="chart"') == 4  # calibration, ROC and two curves of checks
