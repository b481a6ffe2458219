"""Listing a place again and again: of many objects only the last, and only a tenth of the time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from infra.events import polling
from infra.events.polling import Polling
from infra.folder import FolderStore
from infra.store import ObjectInfo


class Counted:
    """A folder of which it is known how much was listed."""

    def __init__(self, root: Path) -> None:
        self.store, self.uri, self.listed = FolderStore(root), str(root), 0
        self.clock, self.slow = 0.0, 0.0

    def list(self, *, after: str = "") -> Iterator[ObjectInfo]:
        self.listed = 0
        self.clock += self.slow
        for info in self.store.list(after=after):
            self.listed += 1
            yield info

    def chosen(self, keys: Sequence[str]) -> Sequence[bool]:
        return [not key.endswith(".part") for key in keys]


@pytest.fixture
def place(tmp_path: Path) -> Counted:
    return Counted(tmp_path)


def keys(source: Polling, place: Counted) -> list[str]:
    return [event.key.removeprefix(f"{place.uri}/") for event in source.wait(0)]


def test_of_many_objects_the_last_are_listed(
    place: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "TAIL", 10)
    for number in range(100):
        place.store.put(f"{number // 10:02}/{number:03}", b"x")
    source = Polling([place], every=0)
    assert source.wait(0) == []
    assert place.listed == 100
    assert source.wait(0) == []
    assert place.listed == 10
    place.store.put("10/100", b"x")
    place.store.put("09/0995", b"x")
    place.store.put("09/095", b"another size")
    place.store.put("00/0005", b"x")  # too far back: for who lists everything
    assert keys(source, place) == ["09/095", "09/0995", "10/100"]
    assert place.listed == 12
    source.confirm()
    assert source.wait(0) == []


def test_the_tail_stays_short_while_objects_come(
    place: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "TAIL", 10)
    source = Polling([place], every=0)
    assert source.wait(0) == []
    for number in range(60):
        place.store.put(f"{number:03}", b"x")
        assert keys(source, place) == [f"{number:03}"]
        source.confirm()
        assert place.listed <= 21
    place.store.delete("055")
    assert source.wait(0) == []
    source.confirm()
    place.store.put("055", b"x")
    assert keys(source, place) == ["055"]


def test_looks_take_at_most_a_tenth_of_the_time(place: Counted) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        place.clock += seconds

    source = Polling([place], every=5.0, clock=lambda: place.clock, sleep=sleep, now=lambda: 7.0)
    source.wait(100.0)
    source.wait(100.0)
    assert slept == [0.0, 5.0]
    place.slow = 3.0
    source.wait(100.0)  # begins at 10, ends at 13: the next one begins at 40
    looks, before = source.looks, place.clock
    assert source.wait(20.0) == []
    assert (source.looks, place.clock - before) == (looks, 20.0)
    source.wait(20.0)
    assert (source.looks, place.clock) == (looks + 1, 43.0)
    source.wait(0)  # whoever asks not to wait gets a look
    assert source.looks == looks + 2


def test_two_places_are_both_looked_at(tmp_path: Path) -> None:
    places = [Counted(tmp_path / "one"), Counted(tmp_path / "two")]
    source = Polling(places, every=0)
    assert source.wait(0) == []
    for place in places:
        place.store.put("a", b"x")
        place.store.put("b.part", b"x")
    assert [event.key for event in source.wait(0)] == [f"{place.uri}/a" for place in places]
    assert source.about == f"{tmp_path}/one, {tmp_path}/two"
