"""A run that took over lets no write of the one before into the promotion log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lease_steps import OTHER, RUN, SETTINGS, do, in_a_run, no_sign_of_life, seen, store_of, take

from components.common.champion import PromotionEntry, PromotionLog, champion_entry, newest_fence
from components.common.holding import Holding
from components.common.promotion import add
from components.common.records import StepRecord
from components.report_run.step import let_go
from infra.errors import LeaseLost
from infra.folder import FolderStore
from infra.lease import Lease
from infra.lease_record import Holder


@pytest.fixture(autouse=True)
def _in_a_run() -> Iterator[None]:
    with in_a_run():
        yield


def entry(run: str, fence: int, **more: Any) -> PromotionEntry:
    given: dict[str, Any] = {"number": 0, "action": "promote", "version": "1", "run": run}
    given |= {"run_key": run, "package": {}, "seen": {}, "reason": "", "who": "", "fence": fence}
    return PromotionEntry.model_validate(given | more)


def test_whoever_takes_over_from_the_dead_writes_its_number_into_the_promotion_log(
    fresh_project: Path,
) -> None:
    store = store_of(fresh_project)
    Lease(store).take(OTHER, seconds=5)
    no_sign_of_life(fresh_project)
    take(fresh_project)
    (fence,) = PromotionLog(store).entries()
    assert (fence.action, fence.fence, fence.run, fence.version) == ("fence", 2, RUN, "")
    assert fence.reason.startswith(f"run {RUN} took over: run another of eve@laptop gave no sign")
    assert champion_entry([fence]) is None
    assert take(fresh_project).Output == "train", "tried again"
    assert len(PromotionLog(store).entries()) == 1
    assert seen(fresh_project).record.fence == ""


def test_a_run_that_died_between_taking_over_and_saying_so_says_it_when_it_is_tried_again(
    fresh_project: Path,
) -> None:
    store = store_of(fresh_project)
    lease = Lease(store)
    lease.take(OTHER, seconds=60)
    lease.release(OTHER.run, fence="run another was killed")
    lease.take(Holder(run=RUN), seconds=60)
    take(fresh_project)
    assert [each.action for each in PromotionLog(store).entries()] == ["fence"]


def test_one_after_another_in_good_order_leaves_no_such_entry(fresh_project: Path) -> None:
    for run in ("one", "two"):
        assert take(fresh_project, run).Output == "train"
        with do(fresh_project, "report_run") as context:
            let_go(context.project, store_of(fresh_project), run=run)
    assert PromotionLog(store_of(fresh_project)).entries() == []
    assert seen(fresh_project).record.token == 2


@pytest.mark.parametrize("status", ["running", "failed", "interrupted"])
def test_a_run_whose_promotion_did_not_end_well_may_still_be_writing(
    fresh_project: Path, status: Any
) -> None:
    take(fresh_project)
    record = StepRecord(step="promote_model", run=RUN, run_key="k", status=status)
    store = store_of(fresh_project)
    store.put(f"runs/{RUN}/promote_model.json", record.model_dump_json().encode())
    with do(fresh_project, "report_run") as context:
        let_go(context.project, store, run=RUN)
    assert seen(fresh_project).record.fence == f"run {RUN} may still be promoting"


def promoting(store: FolderStore, run: str) -> Holding:
    holding = Holding(store, run=run, settings=SETTINGS)
    assert holding.take(floor=newest_fence(PromotionLog(store).entries())) is None
    holding.hush()  # its thread is paused as well
    return holding


class PausedBeforeItsWrite(PromotionLog):
    """A promoter that stands still between its last look and its write; others go on meanwhile."""

    def __init__(self, store: FolderStore, meanwhile: Callable[[], Any]) -> None:
        super().__init__(store)
        self.meanwhile = [meanwhile]

    def append(self, entry: PromotionEntry) -> bool:
        while self.meanwhile:
            self.meanwhile.pop()()
        return super().append(entry)


def test_a_promoter_that_was_paused_just_before_its_write_is_refused(fresh_project: Path) -> None:
    """It had the lease when it looked last. The log itself has to stop it."""
    store = store_of(fresh_project)
    holding = promoting(store, "paused")

    def others() -> None:
        no_sign_of_life(fresh_project)
        take(fresh_project)

    log = PausedBeforeItsWrite(store, others)
    with pytest.raises(LeaseLost, match=r"number 1 is older than 2, with which run .* wrote entry"):
        add(log, entry("paused", holding.token), check=lambda entries: None)
    assert [each.action for each in log.entries()] == ["fence"]


def test_a_promoter_asks_the_store_whether_it_has_the_lease(fresh_project: Path) -> None:
    store = store_of(fresh_project)
    holding = promoting(store, "broken")
    Lease(store).release("broken", fence="eve took it", broken="eve")
    with pytest.raises(LeaseLost, match="eve took it away"):
        add(PromotionLog(store), entry("broken", 1), check=lambda entries: holding.confirm())
    assert PromotionLog(store).entries() == []


def test_entries_of_persons_and_of_runs_before_there_were_leases_stand(fresh_project: Path) -> None:
    log = PromotionLog(store_of(fresh_project))
    for given in (entry("old", 0), entry("new", 7), entry("old", 0, action="rollback")):
        add(log, given, check=lambda entries: None)
    with pytest.raises(LeaseLost, match="its number is missing is older than 7"):
        add(log, entry("old", 0), check=lambda entries: None)
    assert [each.fence for each in log.entries()] == [0, 7, 0]
