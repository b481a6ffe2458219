"""How runs ended of late, as one small object."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from components.common.ends import KEY, note_end, outcome_of, read_ends
from components.common.run_record import RunRecord
from infra.folder import FolderStore

START = datetime(2026, 1, 1, tzinfo=UTC)


def record(hour: int, status: str = "finished", **more: Any) -> RunRecord:
    return RunRecord.model_validate(
        {
            "run": f"run-{hour}", "project": "p", "key": "", "status": status, "exit_code": 0,
            "verdict": "", "reasons": [], "hint": "", "started": START + timedelta(hours=hour),
            "seconds": 60.0, "data_digest": "", "data_rows": 0, "steps": [], "champion_before": "",
            "champion_after": "", "commit": "", "report": "",
        } | more
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (record(0, decision="promoted", verdict="promote"), "promoted"),
        (record(0, decision="held", verdict="hold"), "held"),
        (record(0, decision="held", verdict="inconclusive"), "inconclusive"),
        (record(0, decision="proposed", verdict="promote"), "held"),
        (record(0, "nothing_new"), "nothing_new"), (record(0, "stopped"), "stopped"),
        (record(0, "failed"), "failed"), (record(0, "interrupted"), "interrupted"),
    ],
)  # fmt: skip
def test_each_end_has_one_word(given: RunRecord, expected: str) -> None:
    assert outcome_of(given) == expected


def test_of_each_kind_the_last_is_kept_and_which_came_last(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    assert read_ends(store).last == ""
    for given in (record(3, "failed"), record(5, decision="promoted"), record(4, "failed")):
        note_end(store, given)
    ends = read_ends(store)
    assert ends.last == "promoted"
    assert ends.by_outcome["failed"].run == "run-4"
    assert ends.by_outcome["failed"].at == (START + timedelta(hours=4, minutes=1)).timestamp()
    note_end(store, record(1, "failed"))  # its report was written again
    assert read_ends(store) == ends


def test_of_runs_that_end_at_once_none_is_lost_and_damage_is_begun_anew(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    kinds = ["failed", "stopped", "interrupted", "nothing_new"]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: note_end(store, record(n, kinds[n])), range(4)))
    assert set(read_ends(store).by_outcome) == set(kinds)
    store.put(KEY, b"{")
    assert read_ends(store).by_outcome == {}
    note_end(store, record(9, "failed"))
    assert read_ends(store).last == "failed"


def test_a_run_that_never_began_and_a_store_that_is_away_are_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    note_end(FolderStore(tmp_path / "file" / "below"), record(1))
    note_end(FolderStore(tmp_path / "store"), record(1, started=None))
    assert read_ends(FolderStore(tmp_path / "store")).last == ""
