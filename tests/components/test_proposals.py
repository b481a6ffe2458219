"""Proposals: only the newest can be decided, once, against the champion that it met."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from components.common.approval import approve, proposal_to_decide, reject
from components.common.champion import (
    PromotionEntry,
    PromotionLog,
    champion_to_beat,
    state_of,
)
from components.common.decision_figures import SmokeFigures
from components.common.promotion import add, enter
from components.common.rollback import roll_back
from components.promote_model.step import entered
from infra.errors import OutsideError
from infra.folder import FolderStore
from tests.proofs.promoters import Fate, Memory, MemoryRegistry
from training_core.errors import ConfigurationError, StoppedByGate

WORKS = SmokeFigures(outcome="pass", message="")
FAILS = SmokeFigures(outcome="fail", message="its graph is damaged")


class Desk:
    """A log and a registry, and what people do with them."""

    def __init__(self, folder: Path) -> None:
        self.log = PromotionLog(FolderStore(folder))
        self.registry = MemoryRegistry(Memory(), Fate(random.Random(0)))

    def enter(self, action: str, run_key: str, *, compared: int, anew: bool = False) -> Any:
        entry = PromotionEntry(
            number=0, action=action, version="", run=run_key, run_key=run_key, package={}, seen={},
            reason="better", who="a run", compared=compared, rehearsal=f"rows of {run_key}",
        )  # fmt: skip
        return enter(
            self.log, self.registry, "m", entry,
            register=lambda: self.registry.register(run_key), anew=anew,
        )  # fmt: skip

    def approve(self, proposal: PromotionEntry, seen: SmokeFigures = WORKS) -> PromotionEntry:
        return approve(
            self.log, self.registry, "m", proposal, reason="seen", who="Ann",
            rehearse=lambda entry: seen,
        )  # fmt: skip

    def reject(self, proposal: PromotionEntry) -> PromotionEntry:
        return reject(self.log, self.registry, "m", proposal, reason="too slow", who="Bob")

    def roll_back(self, to: str = "", seen: SmokeFigures = WORKS) -> PromotionEntry:
        return roll_back(
            self.log, self.registry, "m", to=to, reason="", who="Ann", rehearse=lambda entry: seen
        )

    @property
    def aliases(self) -> dict[str, str]:
        return self.registry.aliases("m")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Version 1 is champion, by entry 1."""
    desk = Desk(tmp_path)
    desk.enter("promote", "a", compared=0)
    return desk


def test_a_proposal_moves_the_alias_challenger_and_no_other(desk: Desk) -> None:
    proposal = desk.enter("propose", "b", compared=1)
    assert (proposal.number, proposal.version) == (2, "2")
    assert desk.aliases == {"champion": "1", "challenger": "2"}
    beaten = champion_to_beat(desk.log, "c")
    assert beaten is not None
    assert beaten.number == 1


def test_what_is_approved_is_champion_and_says_who_and_why(desk: Desk) -> None:
    proposal = desk.enter("propose", "b", compared=1)
    entry = desk.approve(proposal)
    assert (entry.number, entry.action, entry.version, entry.of) == (3, "approve", "2", 2)
    assert (entry.who, entry.reason, entry.compared) == ("Ann", "seen", 1)
    assert entry.rehearsal == "rows of b"
    assert entry.token != proposal.token
    assert desk.aliases == {"champion": "2", "previous": "1"}
    with pytest.raises(StoppedByGate, match=r"decided already: approve by Ann, .* UTC: seen"):
        desk.approve(proposal)
    with pytest.raises(StoppedByGate, match="decided already"):
        desk.reject(proposal)


def test_what_is_rejected_leaves_the_champion(desk: Desk) -> None:
    proposal = desk.enter("propose", "b", compared=1)
    assert desk.reject(proposal).of == 2
    assert desk.aliases == {"champion": "1"}
    with pytest.raises(StoppedByGate, match="reject by Bob"):
        desk.approve(proposal)


def test_only_the_newest_proposal_can_be_approved(desk: Desk) -> None:
    older = desk.enter("propose", "b", compared=1)
    newer = desk.enter("propose", "c", compared=1)
    assert state_of(desk.log.entries(), older) == "superseded"
    with pytest.raises(StoppedByGate, match=r"superseded by proposal 3 \(version 3\)") as stopped:
        desk.approve(older)
    assert "evertrain approve PROJECT --version 3" in stopped.value.hint
    assert desk.aliases["challenger"] == "3"
    assert desk.approve(newer).version == "3"


