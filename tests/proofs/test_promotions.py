"""The races of promoters in their short form, and that what is wrong is counted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.common import aliases, approval, promotion
from components.common.champion import PromotionEntry, PromotionLog
from tests.infra.loopback import S3Server
from tests.infra.seaweed import s3_running
from tests.proofs import promotions
from tests.proofs.promotions import prove


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_running(tmp_path_factory.mktemp("weed")) as server:
        yield server


@pytest.mark.slow
def test_nothing_is_lost_and_the_next_command_mends_the_rest(tmp_path: Path, s3: S3Server) -> None:
    figures = prove(30, tmp_path, s3=s3, mlflow_every=15)
    assert (figures["races"], figures["on_s3"], figures["on_mlflow"]) == (30, 15, 2)
    assert figures["crashes"] > 10
    assert figures["entries"] > 60
    assert (figures["lost"], figures["unrepaired"]) == (0, 0)


def test_champions_that_are_replaced_without_a_look_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(promotion, "refuse_moved_champion", lambda entries, compared: None)
    assert prove(15, tmp_path, s3=None)["lost"] > 0


def test_decisions_on_what_is_not_open_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approval, "refuse_decided", lambda entries, proposal: None)
    assert prove(15, tmp_path, s3=None)["lost"] > 0


def test_entries_that_are_overwritten_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overwrite(log: PromotionLog, entry: PromotionEntry) -> bool:
        time.sleep(0.02)  # long enough for another to take the same number
        log.store.put(f"promotions/{entry.number:08d}.json", entry.model_dump_json().encode())
        return True

    monkeypatch.setattr(PromotionLog, "append", overwrite)
    assert prove(15, tmp_path, s3=None)["lost"] > 0


def test_aliases_that_nobody_mends_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*words: Any) -> dict[str, str | None]:
        return {}

    monkeypatch.setattr(aliases, "repair_aliases", nothing)
    monkeypatch.setattr(promotions, "repair_aliases", nothing)
    assert prove(3, tmp_path, s3=None)["unrepaired"] > 0
