"""Each technique does on a small real case what its paper says it does (technique_effects.py)."""

from __future__ import annotations

import pytest
from technique_effects import CASES, differences

pytestmark = [pytest.mark.slow, pytest.mark.smoke]

# curriculum by loss: less than the noise of one seed; what it draws is in test_sampling.py
SHOWN = [name for name in CASES if name != "curriculum by loss"]


@pytest.mark.parametrize("name", SHOWN)
def test_the_figure_is_better_with_it(name: str) -> None:
    without, using, _ = differences(name, 1)
    assert using < without
