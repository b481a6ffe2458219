"""What watchers know together: spans by the store's clock, and no update lost."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from components.common.trigger_settings import WatchSettings
from infra.errors import ObjectDamaged
from infra.folder import FolderStore
from pipelines.watch.cursor import KEY, Cursor, Cursors, Order, Pending
from pipelines.watch.debounce import is_ready, is_worth_a_look, seconds_left

ORDER = Order(key="k", name="n", reason="data", words="w")


def cursors(folder: Path, *, clock: float = 0.0) -> Cursors:
    """Those of one process, whose clock is wrong by so much."""
    return Cursors(FolderStore(folder), clock=lambda: time.monotonic() + clock)


def older(folder: Path, seconds: float) -> None:
    """Let the cursor have been written so long ago, by the store's clock."""
    at = time.time() - seconds
    os.utime(folder / KEY, (at, at))


def test_spans_go_on_by_the_stores_clock_from_one_process_to_another(tmp_path: Path) -> None:
    first = cursors(tmp_path, clock=1e6)
    first.update(lambda c: c.with_events(2, at=1000.0))
    older(tmp_path, 100)
    second = cursors(tmp_path, clock=-5e5).update(lambda c: c.with_events(1, at=2000.0))
    assert second.pending is not None
    assert second.pending.waited == pytest.approx(100, abs=1)
    assert (second.pending.quiet, second.pending.count, second.pending.since) == (0, 3, 1000.0)
    older(tmp_path, 7)
    third = cursors(tmp_path).read()
    assert third.pending is not None
    assert third.pending.waited == pytest.approx(107, abs=1)
    assert third.pending.quiet == pytest.approx(7, abs=1)


def test_within_a_process_its_own_clock_tells(tmp_path: Path) -> None:
    now = 50.0
    own = Cursors(FolderStore(tmp_path), clock=lambda: now)
    own.update(lambda c: c.with_events(1, at=0.0))
    own.update(lambda c: c.with_events(1, at=0.0))
    now += 0.25
    pending = own.read().pending
    assert pending is not None
    assert pending.quiet == 0.25
    older(tmp_path, 500)  # not another version, so what the file system says now is not asked


def test_of_many_who_update_at_once_none_loses_anything(tmp_path: Path) -> None:
    def work(who: int) -> None:
        own = cursors(tmp_path, clock=who * 1000.0)
        for _ in range(10):
            own.update(lambda c: c.with_events(1, at=1.0))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    found = cursors(tmp_path).read()
    assert found.heard == 60
    assert found.pending is not None
    assert found.pending.count == 60


def test_what_is_not_changed_is_not_written(tmp_path: Path) -> None:
    own = cursors(tmp_path)
    assert own.update(lambda c: None) == Cursor()
    assert not (tmp_path / KEY).exists()
    own.update(lambda c: c.with_(order=ORDER))
    before = (tmp_path / KEY).read_bytes()
    assert own.update(lambda c: None).order == ORDER
    assert (tmp_path / KEY).read_bytes() == before
    own.update(lambda c: c)
    assert (tmp_path / KEY).read_bytes() != before, "no two contents are equal"


@pytest.mark.parametrize("content", [b"", b"{", b'{"format": "evertrain/watch/9"}'])
def test_a_damaged_cursor_is_said_to_be_and_how_to_begin_anew(
    tmp_path: Path, content: bytes
) -> None:
    FolderStore(tmp_path).put(KEY, content)
    with pytest.raises(ObjectDamaged, match="is no cursor") as caught:
        cursors(tmp_path).read()
    assert "start no run twice" in caught.value.hint


def seen(cursor: Cursor, version: str, *, new: int = 1, heard: int | None = None) -> Cursor:
    return cursor.with_look(
        version, new=new, heard=cursor.heard if heard is None else heard, at=9.0
    )


def test_what_a_look_finds_by_itself_has_been_quiet_since_that_look() -> None:
    found = seen(Cursor(since_look=50.0), "a", new=3)
    assert found.pending == Pending(count=3, version="a", since=9.0)
    assert found.since_look == 0.0
    later = seen(found.aged(20), "a", new=3)
    assert later.pending is not None
    assert (later.pending.quiet, later.pending.waited) == (20, 20)
    changed = seen(later.aged(5), "b", new=4)
    assert changed.pending is not None
    assert (changed.pending.quiet, changed.pending.waited) == (0, 25)


def test_what_events_told_of_has_been_quiet_since_the_last_of_them() -> None:
    told = Cursor().with_events(5, at=1.0).aged(30)
    found = seen(told, "a", new=4)
    assert found.pending == Pending(waited=30, quiet=30, count=4, version="a", since=1.0)


def test_a_look_beside_which_something_came_says_nothing_of_what_is_there() -> None:
    before = Cursor().with_events(1, at=1.0).aged(10)
    during = before.with_events(1, at=2.0)
    for after in (
        seen(during, "a", heard=before.heard),
        during.with_known("a", heard=before.heard),
    ):
        assert after.pending is not None
        assert (after.pending.version, after.pending.quiet) == ("", 0)
        assert after.version == ""


def test_deletions_alone_are_nothing_to_wait_for() -> None:
    told = Cursor(version="a").with_events(1, at=1.0)
    assert seen(told, "b", new=0).pending is None


def test_data_that_had_its_run_waits_for_none() -> None:
    told = Cursor(version="a").with_events(1, at=1.0)
    known = told.with_known("b", heard=told.heard)
    assert (known.pending, known.version) == (None, "b")
    assert seen(Cursor(version="b"), "b").pending is None, "somebody else ordered it meanwhile"


@pytest.mark.parametrize(
    ("pending", "left"),
    [
        (Pending(), 30), (Pending(quiet=10, waited=10), 20), (Pending(quiet=30, waited=30), 0),
        (Pending(quiet=1, waited=890), 10), (Pending(quiet=1, waited=900), 0),
        (Pending(quiet=99, waited=99), 0),
    ],
)  # fmt: skip
def test_a_run_is_due_after_quiet_or_at_the_longest(pending: Pending, left: float) -> None:
    settings = WatchSettings(quiet=30, longest=900)
    assert seconds_left(pending, settings) == left
    ready = pending.with_(version="a", count=1)
    assert is_ready(ready, settings) == (left == 0)
    assert not is_ready(pending.with_(version=""), settings), "first a look says what there is"
    assert not is_ready(ready, WatchSettings(minimum=2, quiet=30))


def test_without_a_longest_wait_it_stays_due_only_after_quiet() -> None:
    assert seconds_left(Pending(quiet=1, waited=1e9), WatchSettings(longest=0)) == 29


def test_too_few_objects_are_not_looked_at_again_before_something_comes() -> None:
    settings = WatchSettings(minimum=3)
    few = Pending(version="a", count=2)
    assert not is_worth_a_look(few, settings)
    told = Cursor(pending=few).with_events(1, at=0.0).pending
    assert told is not None
    assert is_worth_a_look(told, settings)
    assert is_worth_a_look(Pending(version="a", count=3), settings)
