"""Where a training begins: part of the run's key, the champion's weights, refusals in words."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from components.common.champion import PromotionEntry, PromotionLog
from components.common.layout import sha256_of, start_key
from components.common.records import read_records
from components.common.training_start import TrainingStart, kept_start
from components.common.unseen import seen_together
from components.select_checkpoint import step as select_checkpoint
from components.snapshot_data import step as snapshot_data
from components.train_distributed import step as train_distributed
from infra.folder import FolderStore
from tests.small_project.command import make_project
from tests.small_project.data_steps import RUN, Metrics, as_a_step_of_its_own
from tests.small_project.splits import write_splits
from training_core.checkpoints.catalogue import Checkpoints
from training_core.package import Package
from training_core.tabular import TabularPreprocessor
from training_core.transfer.safetensors import write_safetensors

CHAMPION = "training.start.weights=champion"


def store(project: Path) -> FolderStore:
    return FolderStore(project / ".evertrain" / "store")


def key_of(project: Path, *overrides: str, force: bool = False) -> tuple[str, str]:
    """Run snapshot_data; return the run's key and what it says of the start."""
    with as_a_step_of_its_own():
        seen = snapshot_data.run(
            str(project), "", "", list(overrides), force, str(project / "snapshot.json")
        )
    record = read_records(store(project), RUN)["snapshot_data"]
    assert record.figures is not None
    return seen.run_key, record.figures["start"]


def ended(project: Path, step: str) -> str:
    """What a step that did not come to its end says."""
    return read_records(store(project), RUN)[step].reason


def crown(project: Path, version: str, *, run_key: str, package: dict[str, str] | None = None,
          until: str = "2020-01-01T00:00:00") -> None:  # fmt: skip
    """Make a version champion, as promote_model does."""
    log = PromotionLog(store(project))
    entry = PromotionEntry(
        number=len(log.entries()) + 1, action="promote", version=version, run="r", run_key=run_key,
        package=package or {"package.json": version * 64}, seen={"by": "time", "until": until},
        reason="", who="a test",
    )  # fmt: skip
    assert log.append(entry)


# ---- the key ---------------------------------------------------------------------------------


def test_without_a_start_the_key_knows_nothing_of_champions(fresh_project: Path) -> None:
    before = key_of(fresh_project)
    crown(fresh_project, "1", run_key="other")
    assert key_of(fresh_project) == before
    assert before[1] == ""
    assert store(fresh_project).info(start_key(before[0])) is None


def test_another_champion_makes_another_run(fresh_project: Path) -> None:
    none, words = key_of(fresh_project, CHAMPION)
    assert words == "as initialised, for there was no champion yet"
    crown(fresh_project, "1", run_key="other")
    first, words = key_of(fresh_project, CHAMPION)
    assert words == "champion 1"
    assert key_of(fresh_project, CHAMPION)[0] == first
    crown(fresh_project, "2", run_key="another")
    second, _ = key_of(fresh_project, CHAMPION)
    assert len({none, first, second, key_of(fresh_project)[0]}) == 4
    kept = kept_start(store(fresh_project), first)
    assert kept is not None
    assert (kept.version, kept.package) == ("1", {"package.json": "1" * 64})


def test_a_run_whose_own_model_became_champion_is_still_that_run(fresh_project: Path) -> None:
    """Else each promotion would make the same data worth one more training, for ever."""
    crown(fresh_project, "1", run_key="other")
    key, _ = key_of(fresh_project, CHAMPION)
    crown(fresh_project, "2", run_key=key)
    assert key_of(fresh_project, CHAMPION) == (key, "champion 1")
    changed, words = key_of(fresh_project, CHAMPION, "training.epochs=1")
    assert changed != key
    assert words == "champion 2"


