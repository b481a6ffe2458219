"""The ledger: a holdout that is asked again and again may be sure of less and less."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from components.common.layout import object_key
from components.evaluate_model.questions import Ledger, confidence_of, row_keys
from infra.errors import OutsideError
from infra.folder import FolderStore


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(FolderStore(tmp_path))


def keys(first: int, last: int) -> Any:
    return row_keys(pd.DataFrame({"id": range(first, last)}), ["id"])


def ask(ledger: Ledger, rows: Any, run: str, champion: int = 0) -> Any:
    return ledger.ask(rows, run=run, run_key=run, champion=champion, confidence=0.95)


def test_rows_never_asked_before_have_the_whole_confidence(ledger: Ledger) -> None:
    assert ask(ledger, keys(0, 100), "a").confidence == 0.95
    later = ask(ledger, keys(100, 200), "b")  # the holdout has moved on
    assert (later.number, later.uses, later.confidence) == (2, 1.0, 0.95)


def test_the_same_rows_may_err_with_less_each_time(ledger: Ledger) -> None:
    uses = [ask(ledger, keys(0, 100), run).uses for run in "abc"]
    assert uses == [1.0, 2.0, 3.0]
    assert ask(ledger, keys(0, 100), "d").confidence == pytest.approx(1 - 0.05 / 16)


def test_all_questions_together_err_little_more_than_one_may() -> None:
    errors = sum(1 - confidence_of(k, 0.95) for k in range(1, 10_000)) / 2  # one-sided
    assert errors < 0.0412


def test_half_of_the_rows_asked_before_are_half_a_question(ledger: Ledger) -> None:
    ask(ledger, keys(0, 100), "a")
    assert ask(ledger, keys(50, 150), "b").uses == 1.5


def test_the_same_question_after_a_crash_is_the_same_one(ledger: Ledger) -> None:
    first = ask(ledger, keys(0, 100), "a")
    assert ask(ledger, keys(0, 100)[::-1], "a") == first  # the order is no part of it
    assert len(ledger.questions()) == 1
    assert ask(ledger, keys(0, 100), "a", champion=1).uses == 2.0  # another champion: another


def test_how_often_each_row_was_asked_is_known(ledger: Ledger) -> None:
    ask(ledger, keys(0, 10), "a")
    ask(ledger, keys(5, 15), "b")
    uses = ledger.uses(keys(0, 20), run_key="c", champion=0)
    assert list(uses) == [2] * 5 + [3] * 5 + [2] * 5 + [1] * 5


def test_the_key_of_a_row_is_the_same_in_every_process_and_order() -> None:
    rows = pd.DataFrame({"day": ["2013-01-01", "2013-01-01"], "flight": [1, 2]})
    found = row_keys(rows, ["day", "flight"])
    assert list(found) == [1836849479115692015, 4920684790801977439]
    assert np.array_equal(row_keys(rows[::-1], ["day", "flight"])[::-1], found)


def test_many_at_once_take_numbers_of_their_own(ledger: Ledger) -> None:
    runs = [f"run{i}" for i in range(8)]
    threads = [threading.Thread(target=ask, args=(ledger, keys(0, 50), run)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = ledger.questions()
    assert [q.number for q in found] == list(range(1, 9))
    assert {q.run for q in found} == set(runs)
    assert [q.uses for q in found] == [float(k) for k in range(1, 9)]


def test_a_damaged_ledger_decides_nothing(ledger: Ledger) -> None:
    first = ask(ledger, keys(0, 100), "a")
    ledger.store.put(object_key(first.keys), b"other rows")
    with pytest.raises(OutsideError, match="are not those asked"):
        ask(ledger, keys(0, 100), "b")
    ledger.store.put("questions/00000003.json", b"{}")
    with pytest.raises(OutsideError, match="no question"):
        ledger.questions()
