"""Fights for a lease in their short form, and that what is wrong is counted."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from infra import lease, lease_record
from infra.folder import FolderStore
from tests.infra.loopback import S3Server
from tests.infra.seaweed import s3_running
from tests.proofs import lease_contenders
from tests.proofs.lease_contenders import End
from tests.proofs.lease_fights import fights, forked


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_running(tmp_path_factory.mktemp("weed")) as server:
        yield server


@pytest.mark.slow
def test_there_are_never_two_holders_and_the_dead_are_free_in_time(
    tmp_path: Path, s3: S3Server
) -> None:
    figures = fights(12, tmp_path, s3=s3, at_once=12, patience=8)
    assert (figures["fights"], figures["on_s3"]) == (12, 6)
    assert figures["holders"] > 20
    assert figures["killed"] + figures["stopped"] + figures["crashed"] > 10
    assert figures["taken_over"] > 0
    bad = ("two_holders", "stale_writes", "tokens_repeated", "late", "broken")
    assert [figures[name] for name in bad] == [0] * 5


patch = pytest.MonkeyPatch()  # in a process of its own, which ends with what it has broken


def _believes_too_long() -> None:
    patch.setattr(lease, "RESOLUTION", -4.0)


def _is_taken_too_early() -> None:
    patch.setattr(lease_record, "RESOLUTION", 4.0)


def _is_taken_too_late() -> None:
    patch.setattr(lease_record, "RESOLUTION", -1.0)


def _does_not_compare() -> None:
    def swap(store: FolderStore, key: str, data: bytes, *, version: str) -> str:
        time.sleep(0.02)
        store.put(key, data)
        return "written"

    patch.setattr(FolderStore, "replace", swap)


def _does_not_count() -> None:
    real = lease_record.of_new_holder

    def same(*given: Any, **more: Any) -> lease_record.LeaseRecord:
        return real(*given, **more).model_copy(update={"token": 1})

    patch.setattr(lease, "of_new_holder", same)


def _takes_every_write() -> None:
    def take(resource: Any, who: str, token: int, what: str = "write") -> bool:
        line = {"who": who, "token": token, "what": what, "taken": True, "at": lease.boot_seconds()}
        with resource._path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        return True

    patch.setattr(lease_contenders.Resource, "write", take)


ENDS: tuple[End, ...] = ("lives", "stops_itself")
BROKEN: dict[str, tuple[Callable[[], None], str]] = {
    "a holder believes for too long": (_believes_too_long, "two_holders"),
    "it can be taken too early": (_is_taken_too_early, "two_holders"),
    "it can be taken too late only": (_is_taken_too_late, "late"),
    "the store does not compare": (_does_not_compare, "two_holders"),
    "the number does not grow": (_does_not_count, "tokens_repeated"),
    "what takes the writes looks at no number": (_takes_every_write, "stale_writes"),
}


@pytest.mark.slow
def test_what_is_wrong_with_a_lease_is_counted(tmp_path: Path) -> None:
    """All at once, each in a process of its own that has it broken: most of the time they wait."""
    children = {}
    for name, (break_it, wanted) in BROKEN.items():
        place = tmp_path / name.replace(" ", "-")
        place.mkdir()
        children[name] = forked(partial(_fights, break_it, wanted, place))
    for name, pid in children.items():
        _, status = os.waitpid(pid, 0)
        assert status == 0, name


def _fights(break_it: Callable[[], None], wanted: str, place: Path) -> None:
    """Fight until what is wrong is seen: whether it shows is a matter of moments."""
    break_it()
    for seed in (0, 100, 200, 300):
        figures = fights(6, place, s3=None, at_once=6, seed=seed, patience=10, ends=ENDS)
        if figures[wanted] > 0:
            return
    raise AssertionError(figures)
