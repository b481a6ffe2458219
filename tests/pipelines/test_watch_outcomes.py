"""How a run ended decides whether a watcher starts it again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from infra.folder import FolderStore
from pipelines.watch.outcomes import outcome_of
from pipelines.watch.starter import Ended
from pipelines.watch.starting import Outcome, Start


def record(code: int, status: str = "failed", **more: Any) -> bytes:
    return json.dumps(
        {
            "run": "run-0", "project": "p", "key": "", "status": status, "exit_code": code,
            "verdict": "", "reasons": ["because"], "hint": "", "started": None, "seconds": 1.0,
            "data_digest": "", "data_rows": 0, "steps": [], "champion_before": "",
            "champion_after": "", "commit": "", "report": "",
        } | more
    ).encode()  # fmt: skip


STARTED = Start(key="v1", name="n", reason="data", token="t", by="b", run="run-0", state="started")


@pytest.mark.parametrize(
    ("written", "ended", "expected"),
    [
        (record(0, "finished", decision="promoted"), Ended(0), (0, "promoted: because", False)),
        (record(0, "nothing_new"), Ended(None), (0, "nothing new: because", False)),
        (record(1, "stopped"), Ended(None), (1, "stopped: because", False)),
        (record(2), Ended(None), (2, "failed: because", False)),
        (record(3), Ended(None), (3, "failed: because", True)),
        (record(130, "interrupted"), Ended(None), (130, "interrupted: because", True)),
        (record(3), Ended(None, cancelled=True), (3, "somebody stopped it", False)),
        (None, Ended(None, words="image pull error"), (None, "image pull error", True)),
        (None, Ended(0), (0, "it ended without a record", False)),
        (None, Ended(2, words="no such key"), (2, "no such key", False)),
        (b"half of", Ended(None), (None, "it ended without a record", True)),
    ],
)  # fmt: skip
def test_how_a_run_ended_decides_whether_it_is_tried_again(
    tmp_path: Path, written: bytes | None, ended: Ended, expected: tuple[int | None, str, bool]
) -> None:
    store = FolderStore(tmp_path)
    if written is not None:
        store.put("runs/run-0/run.json", written)
    found = outcome_of(store, STARTED, ended)
    assert (found.exit_code, found.words, found.again) == expected
    assert found.counts


def test_a_run_that_was_skipped_is_tried_again_and_does_not_count(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put("runs/run-0/run.json", record(0, "skipped"))
    assert outcome_of(store, STARTED, Ended(0)) == Outcome(0, "because", again=True, counts=False)
