"""What MLflow has not got outlives the pod."""

from __future__ import annotations

from pathlib import Path

from infra.folder import FolderStore
from infra.kept_spools import KeptSpools
from infra.spool import Spool, Unsent


def _spool(folder: Path, key: str, *steps: int) -> Path:
    spool = Spool(folder, key=key, experiment="e", name="n", tags={})
    for step in steps:
        spool.metrics(step, {"loss": 1 / step})
    spool.close()
    return spool.path


def _steps(path: Path) -> list[int]:
    unsent = Unsent(path)
    messages, _ = unsent.batch(1000)
    unsent.close()
    return [message[2] for message in messages if message[0] == "metrics"]


def test_another_pod_finds_what_was_kept_whoevers_it_is(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    for key in ("one", "two"):
        path = _spool(tmp_path / "pod-1", key, 5, 10)
        KeptSpools(store, tmp_path / "pod-1").settle(path)
    there = tmp_path / "pod-2"
    KeptSpools(store, there).bring()
    assert [_steps(path) for path in sorted(there.glob("*.jsonl"))] == [[5, 10], [5, 10]]


def test_what_was_sent_is_kept_no_longer(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    before = _spool(tmp_path / "pod-1", "one", 5)
    KeptSpools(store, tmp_path / "pod-1").keep(before)
    kept = KeptSpools(store, tmp_path / "pod-2")
    kept.bring()
    own = _spool(tmp_path / "pod-2", "one", 10)
    (tmp_path / "pod-2" / before.name).unlink()  # sent
    kept.settle(own)
    assert [info.key for info in store.list("spools/")] == [f"spools/{own.name}"]


def test_what_is_here_is_not_replaced_by_what_was_kept_of_it(tmp_path: Path) -> None:
    store, folder = FolderStore(tmp_path / "store"), tmp_path / "pod"
    path = _spool(folder, "one", 5)
    kept = KeptSpools(store, folder)
    kept.keep(path)
    path.write_bytes(path.read_bytes() + b'["metrics", 1, 10, {"loss": 0.1}]\n')
    kept.bring()
    assert _steps(path) == [5, 10]


def test_a_store_that_is_away_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("no folder")
    kept = KeptSpools(FolderStore(tmp_path / "store"), tmp_path / "pod")
    path = _spool(tmp_path / "pod", "one", 5)
    kept.bring()
    kept.keep(path)
    kept.settle(path)
    assert _steps(path) == [5]
