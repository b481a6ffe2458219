"""Whom a training learns from: part of the run's key, asked with its own preparation, refusals."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from components.common.champion import PromotionEntry, PromotionLog
from components.common.layout import put_object, sha256_of, teacher_key
from components.common.records import read_records
from components.common.training_start import TrainingTeacher, kept_teacher
from components.select_checkpoint import step as select_checkpoint
from components.snapshot_data import step as snapshot_data
from components.train_distributed import step as train_distributed
from components.train_distributed.teaching import Teacher
from infra.folder import FolderStore
from tests.small_project.command import make_project
from tests.small_project.data_steps import RUN, Metrics, as_a_step_of_its_own
from tests.small_project.splits import write_splits
from tests.small_project.task import SmallTask
from training_core.errors import ConfigurationError
from training_core.examples import Examples
from training_core.package import Package
from training_core.tabular import TabularPreprocessor
from training_core.transfer.safetensors import write_safetensors

CHAMPION = "training.distillation.teacher=champion"
OLD = {"by": "time", "until": "2020-01-01T00:00:00+00:00"}


class Project:
    """The small project with splits, and a first model that teaches."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = FolderStore(folder / ".evertrain" / "store")

    def train(self, key: str, *overrides: str) -> dict[str, Any]:
        """Run train_distributed and select_checkpoint; return what the former says."""
        metrics, given = Metrics(self.folder / "metrics"), list(overrides)
        training, name = str(self.folder / f"{key}.json"), str(self.folder)
        splits = str(self.folder / "splits.json")
        with as_a_step_of_its_own():
            train_distributed.run(name, "", given, key, splits, training, metrics)
            select_checkpoint.run(
                name, "", given, key, splits, training, str(self.folder / key),
                str(self.folder / "candidates.json"), metrics,
            )  # fmt: skip
        figures = read_records(self.store, RUN)["train_distributed"].figures
        assert figures is not None
        return figures

    def teacher(self, **changes: Any) -> TrainingTeacher:
        files = {path.name: sha256_of(path) for path in (self.folder / "first").iterdir()}
        told = {"weights": "champion", "version": "1", "package": files, "seen": OLD, **changes}
        return TrainingTeacher.model_validate(told)

    def settle(self, key: str, teacher: TrainingTeacher) -> None:
        self.store.put(teacher_key(key), teacher.model_dump_json().encode())

    def predictions(self, key: str) -> Any:
        package = Package(self.folder / key, TabularPreprocessor)
        return package.predict(self.rows())

    def rows(self) -> pd.DataFrame:
        return pd.read_parquet(self.folder / "rows.parquet")

    def reason(self) -> str:
        return read_records(self.store, RUN)["train_distributed"].reason


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_project(tmp_path_factory.mktemp("teaching") / "project", 1)
    write_splits(folder)
    Project(folder).train("first")
    return folder


@pytest.fixture
def project(trained: Path, tmp_path: Path) -> Project:
    return Project(Path(shutil.copytree(trained, tmp_path / "project")))


def asked(project: Project, teacher: TrainingTeacher, frame: pd.DataFrame) -> Any:
    """What a teacher says of raw rows to a student whose preparation is another one."""
    task = SmallTask()
    few = frame[frame["kind"] != frame["kind"].iloc[0]].head(50)
    preprocessor = task.preprocessor().fit(few)
    found = Teacher(teacher, task, store=project.store, cache=project.folder / "cache")
    found.prepare(preprocessor)
    told = found.ask(frame, Examples.from_frame(task, preprocessor, frame)).teacher
    assert told is not None
    return told


def test_the_champion_answers_raw_rows_with_a_preparation_of_its_own(project: Project) -> None:
    told = asked(project, project.teacher(), project.rows())
    np.testing.assert_allclose(torch.sigmoid(told).numpy(), project.predictions("first"), atol=1e-6)


@pytest.mark.parametrize("data", ["memory", "disk"])
def test_a_student_comes_nearer_to_the_champion_than_one_that_has_the_labels_alone(
    project: Project, data: str
) -> None:
    short = ["training.epochs=15", "training.seed=5", f"training.data={data}"]
    alone = project.train("alone", *short)
    assert alone["teacher"] == ""
    project.settle("taught", project.teacher())
    figures = project.train("taught", *short, CHAMPION, "training.distillation.weight=1")
    assert figures["teacher"] == "champion 1"
    teacher = project.predictions("first")
    near, far = (np.abs(project.predictions(k) - teacher).mean() for k in ("taught", "alone"))
    assert near < 0.7 * far


def test_without_a_champion_the_first_run_is_trained_with_the_labels_alone(
    project: Project,
) -> None:
    short = ["training.epochs=1"]
    project.train("alone", *short)
    project.settle("none", TrainingTeacher(weights="champion"))
    figures = project.train("none", *short, CHAMPION)
    assert figures["teacher"] == "nobody, for there was no champion yet"
    np.testing.assert_array_equal(project.predictions("none"), project.predictions("alone"))


