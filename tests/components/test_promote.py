"""promote_model: only against the champion that was compared with."""

from __future__ import annotations

import pytest

from components.common.champion import PromotionEntry, PromotionLog, champion_to_beat
from components.common.decision_figures import EvaluateFigures
from components.common.promotion import refuse_moved_champion
from infra.folder import FolderStore
from training_core.errors import StoppedByGate


def entry(number: int, run_key: str = "k") -> PromotionEntry:
    return PromotionEntry(
        number=number, action="promote", version=str(number), run="r", run_key=run_key,
        package={}, seen={}, reason="", who="a test",
    )  # fmt: skip


def verdict(compared: int) -> EvaluateFigures:
    return EvaluateFigures(
        verdict="promote", reasons=["better"], metric="log_loss", rows=1, clusters=1,
        compared_entry=compared, champion="", metrics={}, comparisons=[], gates=[],
        reliability={}, calibration_error={}, roc=[], confusion=[], predictions="",
    )  # fmt: skip


def test_a_champion_that_moved_since_the_comparison_is_not_replaced() -> None:
    with pytest.raises(StoppedByGate, match="promotion 2 came after 1") as stopped:
        refuse_moved_champion([entry(1), entry(2)], 1)
    assert "run the same command again" in stopped.value.hint
    with pytest.raises(StoppedByGate, match="promotion 1 came after 0"):
        refuse_moved_champion([entry(1)], 0)


@pytest.mark.parametrize("promotions", [0, 1, 2])
@pytest.mark.parametrize("compared", [0, 1, 2])
def test_only_the_champion_that_was_compared_with_is_replaced(
    promotions: int, compared: int
) -> None:
    entries = [entry(number) for number in range(1, promotions + 1)]
    try:
        refuse_moved_champion(entries, compared)
        refused = False
    except StoppedByGate:
        refused = True
    assert refused == (promotions != compared)


def test_a_run_killed_after_its_promotion_meets_the_champion_it_had(
    tmp_path: pytest.TempPathFactory,
) -> None:
    log = PromotionLog(FolderStore(tmp_path))  # type: ignore[arg-type]
    assert champion_to_beat(log, "mine") is None
    log.append(entry(1, "older"))
    log.append(entry(2, "mine"))
    before, other = champion_to_beat(log, "mine"), champion_to_beat(log, "another")
    assert before is not None
    assert other is not None
    assert (before.number, other.number) == (1, 2)
