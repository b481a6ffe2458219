"""A lease has one holder at a time, its numbers only grow, and a dead holder's ends in time."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from loopback import BUCKET

from infra.errors import LeaseLost, ObjectDamaged, OutsideError
from infra.lease import KEY, Lease, boot_seconds
from infra.lease_record import GAP, Grant, Holder, LeaseRecord, Seen
from infra.store import ObjectStore, Versioned, open_store

ONE, TWO = Holder(run="one", who="eve", where="laptop", how="evertrain run"), Holder(run="two")


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "folder":
        return open_store(tmp_path / "store")
    request.getfixturevalue("s3_environment")
    return open_store(f"s3://{BUCKET}/{uuid.uuid4().hex}")


class Aged:
    """A store whose clock has gone on by so many seconds since anything was written."""

    def __init__(self, store: ObjectStore, by: float = 0.0) -> None:
        self._store, self.by = store, by
        self.before_write: Callable[[], None] = lambda: None
        self.lose_replies = 0

    def read(self, key: str) -> Versioned:
        read = self._store.read(key)
        return read._replace(age=read.age + self.by)

    def replace(self, key: str, data: bytes, *, version: str) -> str | None:
        self.before_write()
        written = self._store.replace(key, data, version=version)
        if self.lose_replies:
            self.lose_replies -= 1
            raise OutsideError("the reply was lost")
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def aged(store: ObjectStore, by: float = 0.0) -> Aged:
    return Aged(store, by)


def lease_on(store: Any, **more: Any) -> Lease:
    return Lease(store, **more)


def granted(got: Grant | Seen) -> Grant:
    assert isinstance(got, Grant)
    return got


def test_of_two_the_second_is_told_who_has_it_and_since_when(store: ObjectStore) -> None:
    lease = Lease(store)
    assert lease.look() is None
    first = granted(lease.take(ONE, seconds=120))
    assert (first.token, first.fence) == (1, "")
    seen = lease.take(TWO, seconds=120)
    assert isinstance(seen, Seen)
    assert seen.words.startswith("run one of eve@laptop (evertrain run) holds the lease since 20")
    assert seen.words.endswith(" UTC")
    assert 117 < seen.expires_in <= 119
    assert not seen.free


def test_whoever_takes_it_next_has_the_next_number(store: ObjectStore) -> None:
    lease = Lease(store)
    for number, run in enumerate(["one", "two", "one", "three"], 1):
        got = granted(lease.take(Holder(run=run), seconds=120))
        assert (got.token, got.fence) == (number, "")
        assert lease.release(run)
        assert not lease.release(run), "it has let go already"
    seen = lease.look()
    assert seen is not None
    assert seen.free
    assert seen.record.token == 4


def test_the_same_run_takes_it_again_with_the_same_number(store: ObjectStore) -> None:
    """A pod that is tried again after it died, wherever it died."""
    lease = Lease(store)
    first = granted(lease.take(ONE, seconds=120))
    again = granted(lease.take(Holder(run="one", where="another pod"), seconds=60))
    assert again.token == first.token == 1
    taken_up = lease.resume(ONE, seconds=60)
    assert taken_up is not None
    assert taken_up.token == 1
    assert lease.renew(first, seconds=60).token == 1, "steps that run side by side share it"


def test_a_dead_holder_s_lease_is_free_within_its_time_and_not_before(store: ObjectStore) -> None:
    lease = Lease(store)
    began = boot_seconds()
    granted(lease.take(ONE, seconds=5))
    written, asked = boot_seconds(), boot_seconds()
    while isinstance(got := lease.take(TWO, seconds=5), Seen):
        assert asked - written <= 5, "it was over when it was asked for"
        time.sleep(0.1)
        asked = boot_seconds()
    assert got.token == 2
    assert "run one of eve@laptop (evertrain run) gave no sign of life for " in got.fence
    assert boot_seconds() - began > 5 - 2, "its holder believed until then"


def test_a_holder_stops_believing_before_anybody_else_may_take_it(tmp_path: Path) -> None:
    store = aged(open_store(tmp_path))
    now = 1000.0
    lease = lease_on(store, clock=lambda: now)
    got = granted(lease.take(ONE, seconds=30))
    assert got.until == 1000 + 30 - 2, "counted from before the write"
    for age, free in ((27.9, False), (28.9, False), (29.01, True)):
        store.by = age
        seen = lease.look()
        assert seen is not None
        # an age is said to within a second: what is called 29 s may be 28 s
        assert seen.free is free
    store.by = 28.5
    assert isinstance(lease.take(TWO, seconds=30), Seen)
    store.by = 29.01
    assert granted(lease.take(TWO, seconds=30)).token == 2


def test_time_counts_from_before_a_write_that_was_slow(tmp_path: Path) -> None:
    store, now = aged(open_store(tmp_path)), [100.0]
    lease = lease_on(store, clock=lambda: now[0])
    got = granted(lease.take(ONE, seconds=30))

    def slow() -> None:
        now[0] += 20

    store.before_write = slow
    assert lease.renew(got, seconds=30).until == 100 + 28


def test_a_sign_of_life_keeps_it_and_says_for_how_long(store: ObjectStore) -> None:
    old = aged(store)
    lease = lease_on(old)
    got = granted(lease.take(ONE, seconds=10))
    lease.renew(got, seconds=900)
    old.by = 100
    seen = lease.look()
    assert seen is not None
    assert not seen.free
    assert seen.record.seconds == 900
    assert seen.record.since == LeaseRecord.model_validate_json(store.get(KEY)).since


def test_whose_time_was_over_goes_on_if_nobody_took_it_and_else_is_told_who_did(
    store: ObjectStore,
) -> None:
    old = aged(store)
    lease = lease_on(old)
    got = granted(lease.take(ONE, seconds=10))
    old.by = 100
    got = lease.renew(got, seconds=10)
    granted(lease.take(TWO, seconds=10))
    with pytest.raises(LeaseLost, match=r"run one has lost the lease: run two holds it since 20"):
        lease.renew(got, seconds=10)
    with pytest.raises(LeaseLost, match="run two holds it"):
        lease.resume(ONE, seconds=10)
    assert not lease.release("one"), "it is another's"
    assert lease.release("two")
    with pytest.raises(LeaseLost, match=r"run two had it since .*, and let go of it"):
        lease.resume(ONE, seconds=10)


def test_a_run_that_let_go_and_is_tried_again_gets_a_new_number(store: ObjectStore) -> None:
    lease = Lease(store)
    assert lease.resume(ONE, seconds=10) is None, "nobody ever took it"
    got = granted(lease.take(ONE, seconds=10))
    lease.release("one")
    with pytest.raises(LeaseLost, match="run one has lost the lease: it has let go of it"):
        lease.renew(got, seconds=10)
    again = lease.resume(ONE, seconds=10)
    assert again is not None
    assert again.token == 2


def test_a_run_that_it_was_taken_away_from_does_not_take_it_up_again(store: ObjectStore) -> None:
    lease = Lease(store)
    got = granted(lease.take(ONE, seconds=10))
    assert lease.release("one", fence="eve took it", broken="eve")
    for attempt in (lambda: lease.renew(got, seconds=10), lambda: lease.resume(ONE, seconds=10)):
        with pytest.raises(LeaseLost, match="run one has lost the lease: eve took it away"):
            attempt()
    assert granted(lease.take(TWO, seconds=10)).fence == "eve took it"


def test_why_the_next_one_must_make_its_number_known_is_kept_until_it_has(
    store: ObjectStore,
) -> None:
    lease = Lease(store)
    granted(lease.take(ONE, seconds=10))
    lease.release("one", fence="run one was killed")
    two = granted(lease.take(TWO, seconds=10))
    assert two.fence == "run one was killed"
    assert granted(lease.take(TWO, seconds=10)).fence == two.fence, "it died before it had"
    lease.release("two")
    three = granted(lease.take(Holder(run="three"), seconds=10))
    assert three.fence == two.fence, "nor had run two"
    assert lease.renew(three, seconds=10, fenced=True).fence == ""
    lease.release("three")
    assert granted(lease.take(ONE, seconds=10)).fence == ""


@pytest.mark.parametrize("what", ["take", "renew", "release"])
def test_a_lost_reply_to_a_write_that_was_made_changes_nothing(
    store: ObjectStore, what: str
) -> None:
    faulty = aged(store)
    lease = lease_on(faulty)
    got = granted(lease.take(TWO, seconds=10))
    if what == "take":
        lease.release("two")
    faulty.lose_replies = 1
    if what == "take":
        assert granted(lease.take(ONE, seconds=10)).token == 2
    elif what == "renew":
        assert lease.renew(got, seconds=99).token == 1
    else:
        assert lease.release("two")
    seen = lease.look()
    assert seen is not None
    assert (seen.record.holder.run, seen.record.held) == {
        "take": ("one", True), "renew": ("two", True), "release": ("two", False)
    }[what]  # fmt: skip


def test_a_write_that_was_not_made_is_an_error(store: ObjectStore) -> None:
    faulty = aged(store)
    lease = lease_on(faulty)
    got = granted(lease.take(ONE, seconds=10))

    def refuse() -> None:
        raise OutsideError("no such server")

    faulty.before_write = refuse
    with pytest.raises(OutsideError, match="no such server"):
        lease.renew(got, seconds=10)


def test_of_sixteen_who_find_it_free_one_gets_it(store: ObjectStore) -> None:
    for race in range(4):
        gate = threading.Barrier(16)

        def fight(n: int, race: int = race, gate: threading.Barrier = gate) -> Grant | Seen:
            gate.wait()
            return Lease(store).take(Holder(run=f"{race}-{n}"), seconds=60)

        with ThreadPoolExecutor(16) as pool:
            got = list(pool.map(fight, range(16)))
        winners = [each for each in got if isinstance(each, Grant)]
        assert [winner.token for winner in winners] == [race + 1]
        losers = {each.record.holder.run for each in got if isinstance(each, Seen)}
        assert losers == {winners[0].holder.run}
        Lease(store).release(winners[0].holder.run)


def test_steps_side_by_side_give_signs_of_life_without_losing_any(store: ObjectStore) -> None:
    lease = Lease(store)
    got = granted(lease.take(ONE, seconds=60))

    def live(n: int) -> int:
        own, mine = Lease(store), got
        for _ in range(5):
            mine = own.renew(mine, seconds=60 + n)
        return mine.token

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(live, range(8))) == {1}


@pytest.mark.parametrize("content", [b"", b"{}", b"\0\xff", b'{"format": "evertrain/lease/9"}'])
def test_a_damaged_one_is_nobody_s_and_is_never_written_over_by_itself(
    store: ObjectStore, content: bytes
) -> None:
    lease = Lease(store)
    got = granted(lease.take(ONE, seconds=10))
    store.put(KEY, content)
    for attempt in (
        lease.look,
        lambda: lease.take(TWO, seconds=10),
        lambda: lease.renew(got, seconds=10),
        lambda: lease.resume(ONE, seconds=10),
        lambda: lease.release("one"),
    ):
        with pytest.raises(ObjectDamaged, match=r"lease\.json in .* is no lease") as caught:
            attempt()
        assert "evertrain lease PROJECT --break" in caught.value.hint
    assert store.get(KEY) == content
    assert lease.reset(TWO, floor=7)
    two = granted(lease.take(TWO, seconds=10))
    assert two.token > 7 + GAP, "its counter is lost: far above all that were ever given"
    assert two.fence


def test_one_that_was_deleted_is_lost_and_the_next_number_is_far_above_what_is_known(
    store: ObjectStore,
) -> None:
    lease = Lease(store)
    got = granted(lease.take(ONE, seconds=10))
    store.delete(KEY)
    with pytest.raises(LeaseLost, match="is gone"):
        lease.renew(got, seconds=10)
    two = granted(lease.take(TWO, seconds=10, floor=3))
    assert two.token == 3 + GAP
    assert two.fence


def test_no_two_contents_are_equal(store: ObjectStore) -> None:
    """On S3 equal contents would have one version, and compare-and-swap would see no difference."""
    lease, seen = Lease(store), set()
    got = granted(lease.take(ONE, seconds=10))
    for _ in range(3):
        seen.add(json.loads(store.get(KEY))["nonce"])
        got = lease.renew(got, seconds=10)
    assert len(seen) == 3
