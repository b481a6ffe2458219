"""The storm in its short form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs.kills import Storm, holds

pytestmark = pytest.mark.slow


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [1, 2])  # changing ranks with topology; two ranks
def test_a_training_killed_four_times_ends_as_if_nothing_had_happened(
    tmp_path: Path, number: int
) -> None:
    storm = Storm(tmp_path, seed=number)
    storm.training(number, kills=4)
    assert storm.figures["runs"] == 1
    assert storm.figures["kills"] > 0
    assert holds(storm.figures), storm.figures