def test_a_champion_that_may_have_seen_the_holdout_does_not_teach(project: Project) -> None:
    project.settle(
        "late", project.teacher(seen={"by": "time", "until": "2030-01-01T00:00:00+00:00"})
    )
    with pytest.raises(SystemExit) as caught:
        project.train("late", CHAMPION)
    assert caught.value.code == 1
    assert "champion 1, which training would learn from, was trained on data" in project.reason()


def test_what_the_student_has_seen_includes_what_its_teacher_has(project: Project) -> None:
    late = {"by": "time", "until": "2025-01-20T00:00:00+00:00"}
    file = project.folder / "splits.json"
    early = {"by": "time", "until": "2025-01-02T00:00:00+00:00"}
    file.write_text(json.dumps({**json.loads(file.read_text()), "seen": early}))
    project.settle("taught", project.teacher(seen=late))
    project.train("taught", CHAMPION, "training.epochs=1")
    facts = json.loads((project.folder / "taught" / "package.json").read_text())["facts"]
    assert facts["seen"] == late


def test_weights_of_a_file_teach(project: Project) -> None:
    package = Package(project.folder / "first", TabularPreprocessor)
    weights = {
        name.removeprefix("model."): value
        for name, value in package.network.state_dict().items()
        if name.startswith("model.")
    }
    file = project.folder / "teacher.safetensors"
    write_safetensors(file, weights)
    teacher = TrainingTeacher(
        weights="file", file="teacher.safetensors", sha256=put_object(project.store, file)
    )
    project.settle("taught", teacher)
    asked_for = ["training.distillation.teacher=file", f"training.distillation.file={file}"]
    short = ["training.epochs=1", "training.distillation.weight=1", "training.seed=5"]
    assert project.train("taught", *asked_for, *short)["teacher"].startswith("teacher.safetensors")
    write_safetensors(file, {"other": torch.zeros(2)})
    wrong = teacher.model_copy(update={"sha256": put_object(project.store, file)})
    project.settle("wrong", wrong)
    with pytest.raises(SystemExit) as caught:
        project.train("wrong", *asked_for)
    assert caught.value.code == 2
    assert "(training.distillation.file) are not this network's" in project.reason()


def test_a_teacher_of_another_question_is_refused(project: Project) -> None:
    rows = project.rows()
    task, teacher = SmallTask(), project.teacher()
    found = Teacher(teacher, task, store=project.store, cache=project.folder / "cache")
    preprocessor = task.preprocessor().fit(rows)
    found.prepare(preprocessor)
    examples = Examples.from_frame(task, preprocessor, rows)
    with pytest.raises(ConfigurationError, match="cannot teach with these rows: the rows lack"):
        found.ask(rows.drop(columns=["number"]), examples)
    with pytest.raises(ConfigurationError, match=r"takes 0.0 GiB, more than the 0 GiB"):
        found.ask(rows, examples, most=100)

    class Other(SmallTask):
        label = "sold"

    other = Teacher(teacher, Other(), store=project.store, cache=project.folder / "cache")
    with pytest.raises(ConfigurationError, match="predicts 'bought', and the label is 'sold'"):
        other.prepare(preprocessor)


# ---- the key -----------------------------------------------------------------------------------


def key_of(project: Path, *overrides: str) -> tuple[str, str]:
    """Run snapshot_data; return the run's key and what it says of the teacher."""
    store = FolderStore(project / ".evertrain" / "store")
    with as_a_step_of_its_own():
        seen = snapshot_data.run(
            str(project), "", "", list(overrides), False, str(project / "snapshot.json")
        )
    figures = read_records(store, RUN)["snapshot_data"].figures
    assert figures is not None
    return seen.run_key, figures["teacher"]


def test_another_champion_makes_another_run_and_its_own_champion_does_not(
    fresh_project: Path,
) -> None:
    store = FolderStore(fresh_project / ".evertrain" / "store")
    log = PromotionLog(store)

    def crown(version: str, run_key: str) -> None:
        entry = PromotionEntry(
            number=len(log.entries()) + 1, action="promote", version=version, run="r",
            run_key=run_key, package={"package.json": version * 64}, seen=OLD, reason="", who="me",
        )  # fmt: skip
        assert log.append(entry)

    plain, words = key_of(fresh_project)
    assert words == ""
    none, words = key_of(fresh_project, CHAMPION)
    assert words == "nobody, for there was no champion yet"
    crown("1", "other")
    first, words = key_of(fresh_project, CHAMPION)
    assert words == "champion 1"
    assert len({plain, none, first}) == 3
    kept = kept_teacher(store, first)
    assert kept is not None
    assert kept.package == {"package.json": "1" * 64}
    crown("2", first)
    assert key_of(fresh_project, CHAMPION) == (first, "champion 1")
    both, words = key_of(fresh_project, CHAMPION, "training.start.weights=champion")
    assert (both != first, words) == (True, "champion 2")
    crown("3", both)
    again = key_of(fresh_project, CHAMPION, "training.start.weights=champion")
    assert again == (both, "champion 2")
