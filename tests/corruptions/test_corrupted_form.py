"""Bad schemas, files and texts are refused as their rows say; harmless changes of form pass.

In a file of its own, so that two workers share the corpus.
"""

from __future__ import annotations

import pytest

from tests.corruptions.benign import BENIGN, Benign, alarm
from tests.corruptions.catalogue import EVERY, of_families
from tests.corruptions.kinds import Corruption, fault, without_trained_checks
from tests.corruptions.project import Feed

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "corruption",
    of_families("Schema", "Files", "Text files")[::EVERY],
    ids=lambda c: f"{c.family}-{c.name}",
)
def test_bad_form_is_handled_as_its_row_says(feed: Feed, corruption: Corruption) -> None:
    corruption.spoil(feed)
    assert fault(corruption, feed.run(without_trained_checks())) == ""


@pytest.mark.parametrize("case", BENIGN[::EVERY], ids=lambda case: case.name)
def test_a_harmless_change_passes_with_every_row(feed: Feed, case: Benign) -> None:
    case.change(feed)
    assert alarm(case, feed, feed.run(without_trained_checks())) == ""
