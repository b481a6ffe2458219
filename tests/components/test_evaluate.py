"""evaluate_model: a champion that cannot be compared fairly stays, however good the challenger."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from components.common.champion import PromotionEntry
from components.common.decision_figures import EvaluateFigures, NoiseFigure, SmokeFigures
from components.common.layout import object_key, put_object
from components.common.project import Project, open_project
from components.common.records import StepContext, StepRecord
from components.common.rows import clusters_of
from components.evaluate_model.champion_scores import score_champion
from components.evaluate_model.comparing import Holdout
from components.evaluate_model.judging import judge
from infra.folder import FolderStore
from tests.small_project.make_data import month
from training_core.package import write_package

WORKED = SmokeFigures(outcome="pass", message="it works")
SEEN = {"by": "time", "until": "2025-01-31T23:00:00+00:00"}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def context(fresh_project: Path) -> StepContext:
    opened = open_project(fresh_project)
    record = StepRecord(step="evaluate_model", run="r", run_key="k")
    store = FolderStore(fresh_project / "store")
    return StepContext(opened, store, fresh_project / "home", record)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained network, packaged."""
    from tests.small_project.task import SmallTask

    folder = tmp_path_factory.mktemp("package")
    task, rows = SmallTask(), month(1)
    preprocessor = task.preprocessor().fit(rows)
    torch.manual_seed(0)
    write_package(
        folder, task=task, preprocessor=preprocessor, model=task.build_model(preprocessor),
        sample=rows.head(8), facts={},
    )  # fmt: skip
    return folder


def champion(context: StepContext, package: Path, seen: dict[str, str] = SEEN) -> PromotionEntry:
    files = {path.name: put_object(context.store, path) for path in package.iterdir()}
    return PromotionEntry(
        number=1, action="promote", version="1", run="r", run_key="old", package=files,
        seen=seen, reason="", who="a test",
    )  # fmt: skip


def decide_with(project: Project, rows: pd.DataFrame, scored: Any, gate: Any) -> EvaluateFigures:
    """The verdict on a challenger that knows nearly everything."""
    truth = rows["bought"].to_numpy(dtype=np.float32)
    predictions = {"challenger": np.clip(truth.astype(np.float64), 0.01, 0.99)}
    if scored is not None:
        predictions["champion"] = scored
    predictions |= {name: np.full(len(rows), 0.5) for name in ("prior", "input_independent")}
    holdout = Holdout("binary", truth, clusters_of(rows, project.settings), rows, ["no", "yes"])
    return judge(
        holdout, predictions, settings=project.settings.decision, smoke=WORKED,
        noise=NoiseFigure(deviation=0.0, source="settings"),
        first_gates=[] if gate is None else [gate], without=["bought"],
    )  # fmt: skip


def test_a_champion_that_has_not_seen_the_rows_is_compared(
    context: StepContext, package: Path
) -> None:
    rows = month(2)
    scored, gate = score_champion(
        context, champion(context, package), rows, SEEN, context.project.task()
    )
    assert gate is None
    figures = decide_with(context.project, rows, scored, gate)
    assert figures.verdict == "promote"
    assert figures.reasons[0].count("champion") == 1
    assert figures.clusters == 28


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (SEEN | {"until": "2025-02-01T05:00:00+00:00"}, "it has seen some of these rows"),
        ({"by": "hash", "rule": "x"}, "another rule"),
        ({}, "another rule"),
    ],
)
def test_a_champion_that_may_have_seen_the_holdout_stays(
    context: StepContext, package: Path, seen: dict[str, str], words: str
) -> None:
    rows = month(2)
    scored, gate = score_champion(
        context, champion(context, package, seen), rows, SEEN, context.project.task()
    )
    assert scored is None
    assert gate is not None
    assert gate.outcome == "skipped"
    figures = decide_with(context.project, rows, scored, gate)
    assert figures.verdict == "inconclusive"
    assert words in figures.reasons[0]


@pytest.mark.parametrize("fault", ["flipped", "missing", "another_format"])
def test_a_champion_whose_package_is_damaged_stays(
    context: StepContext, package: Path, tmp_path: Path, fault: str
) -> None:
    rows, entry = month(2), champion(context, package)
    key = object_key(entry.package["network.pt2"])
    if fault == "flipped":
        content = bytearray(context.store.get(key))
        content[len(content) // 2] ^= 1
        context.store.put(key, bytes(content))
    elif fault == "missing":
        context.store.delete(key)
    else:
        other = tmp_path / "package.json"
        other.write_text('{"format": "something else"}')
        entry.package["package.json"] = put_object(context.store, other)
    scored, gate = score_champion(context, entry, rows, SEEN, context.project.task())
    assert scored is None
    assert gate is not None
    figures = decide_with(context.project, rows, scored, gate)
    assert figures.verdict == "inconclusive"
    assert figures.reasons[0].startswith("champion 1 cannot score these rows")


def test_a_champion_that_misses_a_column_stays(context: StepContext, package: Path) -> None:
    rows = month(2)
    scored, gate = score_champion(
        context, champion(context, package), rows.drop(columns="kind"), SEEN,
        context.project.task(),
    )  # fmt: skip
    assert scored is None
    assert gate is not None
    assert "kind" in gate.message
    assert decide_with(context.project, rows, scored, gate).verdict == "inconclusive"


def test_a_champion_whose_predictions_are_not_finite_stays(
    context: StepContext, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = month(2)
    monkeypatch.setattr(
        "training_core.package.Package.predict", lambda self, frame: np.full(len(frame), np.nan)
    )
    scored, gate = score_champion(
        context, champion(context, package), rows, SEEN, context.project.task()
    )
    assert scored is None
    assert gate is not None
    assert "not finite" in gate.message
