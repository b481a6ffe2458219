"""What a run proposes, and what people make of it: real packages, each command a process."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.common.champion import PromotionEntry, PromotionLog
from components.common.decision_figures import EvaluateFigures
from components.common.layout import hashes_of, put_object
from components.common.records import read_records
from components.common.rehearsal import rehearse
from infra.folder import FolderStore
from infra.registry import Registry
from tests.small_project.command import evertrain, make_project
from tests.small_project.data_steps import RUN, as_a_step_of_its_own
from tests.small_project.make_data import month
from tests.small_project.task import SmallTask

pytestmark = pytest.mark.slow


def store_of(project: Path) -> FolderStore:
    return FolderStore(project / ".evertrain" / "store")


def entries(project: Path) -> list[PromotionEntry]:
    return PromotionLog(store_of(project)).entries()


def aliases(project: Path) -> dict[str, str]:
    uri = f"sqlite:///{project}/.evertrain/mlflow.db"
    return Registry(uri=uri, experiment="small").aliases("small")


def decide(project: Path, run_key: str, *, compared: int, approval: bool) -> dict[str, Any]:
    """Let promote_model promote or propose an untrained network; return the step's figures."""
    import torch

    from components.promote_model import step as promote_model
    from training_core.package import Package, write_package

    task, rows, folder = SmallTask(), month(1), project / "packages" / run_key
    preprocessor = task.preprocessor().fit(rows)
    torch.manual_seed(len(run_key))
    write_package(
        folder, task=task, preprocessor=preprocessor, model=task.build_model(preprocessor),
        sample=rows.head(8), facts={"seen": {"by": "hash"}},
    )  # fmt: skip
    store = store_of(project)
    for path in folder.iterdir():
        put_object(store, path)
    few = rows.head(20)
    recorded = few.assign(prediction=Package(folder, type(preprocessor)).predict(few))
    recorded.to_parquet(project / "rows.parquet")
    verdict = EvaluateFigures(
        verdict="promote", reasons=["it is better"], metric="log_loss", rows=1, clusters=1,
        compared_entry=compared, champion="", metrics={"challenger": {"log_loss": 0.3}},
        comparisons=[], gates=[], reliability={}, calibration_error={}, roc=[], confusion=[],
        predictions="", rehearsal=put_object(store, project / "rows.parquet"),
        package=hashes_of(folder),
    )  # fmt: skip
    file = project / "verdict.json"
    file.write_text(verdict.model_dump_json())
    with as_a_step_of_its_own():
        words = [f"decision.approval={str(approval).lower()}"]
        promote_model.run(str(project), "", words, run_key, str(file), str(folder))
    return read_records(store, RUN)["promote_model"].figures


