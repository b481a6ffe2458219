"""One run for one order: whoever asks, however often, and whatever fails between."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra.errors import ObjectDamaged, OutsideError
from infra.folder import FolderStore
from pipelines.watch.cursor import Order
from pipelines.watch.starter import Ended
from pipelines.watch.starting import FRESH, STALE, Outcome, Progress, Start, Starting

ORDER = Order(key="v1", name="flights-v1", reason="data", words="w", overrides=("a=1",), force=True)


class Runs:
    """A place where runs run, which starts as many of one name as it is asked for."""

    about, glance, late = "a test", 1.0, 60.0

    def __init__(self) -> None:
        self.names: list[str] = []
        self.asked: list[tuple[tuple[str, ...], bool]] = []
        self.ends: dict[str, Ended] = {}
        self.lose_reply = self.refuse = False
        self.before_find: Callable[[], None] = lambda: None

    def find(self, name: str) -> str | None:
        self.before_find()
        return f"run-{self.names.index(name)}" if name in self.names else None

    def start(self, name: str, *, overrides: tuple[str, ...], force: bool) -> str:
        if self.refuse:
            raise OutsideError("refused")
        self.names.append(name)
        self.asked.append((overrides, force))
        if self.lose_reply:
            self.lose_reply = False
            raise OutsideError("the reply was lost")
        return f"run-{len(self.names) - 1}"

    def ended(self, name: str, run: str) -> Ended | None:
        assert run == f"run-{self.names.index(name)}"
        return self.ends.get(name)

    def prepare(self) -> None:
        """It is there."""

    def close(self) -> None:
        """There is nothing to close."""


class Bench:
    """A store, a place for runs, and any number of watchers."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store, self.runs = folder, FolderStore(folder), Runs()
        self.busy = ""
        self.clock = 0.0

    def watcher(self, name: str = "one", **more: Any) -> Starting:
        def outcome(start: Start, ended: Ended) -> Outcome:
            again = ended.exit_code == 3 or ended.words == "skipped"
            return Outcome(ended.exit_code, ended.words, again, counts=ended.words != "skipped")

        settings: dict[str, Any] = {"retries": 2, "pause": 10.0} | more
        return Starting(
            self.store, self.runs, outcome=outcome, busy=lambda but: self.busy, by=name,
            clock=lambda: self.clock, **settings,
        )  # fmt: skip

    @property
    def start(self) -> Start:
        return Start.model_validate_json(self.store.get("starts/v1.json"))

    def older(self, seconds: float) -> None:
        """Let what is there have been written so long ago."""
        at = time.time() - seconds
        os.utime(self.folder / "starts" / "v1.json", (at, at))

    def end(self, code: int | None, words: str = "") -> None:
        self.runs.ends[self.runs.names[-1]] = Ended(code, words=words)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def state(progress: Progress) -> tuple[str, bool]:
    return progress.state, progress.news


def test_an_order_becomes_one_run_and_its_end_is_noted(bench: Bench) -> None:
    one, two = bench.watcher("one"), bench.watcher("two")
    assert not one.is_known("v1")
    assert state(one.pursue(ORDER)) == ("started", True)
    assert one.is_known("v1")
    for watcher in (one, two, bench.watcher("after a restart")):
        assert state(watcher.pursue(ORDER)) == ("under_way", False)
    bench.end(0, "promoted")
    assert state(two.pursue(ORDER)) == ("ended", True)
    assert state(one.pursue(ORDER)) == ("ended", False)
    assert one.is_over("v1")
    assert bench.runs.names == ["flights-v1"]
    assert bench.runs.asked == [(("a=1",), True)]
    assert (bench.start.run, bench.start.exit_code, bench.start.words) == ("run-0", 0, "promoted")


def test_a_claim_is_left_alone_until_it_is_stale(bench: Bench) -> None:
    bench.runs.refuse = True
    with pytest.raises(OutsideError, match="refused"):
        bench.watcher().pursue(ORDER)
    bench.runs.refuse = False
    taken = bench.watcher("two").pursue(ORDER)
    assert taken.state == "taken"
    assert taken.wait == pytest.approx(STALE, abs=2)
    bench.older(STALE - 5)
    assert bench.watcher("two").pursue(ORDER).state == "taken"
    assert bench.runs.names == []
    bench.older(STALE)
    assert state(bench.watcher("two").pursue(ORDER)) == ("started", True)
    assert bench.runs.names == ["flights-v1"]
    assert bench.start.by == "two"


def test_an_own_claim_under_which_nothing_was_asked_for_is_taken_up_at_once(bench: Bench) -> None:
    """Kubeflow cannot be reached, or the store's reply to the claim was lost."""

    def away() -> None:
        raise OutsideError("away")

    one = bench.watcher("one")
    bench.runs.before_find = away
    for _ in range(3):
        with pytest.raises(OutsideError, match="away"):
            one.pursue(ORDER)
    bench.runs.before_find = lambda: None
    assert bench.watcher("two").pursue(ORDER).state == "taken"
    bench.clock += FRESH + 1
    assert state(one.pursue(ORDER)) == ("started", True)
    assert bench.runs.names == ["flights-v1"]


