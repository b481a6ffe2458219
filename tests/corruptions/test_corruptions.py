"""Bad values, rows and labels are handled as their rows say; the corpus and its page are whole."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.corruptions.benign import BENIGN
from tests.corruptions.catalogue import CORRUPTIONS, FAMILIES, PAGE, page
from tests.corruptions.choice import corruptions
from tests.corruptions.kinds import Corruption, fault, without_trained_checks
from tests.corruptions.project import Feed, Template

pytestmark = pytest.mark.slow
CONTENT = ("Values", "Categories and codes", "Rows", "Labels")


@pytest.mark.parametrize("corruption", corruptions(*CONTENT))
def test_bad_content_is_handled_as_its_row_says(feed: Feed, corruption: Corruption) -> None:
    corruption.spoil(feed)
    assert fault(corruption, feed.run(without_trained_checks(but=corruption.by.name))) == ""


def test_a_case_leaves_the_next_one_a_clean_feed(template: Template) -> None:
    before = _contents(template.arrive().folder)
    for family in FAMILIES.values():
        for corruption in family.corruptions[:3]:
            corruption.spoil(template.arrive())
    assert _contents(template.arrive().folder) == before


def test_there_are_many_kinds_each_with_a_name_of_its_own() -> None:
    names = Counter([(c.family, c.name) for c in CORRUPTIONS] + [("", b.name) for b in BENIGN])
    assert [name for name, count in names.items() if count > 1] == []
    assert len(CORRUPTIONS) >= 120
    assert {c.outcome for c in CORRUPTIONS} == {"blocked", "quarantined", "warned"}


def test_the_page_lists_what_the_code_has() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.corruptions.catalogue"
    listed = re.findall(r"^\| .* \| (?:blocked|quarantined|warned) \|", page(), re.MULTILINE)
    assert len(listed) == len(CORRUPTIONS)


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
