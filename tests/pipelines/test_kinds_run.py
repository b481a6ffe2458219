"""A task of each kind goes through the whole pipeline, and is promoted on its own merits."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from components.common.data_figures import NotRun, SplitFigures
from components.common.data_settings import CheckName
from components.common.decision_figures import EvaluateFigures
from components.common.records import read_records
from infra.folder import FolderStore
from pipelines.runs import run_names
from tests.small_kinds.make_kind import make_kind, write_months
from tests.small_project.command import evertrain
from tests.small_project.data_steps import run_data_steps

METRICS = {"regression": "squared_error"}
KINDS = ("multiclass", "multilabel", "regression", "sequence")
WITHOUT: dict[str, set[CheckName]] = {
    kind: {"label_relation", "label_noise"} for kind in KINDS
} | {"sequence": {"label_relation", "label_noise", "leak"}}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_data_steps_take_each_kind_and_say_what_they_did_not_look_for(
    tmp_path: Path, kind: str
) -> None:
    records = run_data_steps(make_kind(tmp_path / kind, kind, 1, 2))
    assert [records[name].status for name in ("validate_data", "split_data")] == ["done", "done"]
    told = [NotRun.model_validate(one) for one in records["validate_data"].figures["not_run"]]
    assert {one.why: set(one.checks) for one in told}["kind"] == WITHOUT[kind]
    split = SplitFigures.model_validate(records["split_data"].figures)
    assert (split.kind, split.notes) == (kind, [])


@pytest.mark.smoke
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_trained_judged_and_promoted_and_its_champion_is_watched(
    tmp_path: Path, kind: str
) -> None:
    project = make_kind(tmp_path / kind, kind, 1, 2)
    ended = evertrain("run", project, "--json", timeout=900)
    assert ended.code == 0, ended.err
    assert ended.json["outcome"] == "promoted"
    store = FolderStore(project / ".evertrain" / "store")
    (run,) = run_names(store)
    verdict = EvaluateFigures.model_validate(read_records(store, run)["evaluate_model"].figures)
    metric = METRICS.get(kind, "log_loss")
    assert verdict.metric == metric
    assert verdict.metrics["challenger"][metric] < 0.8 * verdict.metrics["prior"][metric]
    page = (project / ".evertrain" / "store" / "runs" / run / "report.html").read_text()
    assert "there is no such check of a label of this kind" in page
    assert "Traceback" not in page
    write_months(project / "data", kind, 3)
    advice = evertrain("advise", project, "--json")
    assert advice.code == 0, advice.err
    unknown = " ".join(advice.json["unknown"])
    assert "could not be scored" not in unknown
    assert "how the champion does now" not in unknown  # March was scored


BAD = {
    "multiclass": ("label", "High", "'High' in 'label' (100.00% of the rows) is no class"),
    "multilabel": ("second", "maybe", "'maybe' in 'second' (100.00% of the rows) is no yes or no"),
    "regression": ("label", "1,5", "'1,5' in 'label' (100.00% of the rows) is no number"),
    "sequence": ("word", "", "'' in 'word' (100.00% of the rows) is no sequence"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_labels_that_are_none_stop_the_run_with_what_they_are_and_where(
    tmp_path: Path, kind: str
) -> None:
    project = make_kind(tmp_path / kind, kind, 1)
    column, bad, said = BAD[kind]
    file = project / "data" / "2025-01.parquet"
    pd.read_parquet(file).assign(**{column: bad}).to_parquet(file, index=False)
    record = run_data_steps(project, "validation.levels={constant_column: off}")["split_data"]
    assert record.status == "stopped"
    assert "none of the 620 rows has a label in" in record.reason
    assert said in record.reason
    assert "target read these values, or correct the column" in record.hint
