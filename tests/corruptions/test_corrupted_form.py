"""Bad schemas, files and texts are refused as their rows say; harmless changes of form pass.

In a file of its own, so that two workers share the corpus.
"""

from __future__ import annotations

import pytest

from tests.corruptions.benign import Benign, alarm
from tests.corruptions.choice import corruptions, harmless_changes
from tests.corruptions.kinds import Corruption, fault, without_trained_checks
from tests.corruptions.project import Feed

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("corruption", corruptions("Schema", "Files", "Text files"))
def test_bad_form_is_handled_as_its_row_says(feed: Feed, corruption: Corruption) -> None:
    corruption.spoil(feed)
    assert fault(corruption, feed.run(without_trained_checks())) == ""


@pytest.mark.parametrize("case", harmless_changes())
def test_a_harmless_change_passes_with_every_row(feed: Feed, case: Benign) -> None:
    case.change(feed)
    assert alarm(case, feed, feed.run(without_trained_checks())) == ""
