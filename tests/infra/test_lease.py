"""A lease has one holder at a time, its numbers only grow, and a dead holder's ends in time."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lease_samples import ONE, TWO, Aged, granted

from infra.lease import KEY, Lease, boot_seconds
from infra.lease_record import Grant, Holder, LeaseRecord, Seen
from infra.store import ObjectStore, open_store


def test_of_two_the_second_is_told_who_has_it_and_since_when(any_store: ObjectStore) -> None:
    lease = Lease(any_store)
    assert lease.look() is None
    first = granted(lease.take(ONE, seconds=120))
    assert (first.token, first.fence) == (1, "")
    seen = lease.take(TWO, seconds=120)
    assert isinstance(seen, Seen)
    assert seen.words.startswith("run one of eve@laptop (evertrain run) holds the lease since 20")
    assert seen.words.endswith(" UTC")
    assert 117 < seen.expires_in <= 119
    assert not seen.free


def test_whoever_takes_it_next_has_the_next_number(any_store: ObjectStore) -> None:
    lease = Lease(any_store)
    for number, run in enumerate(["one", "two", "one", "three"], 1):
        got = granted(lease.take(Holder(run=run), seconds=120))
        assert (got.token, got.fence) == (number, "")
        assert lease.release(run)
        assert not lease.release(run), "it has let go already"
    seen = lease.look()
    assert seen is not None
    assert seen.free
    assert seen.record.token == 4


def test_the_same_run_takes_it_again_with_the_same_number(any_store: ObjectStore) -> None:
    """A pod that is tried again after it died, wherever it died."""
    lease = Lease(any_store)
    first = granted(lease.take(ONE, seconds=120))
    again = granted(lease.take(Holder(run="one", where="another pod"), seconds=60))
    assert again.token == first.token == 1
    taken_up = lease.resume(ONE, seconds=60)
    assert taken_up is not None
    assert taken_up.token == 1
    assert lease.renew(first, seconds=60).token == 1, "steps that run side by side share it"


def test_a_dead_holder_s_lease_is_free_within_its_time_and_not_before(
    any_store: ObjectStore,
) -> None:
    lease = Lease(any_store)
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
    store = Aged(open_store(tmp_path))
    now = 1000.0
    lease = Lease(store, clock=lambda: now)
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
    store, now = Aged(open_store(tmp_path)), [100.0]
    lease = Lease(store, clock=lambda: now[0])
    got = granted(lease.take(ONE, seconds=30))

    def slow() -> None:
        now[0] += 20

    store.before_write = slow
    assert lease.renew(got, seconds=30).until == 100 + 28


def test_a_sign_of_life_keeps_it_and_says_for_how_long(any_store: ObjectStore) -> None:
    old = Aged(any_store)
    lease = Lease(old)
    got = granted(lease.take(ONE, seconds=10))
    lease.renew(got, seconds=900)
    old.by = 100
    seen = lease.look()
    assert seen is not None
    assert not seen.free
    assert seen.record.seconds == 900
    assert seen.record.since == LeaseRecord.model_validate_json(any_store.get(KEY)).since


def test_why_the_next_one_must_make_its_number_known_is_kept_until_it_has(
    any_store: ObjectStore,
) -> None:
    lease = Lease(any_store)
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


def test_of_sixteen_who_find_it_free_one_gets_it(any_store: ObjectStore) -> None:
    for race in range(4):
        gate = threading.Barrier(16)

        def fight(n: int, race: int = race, gate: threading.Barrier = gate) -> Grant | Seen:
            gate.wait()
            return Lease(any_store).take(Holder(run=f"{race}-{n}"), seconds=60)

        with ThreadPoolExecutor(16) as pool:
            got = list(pool.map(fight, range(16)))
        winners = [each for each in got if isinstance(each, Grant)]
        assert [winner.token for winner in winners] == [race + 1]
        losers = {each.record.holder.run for each in got if isinstance(each, Seen)}
        assert losers == {winners[0].holder.run}
        Lease(any_store).release(winners[0].holder.run)


def test_steps_side_by_side_give_signs_of_life_without_losing_any(any_store: ObjectStore) -> None:
    lease = Lease(any_store)
    got = granted(lease.take(ONE, seconds=60))

    def live(n: int) -> int:
        own, mine = Lease(any_store), got
        for _ in range(5):
            mine = own.renew(mine, seconds=60 + n)
        return mine.token

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(live, range(8))) == {1}


def test_no_two_contents_are_equal(any_store: ObjectStore) -> None:
    """On S3 equal contents would have one version, and compare-and-swap would see no difference."""
    lease, seen = Lease(any_store), set()
    got = granted(lease.take(ONE, seconds=10))
    for _ in range(3):
        seen.add(json.loads(any_store.get(KEY))["nonce"])
        got = lease.renew(got, seconds=10)
    assert len(seen) == 3
