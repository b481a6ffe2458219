"""One search of a study at a time, wherever the others are."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.tune.turn import my_turn
from infra.errors import LeaseLost, OutsideError
from infra.folder import FolderStore
from infra.guarded import GuardedStore
from infra.lease import Lease


def test_a_search_elsewhere_is_refused_until_this_one_has_ended(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    with my_turn(store, folder=tmp_path / "here", name="s"):
        with (
            pytest.raises(OutsideError, match="under way elsewhere"),
            my_turn(store, folder=tmp_path / "there", name="s"),
        ):
            pass
        with my_turn(store, folder=tmp_path / "there", name="another"):
            pass
    with my_turn(store, folder=tmp_path / "there", name="s"):
        pass


def test_who_has_lost_the_study_writes_no_more(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    with my_turn(store, folder=tmp_path / "here", name="s") as mine:
        guarded = GuardedStore(store, mine.ensure)
        guarded.put("tune/s/journal/00000001.json", b"[]")
        lease = Lease(store, "tune/s/lease.json")
        seen = lease.look()
        assert seen is not None
        lease.release(seen.record.holder.run, broken="an operator")
        with pytest.raises(LeaseLost):
            mine._renew()  # as its thread does, every twenty seconds
        with pytest.raises(LeaseLost):
            guarded.put("tune/s/journal/00000002.json", b"[]")
