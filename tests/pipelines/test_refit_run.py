"""Whole runs that train once more on all rows: killed on the way, promoted once, followed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from components.common.champion import PromotionLog
from components.common.records import STEPS
from infra.folder import FolderStore
from pipelines.compiling import compile_pipeline
from tests.pipelines.compiled import tasks_of
from tests.proofs.steps import half_made, kill_in, run_again
from tests.small_project.command import evertrain
from tests.small_project.make_data import write_months

ON = ("refit.enabled=true", "refit.shift=0.3")


def test_the_step_is_between_the_verdict_and_the_promotion_which_takes_its_model(
    tmp_path: Path,
) -> None:
    compile_pipeline(tmp_path / "with.yaml", refitted=True, tuned=True)
    tasks = tasks_of(tmp_path / "with.yaml")
    given = tasks["promote_model"]["inputs"]["artifacts"]
    came_from = {n: a["taskOutputArtifact"]["producerTask"] for n, a in given.items()}
    assert came_from == {"decision": "refit-model", "model": "refit-model"}
    assert "evaluate-model" in tasks["refit_model"]["dependentTasks"]
    overrides = tasks["refit_model"]["inputs"]["parameters"]["overrides"]
    assert overrides["taskOutputParameter"]["producerTask"] == "tune"
    assert "enableCache" not in tasks["refit_model"]["cachingOptions"]

    compile_pipeline(tmp_path / "without.yaml")
    assert "refit_model" not in tasks_of(tmp_path / "without.yaml")
    assert "refit" not in (tmp_path / "without.yaml").read_text()
    assert "refit_model" not in STEPS


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_killed_in_its_refit_promotes_it_once_and_the_next_one_is_held_against_it(
    project: Path,
) -> None:
    store = FolderStore(project / ".evertrain" / "store")

    def figures(run: str, step: str) -> dict[str, Any]:
        record = json.loads(store.get(f"runs/{run}/{step}.json"))
        found: dict[str, Any] = record["figures"]
        return found

    write_months(project / "data", 3)
    assert kill_in(project, "refit_model", *ON, delay=4.0)
    assert len(PromotionLog(store).entries()) == 1
    ended = run_again(project, *ON)
    assert ended.code == 0, ended.err
    steps = {step["step"]: step for step in ended.json["steps"]}
    assert steps["train_distributed"]["cache_hit"], "what was trained is not trained again"
    assert list(steps)[-3:] == ["refit_model", "promote_model", "report_run"]
    certificate = figures(ended.json["run"], "refit_model")
    assert certificate["outcome"] == "refitted", certificate["reason"]
    assert half_made(project) == []
    _, entry = (e for e in PromotionLog(store).entries() if e.action == "promote")
    assert (entry.package, entry.refit_of) == (certificate["refitted"], certificate["judged"])
    page = store.get(f"runs/{ended.json['run']}/report.html").decode()
    for words in ("Trained again on all rows", "Nobody has measured this model",
                  certificate["refitted"]["network.pt2"]):  # fmt: skip
        assert words in page

    write_months(project / "data", 4)
    warm = run_again(project, "training.start.weights=champion")
    assert warm.code == 0, warm.err
    judged = figures(warm.json["run"], "evaluate_model")
    assert "champion" in judged["metrics"], "its holdout is newer than all that the refit saw"
    assert "champion 2" in figures(warm.json["run"], "train_distributed")["start"]
    assert warm.json["champion_after"] == "3"
    back = evertrain("rollback", project, "--json")
    assert back.code == 0, back.err
    newest = PromotionLog(store).entries()[-1]
    assert (newest.version, newest.package, newest.refit_of) == (
        "2", entry.package, entry.refit_of,
    )  # fmt: skip