@pytest.fixture(scope="module")
def proposed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Version 1 is champion, version 2 is proposed. Do not change it."""
    project = make_project(tmp_path_factory.mktemp("proposed") / "project", 1)
    first = decide(project, "k", compared=0, approval=False)
    assert (first["outcome"], first["entry"], first["champion_after"]) == ("promoted", 1, "1")
    second = decide(project, "kk", compared=1, approval=True)
    assert (second["outcome"], second["entry"], second["version"]) == ("proposed", 2, "2")
    assert (second["champion_before"], second["champion_after"]) == ("1", "1")
    return project


@pytest.fixture
def project(proposed: Path, tmp_path: Path) -> Path:
    copy = Path(shutil.copytree(proposed, tmp_path / "project"))
    assert aliases(copy) == {"champion": "1", "challenger": "2"}
    return copy


def test_what_is_proposed_is_shown_approved_and_gone_back_from(project: Path) -> None:
    shown = evertrain("champion", project, "--json").json
    assert (shown["champion"], shown["previous"], shown["proposal"]["version"]) == ("1", None, "2")

    approved = evertrain("approve", project, "--reason", "looks good", "--json")
    assert approved.code == 0, approved.err
    assert (approved.json["number"], approved.json["of"]) == (3, 2)
    assert aliases(project) == {"champion": "2", "previous": "1"}
    again = evertrain("approve", project, "--version", "2")
    assert again.code == 1
    assert "decided already: approve by" in again.err
    assert "looks good" in again.err

    back = evertrain("rollback", project, "--reason", "complaints", "--json")
    assert back.code == 0, back.err
    assert (back.json["number"], back.json["version"], back.json["compared"]) == (4, "1", 3)
    assert len(entries(project)) == 4
    assert aliases(project) == {"champion": "1", "previous": "2"}
    said = evertrain("history", project).out
    for words in ("propose (approved)", "approve 2", "looks good", "rollback", "complaints"):
        assert words in said


def test_what_is_rejected_says_why_and_can_no_longer_be_approved(project: Path) -> None:
    assert evertrain("reject", project).code == 2, "a rejection needs a reason"
    rejected = evertrain("reject", project, "--reason", "too slow")
    assert rejected.code == 0, rejected.err
    assert "version 2 is rejected; the champion stays (entry 3)" in rejected.out
    assert aliases(project) == {"champion": "1"}
    refused = evertrain("approve", project)
    assert refused.code == 1
    assert "too slow" in refused.err
    assert "proposed" not in evertrain("champion", project).out


def test_a_package_that_is_damaged_cannot_be_approved(project: Path) -> None:
    store, proposal = store_of(project), entries(project)[1]
    store.put(f"objects/{proposal.package['network.pt2']}", b"no network")
    shutil.rmtree(project / ".evertrain" / "cache", ignore_errors=True)
    refused = evertrain("approve", project)
    assert refused.code == 1, refused.err
    assert "version 2 failed its rehearsal" in refused.err
    assert "does not hold what was recorded" in refused.err
    assert len(entries(project)) == 2
    assert aliases(project) == {"champion": "1", "challenger": "2"}


def test_aliases_that_a_crash_left_behind_are_set_by_the_next_command(project: Path) -> None:
    proposal = entries(project)[1]
    crashed = proposal.model_copy(update={"number": 3, "action": "approve", "of": 2, "token": "t"})
    assert PromotionLog(store_of(project)).append(crashed)
    refused = evertrain("approve", project)
    assert refused.code == 1, "it was approved, by whoever crashed then"
    assert aliases(project) == {"champion": "2", "previous": "1"}
    registry = Registry(uri=f"sqlite:///{project}/.evertrain/mlflow.db", experiment="small")
    for command in ("champion", "history"):
        registry.set_aliases("small", {"champion": "1", "challenger": "1"})
        ended = evertrain(command, project, "--json")
        assert ended.code == 0, ended.err
        assert "the registry's aliases were set from the log" in ended.err
        assert aliases(project) == {"champion": "2", "previous": "1"}


def test_a_rehearsal_tells_a_package_that_predicts_something_else(
    project: Path, tmp_path: Path
) -> None:
    import pandas as pd

    store, (champion, proposal) = store_of(project), entries(project)
    cache = tmp_path / "cache"
    assert rehearse(store, champion, cache).outcome == "pass"
    mixed = champion.model_copy(update={"rehearsal": proposal.rehearsal})
    assert rehearse(store, mixed, cache).outcome == "fail"
    without = champion.model_copy(update={"rehearsal": ""})
    assert rehearse(store, without, cache).outcome == "pass"
    gone = champion.model_copy(update={"package": {**champion.package, "network.pt2": "0" * 64}})
    assert rehearse(store, gone, cache).outcome == "fail"

    frame = pd.read_parquet(project / "rows.parquet").drop(columns="prediction")
    several = {f"prediction.{n}": np.full(len(frame), n / 20) for n in (10, 2, 1, 0)}
    frame.assign(**several).to_parquet(tmp_path / "several.parquet")
    from components.common.rehearsal import recorded

    rows, expected = recorded(tmp_path / "several.parquet")
    assert list(rows.columns) == list(frame.columns)
    assert expected[0].tolist() == [0, 0.05, 0.1, 0.5]


def test_a_run_that_was_killed_after_its_proposal_finds_it(project: Path) -> None:
    (project / ".evertrain/store/keys/kk/finished.json").unlink()
    again = decide(project, "kk", compared=1, approval=True)
    assert (again["outcome"], again["entry"]) == ("proposed", 2)
    assert len(entries(project)) == 2
    assert json.loads((project / ".evertrain/store/keys/kk/finished.json").read_text())
