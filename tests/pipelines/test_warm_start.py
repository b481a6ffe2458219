"""Whole runs that begin with the champion: promoted, not trained twice, adapters served plain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from components.common.champion import PromotionLog
from infra.folder import FolderStore
from tests.small_project.command import evertrain
from tests.small_project.make_data import write_months

pytestmark = [pytest.mark.smoke, pytest.mark.timeout(400)]

WARM = "training.start.weights=champion"


def ran(project: Path, *overrides: str) -> dict[str, Any]:
    """Run the pipeline; return what it says."""
    words = [word for override in overrides for word in ("--set", override)]
    ended = evertrain("run", project, *words, "--json")
    assert ended.code == 0, ended.err
    found: dict[str, Any] = ended.json
    return found


def figures(project: Path, run: str, step: str) -> dict[str, Any]:
    record = json.loads((project / f".evertrain/store/runs/{run}/{step}.json").read_text())
    found: dict[str, Any] = record["figures"]
    return found


def test_a_challenger_begins_with_the_champion_and_the_same_data_teaches_it_nothing_more(
    project: Path,
) -> None:
    write_months(project / "data", 3)
    said = ran(project, WARM)
    assert said["verdict"] == "promote"
    assert figures(project, said["run"], "snapshot_data")["start"] == "champion 1"
    start = figures(project, said["run"], "train_distributed")["start"]
    assert start.startswith("champion 1: 5 tensors carried over")
    log = PromotionLog(FolderStore(project / ".evertrain" / "store"))
    assert [entry.version for entry in log.entries()] == ["1", "2"]
    again = ran(project, WARM)
    assert again["status"] == "nothing_new"


def test_a_challenger_of_adapters_goes_through_every_step(project: Path) -> None:
    write_months(project / "data", 3)
    said = ran(project, WARM, "training.start.lora.rank=2")
    assert said["verdict"] in ("promote", "hold", "inconclusive")
    assert figures(project, said["run"], "promote_model")
    assert figures(project, said["run"], "select_checkpoint")["candidates"]