def test_a_champion_that_moved_overtakes_the_proposal(desk: Desk) -> None:
    desk.enter("promote", "b", compared=1)
    proposal = desk.enter("propose", "c", compared=2)
    desk.roll_back()
    assert state_of(desk.log.entries(), proposal) == "overtaken"
    assert desk.aliases == {"champion": "1", "previous": "2"}
    for decide in (desk.approve, desk.reject):
        with pytest.raises(StoppedByGate, match="the champion moved since: it is now version 1"):
            decide(proposal)
    assert len(desk.log.entries()) == 4


def test_a_package_that_fails_its_rehearsal_changes_nothing(desk: Desk) -> None:
    proposal = desk.enter("propose", "b", compared=1)
    with pytest.raises(StoppedByGate, match="version 2 failed its rehearsal: its graph is damaged"):
        desk.approve(proposal, FAILS)
    desk.approve(proposal)
    with pytest.raises(StoppedByGate, match="version 1 failed its rehearsal"):
        desk.roll_back(seen=FAILS)
    assert [e.action for e in desk.log.entries()] == ["promote", "propose", "approve"]
    assert desk.aliases == {"champion": "2", "previous": "1"}


def test_an_approved_version_can_be_gone_back_to(desk: Desk) -> None:
    desk.approve(desk.enter("propose", "b", compared=1))
    desk.enter("promote", "c", compared=3)
    back = desk.roll_back()
    assert (back.version, back.compared, back.of, back.rehearsal) == ("2", 4, 0, "rows of b")
    never = desk.enter("propose", "d", compared=5)
    with pytest.raises(ConfigurationError, match="no version '4' to go back to"):
        desk.roll_back(never.version)


def test_a_proposal_by_another_does_not_hinder_a_promotion(desk: Desk) -> None:
    desk.enter("propose", "b", compared=1)
    assert desk.enter("promote", "c", compared=1).number == 3
    with pytest.raises(StoppedByGate, match="promotion 3 came after 1"):
        desk.enter("promote", "d", compared=1)


def test_an_entry_that_came_in_between_costs_a_number(desk: Desk) -> None:
    def meanwhile(entries: list[PromotionEntry]) -> None:
        if len(entries) < 4:
            desk.enter("propose", f"other-{len(entries)}", compared=1)

    entry = desk.log.entries()[0].model_copy(update={"token": "mine"})
    assert add(desk.log, entry, check=meanwhile).number == 5
    numbers = [e.number for e in desk.log.entries()]
    assert numbers == [1, 2, 3, 4, 5]


def test_an_entry_whose_reply_was_lost_is_found(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = desk.log.store.create

    def deaf(key: str, data: bytes) -> bool:
        create(key, data)
        raise OutsideError("the connection was closed")

    monkeypatch.setattr(desk.log.store, "create", deaf)
    entry = desk.log.entries()[0].model_copy(update={"token": "mine"})
    assert add(desk.log, entry, check=lambda entries: None).number == 2


def test_a_killed_run_finds_its_own_proposal_whatever_became_of_it(desk: Desk) -> None:
    def again(**options: Any) -> tuple[int, str, str]:
        champion = champion_to_beat(desk.log, "b")
        entry = desk.enter("propose", "b", compared=champion.number if champion else 0, **options)
        said = entered(desk.log.entries(), entry)
        return entry.number, said.outcome, said.reason

    desk.enter("propose", "b", compared=1)
    number, outcome, reason = again()
    assert (number, outcome) == (2, "proposed")
    assert "waits for a person (evertrain approve PROJECT --version 2)" in reason
    desk.reject(desk.log.entries()[1])
    assert again() == (
        2, "held", "champion 1 stays: version 2 was proposed, and was rejected by Bob: too slow"
    )  # fmt: skip
    assert again(anew=True)[:2] == (4, "proposed"), "a forced run asks again"
    desk.approve(desk.log.entries()[3])
    assert again()[:2] == (5, "promoted")
    assert [e.action for e in desk.log.entries()] == [
        "promote", "propose", "reject", "propose", "approve"
    ]  # fmt: skip
    assert desk.registry.run_keys() == ["a", "b"], "one version for each run"


def test_a_model_that_was_gone_back_to_is_compared_with_like_any_other(desk: Desk) -> None:
    desk.enter("promote", "b", compared=1)
    desk.roll_back()
    champion = champion_to_beat(desk.log, "a")
    assert champion is not None
    assert champion.number == 3


def test_a_version_that_was_never_proposed_is_wrong_usage(desk: Desk) -> None:
    with pytest.raises(ConfigurationError, match="nothing was ever proposed"):
        proposal_to_decide(desk.log.entries(), "")
    desk.enter("propose", "b", compared=1)
    assert proposal_to_decide(desk.log.entries(), "2").number == 2
    with pytest.raises(ConfigurationError, match="version '7' was never proposed") as wrong:
        proposal_to_decide(desk.log.entries(), "7")
    assert wrong.value.hint == "versions that were: 2"