def test_an_own_claim_that_somebody_took_over_is_theirs(bench: Bench) -> None:
    one, two = bench.watcher("one"), bench.watcher("two")

    def away() -> None:
        raise OutsideError("away")

    bench.runs.before_find = away
    with pytest.raises(OutsideError, match="away"):
        one.pursue(ORDER)
    bench.older(STALE)
    with pytest.raises(OutsideError, match="away"):
        two.pursue(ORDER)
    bench.runs.before_find = lambda: None
    assert one.pursue(ORDER).state == "taken"
    assert state(two.pursue(ORDER)) == ("started", True)
    assert bench.runs.names == ["flights-v1"]


def test_a_run_whose_start_was_not_heard_of_is_found_by_its_name(bench: Bench) -> None:
    bench.runs.lose_reply = True
    with pytest.raises(OutsideError, match="reply"):
        bench.watcher().pursue(ORDER)
    bench.older(STALE)
    assert state(bench.watcher().pursue(ORDER)) == ("started", True)
    assert bench.runs.names == ["flights-v1"]


def test_whoever_stood_still_after_its_claim_starts_nothing(bench: Bench) -> None:
    def stand_still() -> None:
        bench.clock += FRESH + 1

    bench.runs.before_find = stand_still
    assert bench.watcher().pursue(ORDER).state == "taken"
    assert bench.runs.names == []
    bench.runs.before_find = lambda: None
    bench.older(STALE)
    assert state(bench.watcher("two").pursue(ORDER)) == ("started", True)


def test_of_two_who_take_over_one_does_and_the_other_writes_nothing(bench: Bench) -> None:
    """The second one is between its look for the run and its start when the first comes by."""
    bench.runs.refuse = True
    with pytest.raises(OutsideError):
        bench.watcher().pursue(ORDER)
    bench.runs.refuse = False
    bench.older(STALE)
    entered: list[str] = []

    def overtake() -> None:
        if not entered:
            entered.append("two")
            assert bench.watcher("two").pursue(ORDER).state == "taken", "the claim is new"

    bench.runs.before_find = overtake
    assert state(bench.watcher("one").pursue(ORDER)) == ("started", True)
    assert bench.runs.names == ["flights-v1"]


def test_what_the_world_outside_failed_is_tried_again_under_another_name_after_growing_pauses(
    bench: Bench,
) -> None:
    watcher = bench.watcher()
    watcher.pursue(ORDER)
    pauses = []
    for name in ("flights-v1-2", "flights-v1-3"):
        bench.end(3, "the bucket was away")
        failed = watcher.pursue(ORDER)
        assert state(failed) == ("pausing", True)
        pauses.append(failed.wait)
        bench.older(failed.wait - 5)
        assert bench.watcher("two").pursue(ORDER).state == "pausing"
        bench.older(failed.wait + 1)
        assert state(bench.watcher("two").pursue(ORDER)) == ("started", True)
        assert bench.runs.names[-1] == name
    assert pauses == [10.0, 20.0]
    bench.end(3, "still")
    assert state(watcher.pursue(ORDER)) == ("ended", True)
    assert (bench.start.attempt, bench.start.failures, bench.start.exit_code) == (3, 3, 3)


def test_a_run_that_found_another_under_way_does_not_use_up_an_attempt(bench: Bench) -> None:
    watcher = bench.watcher(retries=0)
    watcher.pursue(ORDER)
    for number in range(2, 6):
        bench.end(0, "skipped")
        assert state(watcher.pursue(ORDER)) == ("pausing", True)
        assert state(watcher.pursue(ORDER)) == ("started", True)
        assert bench.runs.names[-1] == f"flights-v1-{number}"
    bench.end(3)
    assert state(watcher.pursue(ORDER)) == ("ended", True)


def test_nothing_is_claimed_while_another_run_is_under_way(bench: Bench) -> None:
    bench.busy = "somebody holds the lease"
    waiting = bench.watcher().pursue(ORDER)
    assert (waiting.state, waiting.words) == ("waiting", "somebody holds the lease")
    assert not bench.watcher().is_known("v1")
    bench.busy = ""
    bench.watcher().pursue(ORDER)
    bench.end(3)
    bench.watcher().pursue(ORDER)
    bench.older(100)
    bench.busy = "somebody holds the lease"
    assert bench.watcher().pursue(ORDER).state == "waiting"
    assert len(bench.runs.names) == 1


def test_a_start_that_cannot_be_read_is_said_to_be(bench: Bench) -> None:
    bench.store.put("starts/v1.json", b"{}")
    with pytest.raises(ObjectDamaged, match=r"starts/v1\.json .* cannot be read"):
        bench.watcher().pursue(ORDER)
