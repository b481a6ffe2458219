"""What becomes of a lease when it is lost, taken away, damaged or deleted, or when replies are."""

from __future__ import annotations

import pytest
from lease_samples import ONE, TWO, Aged, granted

from infra.errors import LeaseLost, ObjectDamaged, OutsideError
from infra.lease import KEY, Lease
from infra.lease_record import GAP
from infra.store import ObjectStore


def test_whose_time_was_over_goes_on_if_nobody_took_it_and_else_is_told_who_did(
    any_store: ObjectStore,
) -> None:
    old = Aged(any_store)
    lease = Lease(old)
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


def test_a_run_that_let_go_and_is_tried_again_gets_a_new_number(any_store: ObjectStore) -> None:
    lease = Lease(any_store)
    assert lease.resume(ONE, seconds=10) is None, "nobody ever took it"
    got = granted(lease.take(ONE, seconds=10))
    lease.release("one")
    with pytest.raises(LeaseLost, match="run one has lost the lease: it has let go of it"):
        lease.renew(got, seconds=10)
    again = lease.resume(ONE, seconds=10)
    assert again is not None
    assert again.token == 2


def test_a_run_that_it_was_taken_away_from_does_not_take_it_up_again(
    any_store: ObjectStore,
) -> None:
    lease = Lease(any_store)
    got = granted(lease.take(ONE, seconds=10))
    assert lease.release("one", fence="eve took it", broken="eve")
    for attempt in (lambda: lease.renew(got, seconds=10), lambda: lease.resume(ONE, seconds=10)):
        with pytest.raises(LeaseLost, match="run one has lost the lease: eve took it away"):
            attempt()
    assert granted(lease.take(TWO, seconds=10)).fence == "eve took it"


@pytest.mark.parametrize("what", ["take", "renew", "release"])
def test_a_lost_reply_to_a_write_that_was_made_changes_nothing(
    any_store: ObjectStore, what: str
) -> None:
    faulty = Aged(any_store)
    lease = Lease(faulty)
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


def test_a_write_that_was_not_made_is_an_error(any_store: ObjectStore) -> None:
    faulty = Aged(any_store)
    lease = Lease(faulty)
    got = granted(lease.take(ONE, seconds=10))

    def refuse() -> None:
        raise OutsideError("no such server")

    faulty.before_write = refuse
    with pytest.raises(OutsideError, match="no such server"):
        lease.renew(got, seconds=10)


@pytest.mark.parametrize("content", [b"", b"{}", b"\0\xff", b'{"format": "evertrain/lease/9"}'])
def test_a_damaged_one_is_nobody_s_and_is_never_written_over_by_itself(
    any_store: ObjectStore, content: bytes
) -> None:
    lease = Lease(any_store)
    got = granted(lease.take(ONE, seconds=10))
    any_store.put(KEY, content)
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
    assert any_store.get(KEY) == content
    assert lease.reset(TWO, floor=7)
    two = granted(lease.take(TWO, seconds=10))
    assert two.token > 7 + GAP, "its counter is lost: far above all that were ever given"
    assert two.fence


def test_one_that_was_deleted_is_lost_and_the_next_number_is_far_above_what_is_known(
    any_store: ObjectStore,
) -> None:
    lease = Lease(any_store)
    got = granted(lease.take(ONE, seconds=10))
    any_store.delete(KEY)
    with pytest.raises(LeaseLost, match="is gone"):
        lease.renew(got, seconds=10)
    two = granted(lease.take(TWO, seconds=10, floor=3))
    assert two.token == 3 + GAP
    assert two.fence