def test_a_file_counts_by_what_is_in_it(fresh_project: Path) -> None:
    file = ["training.start.weights=file", "training.start.file=a.safetensors"]
    write_safetensors(fresh_project / "a.safetensors", {"x": torch.zeros(2)})
    zeros, words = key_of(fresh_project, *file)
    sha256 = sha256_of(fresh_project / "a.safetensors")
    assert words == f"a.safetensors (sha256 {sha256[:12]}…)"
    assert store(fresh_project).info(f"objects/{sha256}") is not None
    write_safetensors(fresh_project / "a.safetensors", {"x": torch.ones(2)})
    ones, _ = key_of(fresh_project, *file)
    assert zeros != ones
    store(fresh_project).put_file("models/a", fresh_project / "a.safetensors")
    placed, _ = key_of(fresh_project, file[0], "training.start.file=store://models/a")
    assert placed != ones  # the settings are others
    kept = kept_start(store(fresh_project), placed)
    assert kept is not None
    assert kept.sha256 == sha256_of(fresh_project / "a.safetensors")


@pytest.mark.parametrize(
    ("file", "words"), [("b.safetensors", "there is no file"), ("store://b", "there is no b in")]
)
def test_a_file_that_is_not_there_is_said_before_anything_is_trained(
    fresh_project: Path, file: str, words: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        key_of(fresh_project, "training.start.weights=file", f"training.start.file={file}")
    assert caught.value.code == 2
    assert words in ended(fresh_project, "snapshot_data")


def test_what_two_have_seen_is_what_either_has() -> None:
    early, late = ({"by": "time", "until": f"2025-0{i}-01T00:00:00+00:00"} for i in (1, 2))
    assert seen_together(early, late) == seen_together(late, early) == late
    rule = {"by": "hash", "rule": "x"}
    assert seen_together(rule, rule) == rule
    assert seen_together(rule, late) == {"by": "several rules"}


# ---- training --------------------------------------------------------------------------------


class Project:
    """The small project with splits, and a first model in its store."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, store(folder)
        self.splits = folder / "splits.json"

    def train(self, key: str, *overrides: str) -> dict[str, Any]:
        """Run train_distributed and select_checkpoint; return what the former says."""
        metrics, given = Metrics(self.folder / "metrics"), list(overrides)
        training, name = str(self.folder / f"{key}.json"), str(self.folder)
        with as_a_step_of_its_own():
            train_distributed.run(name, "", given, key, str(self.splits), training, metrics)
            select_checkpoint.run(
                name, "", given, key, str(self.splits), training, str(self.folder / key),
                str(self.folder / "candidates.json"), metrics,
            )  # fmt: skip
        figures = read_records(self.store, RUN)["train_distributed"].figures
        assert figures is not None
        return figures

    def package(self, key: str) -> Package:
        return Package(self.folder / key, TabularPreprocessor)

    def files(self, key: str) -> dict[str, str]:
        return {path.name: sha256_of(path) for path in (self.folder / key).iterdir()}

    def settle(self, key: str, **start: Any) -> None:
        told = TrainingStart.model_validate(start)
        self.store.put(start_key(key), told.model_dump_json().encode())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_project(tmp_path_factory.mktemp("starting") / "project", 1)
    write_splits(folder)
    Project(folder).train("first")
    return folder


@pytest.fixture
def project(trained: Path, tmp_path: Path) -> Project:
    found = Project(Path(shutil.copytree(trained, tmp_path / "project")))
    old = {"by": "time", "until": "2020-01-01T00:00:00+00:00"}
    found.settle("warm", weights="champion", version="1", package=found.files("first"), seen=old)
    return found


def test_a_training_begins_with_the_champions_weights(project: Project) -> None:
    short = ["training.stopping.max_steps=1", "training.optimiser.lr=1e-9"]
    cold = project.train("cold", *short)
    warm = project.train("warm", *short, CHAMPION)
    assert warm["start"] == (
        "champion 1: 5 tensors carried over; of its categories 4 known, 0 new, 0 gone"
    )
    assert warm["curve"][0]["loss"] < cold["curve"][0]["loss"] - 0.05
    old, new = (project.package(key).network.state_dict() for key in ("first", "warm"))
    assert max(float((new[name] - old[name]).abs().max()) for name in old) < 1e-6


def test_a_first_run_without_a_champion_is_trained_as_initialised(project: Project) -> None:
    project.settle("none", weights="champion")
    said = project.train("none", CHAMPION, "training.stopping.max_steps=2")
    assert said["start"] == "as initialised, for there was no champion yet"


def test_the_new_model_has_seen_what_the_champion_has(project: Project) -> None:
    late = {"by": "time", "until": "2025-01-20T00:00:00+00:00"}
    splits = json.loads(project.splits.read_text())
    assert late["until"] < splits["seen"]["until"]
    splits["seen"] = {"by": "time", "until": "2025-01-02T00:00:00+00:00"}
    project.splits.write_text(json.dumps(splits))
    project.settle(
        "warm", weights="champion", version="1", package=project.files("first"), seen=late
    )
    project.train("warm", CHAMPION, "training.stopping.max_steps=1")
    assert project.package("warm").manifest["facts"]["seen"] == late


def test_a_champion_that_has_seen_the_holdout_is_no_start(project: Project) -> None:
    seen = {"by": "time", "until": "2031-01-01T00:00:00+00:00"}
    files = project.files("first")
    project.settle("warm", weights="champion", version="7", package=files, seen=seen)
    with pytest.raises(SystemExit) as caught:
        project.train("warm", CHAMPION)
    assert caught.value.code == 1
    assert "champion 7, which training would begin with," in ended(
        project.folder, "train_distributed"
    )


def test_a_start_that_nobody_has_settled_is_refused(project: Project) -> None:
    with pytest.raises(SystemExit) as caught:
        project.train("unsettled", CHAMPION)
    assert caught.value.code == 2
    assert "has not settled which ones" in ended(project.folder, "train_distributed")


def test_adapters_become_a_plain_package_and_checkpoints_without_the_base(
    project: Project,
) -> None:
    lora = [CHAMPION, "training.start.lora.rank=1", "training.optimiser.lr=0.1"]
    project.train("warm", *lora)
    found = Checkpoints(project.store, "checkpoints/warm")
    state = found.model_state(found.manifests()[-1])
    assert state is not None
    assert set(state) == {f"layers.{i}.lora_{x}" for i in (0, 2) for x in "ab"}
    old, new = (project.package(key).network.state_dict() for key in ("first", "warm"))
    assert old.keys() == new.keys()
    changed = {name for name in old if not torch.equal(old[name], new[name])}
    assert changed == {"model.layers.0.weight", "model.layers.2.weight"}


def test_a_start_from_a_file_with_other_names_and_a_new_head(project: Project) -> None:
    state = project.package("first").network.state_dict()
    file = project.folder / "a.safetensors"
    write_safetensors(
        file, {n.replace("model.", "module."): v for n, v in state.items() if "layers.2" not in n}
    )
    project.store.put_file(f"objects/{sha256_of(file)}", file)
    project.settle("warm", weights="file", file="a.safetensors", sha256=sha256_of(file))
    given = [
        "training.start.weights=file", "training.start.file=a.safetensors",
        r"training.start.names={'^module\.': ''}", "training.start.replace=[layers.2.*]",
        "training.start.freeze=[embedding.*]",
    ]  # fmt: skip
    said = project.train("warm", *given, "training.stopping.max_steps=3")
    assert said["start"].endswith("3 tensors carried over, 2 as initialised")
    new = project.package("warm").network.state_dict()
    assert torch.equal(new["model.embedding.weight"], state["model.embedding.weight"])
    assert not torch.equal(new["model.layers.0.weight"], state["model.layers.0.weight"])


def test_a_damaged_champion_is_no_start(project: Project) -> None:
    sha256 = project.files("first")["network.pt2"]
    object_ = project.folder / ".evertrain/store/objects" / sha256
    object_.write_bytes(object_.read_bytes()[:-1] + b"x")
    shutil.rmtree(project.folder / ".evertrain/cache", ignore_errors=True)
    with pytest.raises(SystemExit) as caught:
        project.train("warm", CHAMPION)
    assert caught.value.code == 3 or caught.value.code == 1
    assert not store(project.folder).info("checkpoints/warm/result.json")
