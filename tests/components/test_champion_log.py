"""The promotion log: one winner of a race, faults that stop everything, aliases that follow it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from components.common.aliases import repair_aliases
from components.common.champion import (
    PromotionEntry,
    PromotionLog,
    champion_and_previous,
    champion_entry,
)
from infra.errors import OutsideError
from infra.folder import FolderStore


def entry(number: int, version: str = "1", **values: Any) -> PromotionEntry:
    facts: dict[str, Any] = {
        "number": number, "action": "promote", "version": version, "run": f"run-{number}",
        "run_key": f"key-{version}", "package": {}, "seen": {}, "reason": "", "who": "a test",
    }  # fmt: skip
    return PromotionEntry(**{**facts, **values})


@pytest.fixture
def log(tmp_path: Path) -> PromotionLog:
    return PromotionLog(FolderStore(tmp_path / "store"))


def test_of_twelve_writers_of_one_number_one_wins(log: PromotionLog) -> None:
    for number in range(1, 6):
        start = Barrier(12)

        def write(version: int, number: int = number, start: Barrier = start) -> bool:
            start.wait()
            return log.append(entry(number, str(version)))

        with ThreadPoolExecutor(12) as pool:
            won = list(pool.map(write, range(12)))
        assert sum(won) == 1
        assert log.entries()[-1].version == str(won.index(True))
    assert [e.number for e in log.entries()] == [1, 2, 3, 4, 5]


def test_a_lost_reply_is_recognised_by_the_token(log: PromotionLog) -> None:
    mine = entry(1)
    assert log.append(mine)
    assert log.append(mine), "the object is there, and it is this writer's own"
    assert not log.append(entry(1)), "equal in all but the token"


def test_a_damaged_entry_stops_everything(log: PromotionLog) -> None:
    log.append(entry(1))
    log.append(entry(2))
    log.store.put("promotions/00000001.json", log.store.get("promotions/00000001.json")[:-20])
    with pytest.raises(OutsideError, match=r"promotions/00000001\.json .* is no promotion entry"):
        log.entries()


def test_an_entry_of_another_format_stops_everything(log: PromotionLog) -> None:
    text = entry(1).model_dump_json().replace("evertrain/promotion/1", "evertrain/promotion/9")
    log.store.put("promotions/00000001.json", text.encode())
    with pytest.raises(OutsideError, match="is no promotion entry"):
        log.entries()


def test_a_missing_number_stops_everything(log: PromotionLog) -> None:
    for number in (1, 2, 3):
        log.append(entry(number))
    log.store.delete("promotions/00000002.json")
    with pytest.raises(OutsideError, match=r"not whole: its numbers are \[1, 3\]") as stopped:
        log.entries()
    assert "backup" in stopped.value.hint


def test_entries_of_the_first_format_still_load(log: PromotionLog) -> None:
    text = json.loads(entry(1).model_dump_json())
    for name in ("rehearsal", "of", "compared"):
        del text[name]
    log.store.put("promotions/00000001.json", json.dumps(text).encode())
    (read,) = log.entries()
    assert (read.rehearsal, read.of, read.compared) == ("", 0, 0)


def test_an_entry_that_a_listing_passed_over_is_read_all_the_same(
    log: PromotionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two entries are made while another lists: it may see the second and not the first."""
    for number in (1, 2, 3):
        log.append(entry(number))
    whole = list(log.store.list("promotions/"))
    monkeypatch.setattr(log.store, "list", lambda prefix: iter([whole[0], whole[2]]))
    assert [e.number for e in log.entries()] == [1, 2, 3]


def test_an_entry_that_is_damaged_after_it_was_read_is_noticed(log: PromotionLog) -> None:
    log.append(entry(1))
    assert len(log.entries()) == 1
    log.store.put("promotions/00000001.json", b"{}")
    with pytest.raises(OutsideError, match="is no promotion entry"):
        log.entries()


def test_the_champion_is_made_by_promotions_approvals_and_rollbacks_alone() -> None:
    proposed = [entry(1, "1"), entry(2, "2", action="propose", compared=1)]
    assert champion_and_previous(proposed) == ("1", None)
    approved = [*proposed, entry(3, "2", action="approve", of=2, compared=1)]
    assert champion_and_previous(approved) == ("2", "1")
    rejected = [*approved, entry(4, "3", action="propose"), entry(5, "3", action="reject", of=4)]
    champion = champion_entry(rejected)
    assert champion is not None
    assert champion.number == 3
    assert champion_and_previous(rejected) == ("2", "1")


def test_the_previous_champion_is_the_last_other_one() -> None:
    assert champion_and_previous([]) == (None, None)
    assert champion_and_previous([entry(1, "1")]) == ("1", None)
    promoted = [entry(1, "1"), entry(2, "2"), entry(3, "3")]
    assert champion_and_previous(promoted) == ("3", "2")
    back = entry(4, "1", action="rollback")
    assert champion_and_previous([*promoted, back]) == ("1", "3")
    assert champion_and_previous([*promoted, back, entry(5, "1")]) == ("1", "3")


@pytest.mark.slow
def test_aliases_are_repaired_from_the_log(log: PromotionLog, tmp_path: Path) -> None:
    """On a real registry (SQLite), whatever the aliases said before."""
    from infra.registry import Registry
    from infra.tracking import connect

    uri = f"sqlite:///{tmp_path}/mlflow.db"
    client, registry = connect(uri), Registry(uri=uri, experiment="small")
    client.create_registered_model("small")
    for _ in range(3):
        client.create_model_version("small", source=str(tmp_path))
    for number, version in enumerate(["1", "2", "3"], start=1):
        log.append(entry(number, version))
    wrong: list[dict[str, str]] = [{}, {"champion": "1"}, {"champion": "2", "previous": "3"}]
    for aliases in wrong:
        registry.set_aliases("small", {"champion": None, "previous": None, **aliases})
        assert repair_aliases(log, registry, "small") == {"champion": "3", "previous": "2"}
        assert registry.aliases("small") == {"champion": "3", "previous": "2"}
    assert repair_aliases(log, registry, "small") == {}
    log.append(entry(4, "1", action="rollback"))
    assert repair_aliases(log, registry, "small") == {"champion": "1", "previous": "3"}
    log.append(entry(5, "2", action="propose", compared=4))
    assert repair_aliases(log, registry, "small") == {"challenger": "2"}
    assert registry.aliases("small") == {"champion": "1", "previous": "3", "challenger": "2"}
    log.append(entry(6, "2", action="reject", of=5))
    assert repair_aliases(log, registry, "small") == {"challenger": None}


@pytest.mark.slow
def test_aliases_that_many_set_at_once_follow_the_log(log: PromotionLog, tmp_path: Path) -> None:
    """MLflow on SQLite refuses one of two that make an alias at one moment."""
    from infra.registry import Registry
    from infra.tracking import connect

    uri = f"sqlite:///{tmp_path}/mlflow.db"
    client = connect(uri)
    client.create_registered_model("small")
    registries = [Registry(uri=uri, experiment="small") for _ in range(4)]
    for each in registries:
        assert each.aliases("small") == {}
    for number in range(1, 9):
        client.create_model_version("small", source=str(tmp_path))
        start = Barrier(4)
        assert log.append(entry(number, str(number)))
        registries[0].set_aliases("small", {"champion": None, "previous": None})

        def repair(registry: Registry, start: Barrier = start) -> None:
            start.wait()
            repair_aliases(log, registry, "small")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(repair, registries))
        wanted = {"champion": str(number), "previous": str(number - 1)}
        assert registries[0].aliases("small") == {k: v for k, v in wanted.items() if v != "0"}
