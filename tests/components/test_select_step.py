"""select_checkpoint on real checkpoints, also of a training that did not end well."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from components.common.decision_figures import SelectFigures
from components.common.records import read_records
from components.select_checkpoint.step import run
from components.train_distributed.job import train
from infra.folder import FolderStore
from tests.small_project.command import make_project
from tests.small_project.data_steps import RUN, Metrics, as_a_step_of_its_own
from tests.small_project.splits import write_splits
from tests.small_project.task import SmallTask
from training_core.checkpoints.catalogue import Checkpoints
from training_core.evaluation import evaluate
from training_core.examples import Examples
from training_core.package import Package
from training_core.tabular import TabularPreprocessor

KEPT = ["training.evaluate_every=1", "training.checkpoints.keep_every=1"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small project with a training whose every checkpoint was kept."""
    project = make_project(tmp_path_factory.mktemp("trained") / "project", 1)
    splits = json.loads(write_splits(project).read_text())
    with as_a_step_of_its_own():
        result = train(project=str(project), store="", overrides=KEPT, run_key="key", splits=splits)
    told = {"prefix": "checkpoints/key", "preprocessor": result["preprocessor"]}
    (project / "training.json").write_text(json.dumps(told))
    return project


@pytest.fixture
def project(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "project"))


def select(project: Path, *overrides: str) -> tuple[SelectFigures, dict[str, float]]:
    """Run the step; return its figures and what it logged."""
    metrics = Metrics(project / "metrics.json")
    with as_a_step_of_its_own():
        run(
            str(project), "", list(overrides), "key", str(project / "splits.json"),
            str(project / "training.json"), str(project / "model"),
            str(project / "candidates.json"), metrics,
        )  # fmt: skip
    record = read_records(store(project), RUN)["select_checkpoint"]
    figures = SelectFigures.model_validate(record.figures)
    assert json.loads((project / "candidates.json").read_text()) == record.figures
    return figures, metrics.logged


def store(project: Path) -> FolderStore:
    return FolderStore(project / ".evertrain" / "store")


def validation(project: Path) -> tuple[SmallTask, TabularPreprocessor, pd.DataFrame]:
    told: dict[str, Any] = json.loads((project / "training.json").read_text())
    parts = json.loads((project / "splits.json").read_text())["parts"]
    path = project / ".evertrain/store/objects" / parts["validation"]["sha256"]
    preprocessor = TabularPreprocessor.from_state_dict(told["preprocessor"])
    return SmallTask(), preprocessor, pd.read_parquet(path)


def test_every_checkpoint_and_their_mean_are_scored_as_training_scores_them(project: Path) -> None:
    figures, logged = select(project)
    task, preprocessor, frame = validation(project)
    network = task.build_model(preprocessor)
    checkpoints = Checkpoints(store(project), "checkpoints/key")
    states = {}
    for manifest in checkpoints.manifests():
        state = checkpoints.model_state(manifest)
        assert state is not None
        states[manifest.step] = state
    single = [c for c in figures.candidates if not c.members]
    assert [c.step for c in single] == list(states)
    assert len(single) > 3
    examples = Examples.from_frame(task, preprocessor, frame)
    for candidate in single:
        network.load_state_dict(states[candidate.step])
        assert candidate.metrics == pytest.approx(evaluate(task, network, examples), rel=1e-6)
        assert candidate.low < candidate.metrics["loss"] < candidate.high
    (mean,) = [c for c in figures.candidates if c.members]
    best = sorted(single, key=lambda c: c.metrics["loss"])
    assert mean.members == sorted(c.step for c in best[:3])
    network.load_state_dict(
        {n: torch.stack([states[s][n] for s in mean.members]).mean(0) for n in states[mean.step]}
    )
    assert mean.metrics == pytest.approx(evaluate(task, network, examples), rel=1e-4)

    chosen = min(figures.candidates, key=lambda c: c.metrics["loss"])
    assert (figures.chosen, figures.chosen_members) == (chosen.step, chosen.members)
    assert (chosen.difference, chosen.as_good) == (0.0, True)
    assert not all(c.as_good for c in single), "the first one is worse"
    for candidate in figures.candidates:
        assert candidate.as_good == (candidate.difference_low <= 0)
    assert figures.optimism is not None
    assert figures.optimism.expected >= 0
    assert figures.optimism.measured is None
    assert logged["loss"] == chosen.metrics["loss"]
    assert logged["expected_optimism"] == figures.optimism.expected


@pytest.mark.parametrize("rule", ["best", "latest"])
def test_the_package_is_of_the_chosen_one(project: Path, rule: str) -> None:
    """`latest` takes a mean here, for the last checkpoint is in it."""
    figures, _ = select(project, f"select.rule={rule}")
    chosen = next(
        c for c in figures.candidates
        if (c.step, c.members) == (figures.chosen, figures.chosen_members)
    )  # fmt: skip
    task, _, frame = validation(project)
    predicted = Package(project / "model", TabularPreprocessor).predict(frame)
    target = task.target(frame)
    loss = -np.where(target > 0, np.log(predicted), np.log1p(-predicted)).mean()
    assert loss == pytest.approx(chosen.metrics["loss"], rel=1e-4)
    facts = json.loads((project / "model" / "package.json").read_text())["facts"]
    assert facts["step"] == figures.chosen
    assert facts.get("mean_of_steps", []) == figures.chosen_members


def test_a_half_finished_and_damaged_training_is_chosen_from_all_the_same(project: Path) -> None:
    folder = project / ".evertrain/store/checkpoints/key"
    newest = max(path.parent for path in folder.glob("*/manifest.json"))
    (newest / "manifest.json").unlink()  # killed while it was written
    before, _ = select(project, "select.average=0")
    steps = [c.step for c in before.candidates]
    assert steps
    assert int(newest.name) not in steps
    assert not any(c.members for c in before.candidates)
    (shard,) = (folder / f"{before.chosen:09d}").glob("shard-*")
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    after, _ = select(project, "select.average=0")
    assert [c.step for c in after.candidates] == [s for s in steps if s != before.chosen]
    assert after.chosen in [c.step for c in after.candidates]
    (words,) = after.damaged
    assert shard.name in words
    assert f"{before.chosen:09d}" in words


def test_where_no_checkpoint_can_be_used_the_step_says_why(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for shard in (project / ".evertrain/store/checkpoints/key").glob("*/shard-*"):
        shard.write_bytes(b"")
    with pytest.raises(SystemExit) as ended:
        select(project)
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert "no checkpoint below checkpoints/key" in said
    assert "is damaged" in said


def test_where_training_kept_an_average_that_is_scored_and_packaged_and_the_record_says_so(
    tmp_path: Path,
) -> None:
    project = make_project(tmp_path / "project", 1)
    splits = json.loads(write_splits(project).read_text())
    averaging = ["training.averaging.kind=ema", "training.averaging.decay=0.99"]
    with as_a_step_of_its_own():
        result = train(
            project=str(project), store="", overrides=[*KEPT, *averaging], run_key="key",
            splits=splits,
        )  # fmt: skip
    assert result["averaging"] == "ema"
    told = {"prefix": "checkpoints/key", "preprocessor": result["preprocessor"]}
    (project / "training.json").write_text(json.dumps(told))
    figures, _ = select(project, "select.average=0", *averaging)
    assert figures.averaged
    evaluations = dict(result["outcome"]["evaluations"])
    for candidate in figures.candidates:
        assert candidate.metrics == pytest.approx(evaluations[candidate.step], rel=1e-6)
    facts = json.loads((project / "model" / "package.json").read_text())["facts"]
    assert facts["weights"] == "average kept by training (ema)"
