"""A report page as a test sees it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from html.parser import HTMLParser
from xml.etree import ElementTree

from report_data_cases import DATA_CASES
from report_sample_findings import recorded
from report_samples import CASES, REPLAY

from components.report_run.checks_page import render_checks
from components.report_run.data_page import render_data
from components.report_run.page import render

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Outline(HTMLParser):
    """Checks nesting and gathers headings, ids, links, attributes and words."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


@cache
def page_of(case: str) -> str:
    """Render the page of one of the cases."""
    run, records = CASES[case]()
    return render(run=run, records=records, replay=REPLAY)


@cache
def data_page_of(case: str) -> str:
    """Render the data's page of one of the cases of either kind."""
    run, records = (CASES | DATA_CASES)[case]()
    return render_data(run=run, records=records)[0]


@cache
def checks_page_of(*, broken: bool = True) -> str:
    """Render the page of the checks alone."""
    when = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    return render_checks(recorded(broken=broken), project="flights", when=when)


def check_pictures(page: str) -> None:
    """Every picture is well-formed and described in words."""
    for source in re.findall(r"<svg.*?</svg>", page, re.S):
        picture = ElementTree.fromstring(source)
        if picture.get("role") == "img":
            assert (picture.findtext("title") or "").strip()
            assert len(picture.findtext("desc") or "") > 10
