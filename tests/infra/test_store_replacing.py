"""Compare and swap, and ages by the store's clock: the part of the contract that leases rest on."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from infra.store import ObjectStore


def test_what_is_read_has_its_version_and_an_age_by_the_stores_own_clock(
    store: ObjectStore,
) -> None:
    store.put("a", b"12345")
    info = store.info("a")
    assert info is not None
    first = store.read("a")
    assert (first.data, first.version) == (b"12345", info.version)
    assert 0 <= first.age < 30
    time.sleep(2.1)
    assert 1 <= store.read("a").age - first.age < 30
    store.put("a", b"54321")
    assert store.read("a").version != first.version


def test_replace_writes_only_over_the_version_that_was_read(store: ObjectStore) -> None:
    assert store.replace("deep/a", b"first", version="x") is None, "there is nothing to replace"
    assert store.info("deep/a") is None
    assert store.create("deep/a", b"first") is True
    seen = store.read("deep/a").version
    second = store.replace("deep/a", b"second", version=seen)
    assert second == store.read("deep/a").version
    assert store.replace("deep/a", b"third", version=seen) is None, "that is gone"
    assert store.get("deep/a") == b"second"
    assert second is not None
    assert store.replace("deep/a", b"third", version=second) is not None
    store.delete("deep/a")
    assert store.replace("deep/a", b"fourth", version=second) is None
    assert list(store.list()) == []


def test_of_eight_who_count_by_replacing_none_loses_a_count(store: ObjectStore) -> None:
    store.create("count", b"0 nobody")

    def count(who: int) -> None:
        done = 0
        while done < 5:
            seen = store.read("count")
            total = int(seen.data.split()[0]) + 1
            content = f"{total} {who}".encode()  # never the same bytes twice
            done += store.replace("count", content, version=seen.version) is not None

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(8)))
    assert store.get("count").split()[0] == b"40"
