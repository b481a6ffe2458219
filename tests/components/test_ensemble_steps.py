"""Ensembles in train_distributed and select_checkpoint: members, what keeps some out, the cost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from components.common.champion import PromotionEntry, PromotionLog
from components.common.champion_members import own_model, recent_champions
from components.common.champion_model import package_folder
from components.common.decision_figures import SelectFigures
from components.common.ensemble_figures import EnsembleFigures
from components.common.figures import TrainFigures
from components.common.layout import sha256_of
from components.common.records import read_records
from components.select_checkpoint import step as select_checkpoint
from components.train_distributed import step as train_distributed
from components.train_distributed.members import member_key
from infra.folder import FolderStore
from tests.small_project.command import make_project
from tests.small_project.data_steps import RUN, Metrics, as_a_step_of_its_own
from tests.small_project.splits import write_splits
from training_core.package import Package
from training_core.tabular import TabularPreprocessor

SEEDS = ["ensemble.of=seeds", "ensemble.members=3"]
CHAMPIONS = ["ensemble.of=champions", "ensemble.members=3"]
OLD = {"by": "time", "until": "2020-01-01T00:00:00+00:00"}


class Project:
    """The small project with splits."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = FolderStore(folder / ".evertrain" / "store")

    def train(self, key: str, *overrides: str) -> TrainFigures:
        metrics = Metrics(self.folder / "metrics")
        with as_a_step_of_its_own():
            train_distributed.run(
                str(self.folder), "", list(overrides), key, str(self.folder / "splits.json"),
                str(self.folder / f"{key}.json"), metrics,
            )  # fmt: skip
        return TrainFigures.model_validate(self.record("train_distributed").figures)

    def select(self, key: str, *overrides: str) -> SelectFigures:
        metrics = Metrics(self.folder / "metrics")
        with as_a_step_of_its_own():
            select_checkpoint.run(
                str(self.folder), "", list(overrides), key, str(self.folder / "splits.json"),
                str(self.folder / f"{key}.json"), str(self.folder / key),
                str(self.folder / "candidates.json"), metrics,
            )  # fmt: skip
        return SelectFigures.model_validate(self.record("select_checkpoint").figures)

    def ensemble(self) -> EnsembleFigures:
        """What the step said of the ensemble of seeds."""
        told = json.loads((self.folder / "figures.json").read_text())
        return EnsembleFigures.model_validate(told["ensemble"])

    def record(self, step: str) -> Any:
        return read_records(self.store, RUN)[step]

    def package(self, key: str) -> Package:
        return Package(self.folder / key, TabularPreprocessor)

    def stored(self, files: dict[str, str]) -> Package:
        return Package(
            package_folder(self.store, files, self.folder / "cache"), TabularPreprocessor
        )

    def files(self, key: str) -> dict[str, str]:
        manifest = self.folder / key / "package.json"
        return {**json.loads(manifest.read_text())["files"], "package.json": sha256_of(manifest)}

    def crown(self, version: str, key: str, *, action: str = "promote", **changes: Any) -> None:
        """Make a package champion, as promote_model does."""
        log = PromotionLog(self.store)
        seen = json.loads((self.folder / key / "package.json").read_text())["facts"]["seen"]
        told = {"package": self.files(key), "seen": seen, "run_key": key, **changes}
        entry = PromotionEntry(
            number=len(log.entries()) + 1, action=action, version=version, run="r", reason="",
            who="a test", **told,
        )  # fmt: skip
        assert log.append(entry)

    def rows(self) -> pd.DataFrame:
        return pd.read_parquet(self.folder / "rows.parquet")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small project, with an ensemble of three seeds and a model by itself."""
    folder = make_project(tmp_path_factory.mktemp("ensembles") / "project", 1)
    write_splits(folder)
    project = Project(folder)
    project.train("key", *SEEDS)
    project.select("key", *SEEDS)
    shutil.copy(folder / "candidates.json", folder / "figures.json")
    shutil.copy(folder / "key.json", folder / "alone.json")
    project.train("second", "training.seed=2")
    project.select("second", "training.seed=2")
    return folder


@pytest.fixture
def project(trained: Path, tmp_path: Path) -> Project:
    return Project(Path(shutil.copytree(trained, tmp_path / "project")))


# ---- seeds -------------------------------------------------------------------------------------


def test_the_candidate_is_the_mean_of_models_that_differ_by_their_seeds_alone(
    project: Project,
) -> None:
    ensemble = project.ensemble()
    assert [member.what for member in ensemble.members] == ["seed 0", "seed 1", "seed 2"]
    members, rows = [project.stored(m.package) for m in ensemble.members], project.rows()
    expected = sum((m.predict(rows) for m in members[1:]), members[0].predict(rows)) / 3
    whole = project.package("key")
    np.testing.assert_array_equal(whole.predict(rows), expected)
    assert not np.array_equal(members[0].predict(rows), members[1].predict(rows))
    # each is what a run of its own with that seed gives
    np.testing.assert_array_equal(project.package("second").predict(rows), members[2].predict(rows))
    project.select("alone")  # of the same training, without an ensemble
    np.testing.assert_array_equal(project.package("alone").predict(rows), members[0].predict(rows))


def test_what_it_gains_and_costs_is_said(project: Project) -> None:
    ensemble = project.ensemble()
    assert (ensemble.of, ensemble.asked, ensemble.metric) == ("seeds", 3, "log_loss")
    assert ensemble.value < ensemble.mean  # Jensen
    assert ensemble.all.parameters == 3 * ensemble.one.parameters
    assert ensemble.all.size > ensemble.one.size
    assert ensemble.one.training_seconds is not None
    assert ensemble.all.training_seconds is not None
    assert ensemble.all.training_seconds > ensemble.one.training_seconds
    assert min(c for one in (ensemble.one, ensemble.all) for c in (one.row_ms, one.rows_ms)) > 0
    facts = project.package("key").manifest["facts"]
    assert [m["what"] for m in facts["ensemble"]["members"]] == ["seed 0", "seed 1", "seed 2"]
    assert facts["seen"] == json.loads((project.folder / "splits.json").read_text())["seen"]


def test_a_run_that_was_killed_trains_no_member_twice(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, keys = train_distributed.train, []

    def dies_in_the_third(**job: Any) -> Any:
        keys.append(job["run_key"])
        if len(keys) == 3:
            raise KeyboardInterrupt
        return train(**job)

    monkeypatch.setattr(train_distributed, "train", dies_in_the_third)
    with pytest.raises(SystemExit) as caught:
        project.train("killed", *SEEDS)
    assert caught.value.code == 130
    own = [member_key("killed", seed) for seed in (1, 2)]
    assert keys == ["killed", *own]
    monkeypatch.setattr(train_distributed, "train", lambda **job: keys.append("") or train(**job))
    figures = project.train("killed", *SEEDS)
    assert len(keys) == 4  # the third alone
    assert figures.found_finished
    assert [(m.seed, m.found_finished) for m in figures.members] == [(1, True), (2, False)]
    assert all(m.seconds and m.loss for m in figures.members)
    whole = project.train("killed", *SEEDS)
    assert len(keys) == 4
    assert [m.found_finished for m in whole.members] == [True, True]


def test_a_member_without_a_checkpoint_fails_the_step(project: Project) -> None:
    shutil.rmtree(project.store.uri + f"/checkpoints/{member_key('key', 2)}")
    with pytest.raises(SystemExit) as caught:
        project.select("key", *SEEDS)
    assert caught.value.code == 1
    assert member_key("key", 2) in project.record("select_checkpoint").reason


# ---- champions ---------------------------------------------------------------------------------


def test_a_champion_that_was_an_ensemble_stands_for_the_model_that_its_run_trained(
    project: Project,
) -> None:
    project.crown("1", "key")
    project.crown("2", "second")
    project.crown("1", "key", action="rollback")
    entries = recent_champions(PromotionLog(project.store), "run")
    assert [entry.version for entry in entries] == ["1", "2"]
    own = own_model(project.store, entries[0], project.folder / "cache")
    assert (
        own.package == project.package("key").manifest["facts"]["ensemble"]["members"][0]["package"]
    )
    figures = project.select("alone", *CHAMPIONS)
    ensemble = figures.ensemble
    assert ensemble is not None
    what = ["this run's model", "champion 1", "champion 2"]
    assert ([m.what for m in ensemble.members], ensemble.left_out) == (what, [])
    assert ensemble.members[1].package == own.package
    rows = project.rows()
    members = [project.stored(m.package).predict(rows) for m in ensemble.members]
    np.testing.assert_array_equal(
        project.package("alone").predict(rows), (members[0] + members[1] + members[2]) / 3
    )
    assert ensemble.one.training_seconds == ensemble.all.training_seconds


def test_a_run_that_finds_its_own_promotion_takes_the_champions_from_before_it(
    project: Project,
) -> None:
    project.crown("1", "second")
    before = project.select("alone", *CHAMPIONS).ensemble
    project.crown("2", "alone")
    again = project.select("alone", *CHAMPIONS).ensemble
    assert before is not None
    assert again is not None
    assert [m.package for m in again.members] == [m.package for m in before.members]
    log = PromotionLog(project.store)
    assert [entry.version for entry in recent_champions(log, "alone")] == ["1"]
    assert [entry.version for entry in recent_champions(log, "next")] == ["2", "1"]


def test_the_mean_has_seen_what_any_member_has(project: Project) -> None:
    early, late = ({"by": "time", "until": f"2025-01-{day}T00:00:00+00:00"} for day in ("02", "20"))
    training = project.folder / "alone.json"
    training.write_text(json.dumps({**json.loads(training.read_text()), "seen": early}))
    project.crown("1", "second", seen=late)
    project.select("alone", *CHAMPIONS)
    facts = project.package("alone").manifest["facts"]
    assert facts["seen"] == late
    assert [m["seen"] for m in facts["ensemble"]["members"]] == [early, late]


def test_a_champion_that_may_have_seen_the_holdout_is_no_member(project: Project) -> None:
    late = {"by": "time", "until": "2030-01-01T00:00:00+00:00"}
    project.crown("1", "second", seen=late)
    figures = project.select("alone", *CHAMPIONS)
    assert figures.ensemble is None
    assert "champion 1 was trained on data up to 2030" in figures.alone[0]
    assert "it has seen some of these rows" in figures.alone[0]
    project.crown("2", "second", seen={"by": "hash", "rule": "x"})
    figures = project.select("alone", *CHAMPIONS)
    assert "by another rule than champion 2's" in figures.alone[0]


def test_without_champions_the_model_is_the_candidate_by_itself_and_says_so(
    project: Project,
) -> None:
    figures = project.select("alone", *CHAMPIONS)
    assert figures.ensemble is None
    assert figures.alone == ["champions asked for: 2, so far there are 0"]
    facts = project.package("alone").manifest["facts"]
    assert "ensemble" not in facts


def test_champions_that_answer_another_question_or_are_gone_are_left_out_in_words(
    project: Project,
) -> None:
    manifest = json.loads((project.folder / "second" / "package.json").read_text())
    for version, change in (("1", {"label": "sold"}), ("2", {"kind": "regression"})):
        other = project.folder / version
        shutil.copytree(project.folder / "second", other)
        (other / "package.json").write_text(json.dumps({**manifest, **change}))
        sha256 = project.files(version)["package.json"]
        project.store.put_file(f"objects/{sha256}", other / "package.json")
        project.crown(version, version)
    project.crown("3", "second", package={**project.files("second"), "network.pt2": "0" * 64})
    project.crown("4", "second")
    figures = project.select("alone", *CHAMPIONS)
    ensemble = figures.ensemble
    assert ensemble is not None
    assert [m.what for m in ensemble.members] == ["this run's model", "champion 4"]
    said = ensemble.left_out
    assert said[0].startswith("champion 3 cannot be used: ")
    assert said[1] == "champion 2: it is for a regression task, and this is a binary one"
    assert said[2] == "champion 1: it predicts 'sold', and the label is 'bought'"
