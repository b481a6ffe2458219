"""What a training has to gain to be worth it: more than another seed would."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.common.champion import PromotionEntry
from components.common.decision_figures import EvaluateFigures, NoiseFigure
from components.common.decision_settings import DecisionSettings
from components.common.layout import record_key
from components.common.records import StepRecord
from infra.folder import FolderStore
from pipelines.advising import noise_of


@pytest.fixture
def champion() -> PromotionEntry:
    return PromotionEntry(
        number=1, action="promote", version="1", run="r1", run_key="k", package={}, seen={},
        reason="", who="a test",
    )  # fmt: skip


def test_what_the_settings_say_is_the_noise(tmp_path: Path, champion: PromotionEntry) -> None:
    rule = DecisionSettings(retraining_noise=0.01)
    assert noise_of(FolderStore(tmp_path), champion, rule) == 0.01


def test_else_it_is_what_the_champions_run_measured(
    tmp_path: Path, champion: PromotionEntry
) -> None:
    store, rule = FolderStore(tmp_path), DecisionSettings()
    assert noise_of(store, None, rule) == 0.0
    assert noise_of(store, champion, rule) == 0.0, "its run left nothing"
    figures = EvaluateFigures(
        verdict="promote", reasons=[], metric="log_loss", rows=1, clusters=1, compared_entry=0,
        champion="", metrics={}, comparisons=[], gates=[], reliability={}, calibration_error={},
        roc=[], confusion=[], predictions="", noise=NoiseFigure(deviation=0.02, source="replicas"),
    )  # fmt: skip
    record = StepRecord(
        step="evaluate_model", run="r1", run_key="k", figures=figures.model_dump(mode="json")
    )
    for step in (StepRecord(step="snapshot_data", run="r1", run_key="k"), record):
        store.put(record_key("r1", step.step), step.model_dump_json().encode())
    assert noise_of(store, champion, rule) == 0.02
