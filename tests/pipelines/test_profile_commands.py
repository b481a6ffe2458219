"""`evertrain profile`, `lr` and `batch-size`: what they say, and that they leave a page alone."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from components.common.layout import project_store
from components.common.project import open_project
from pipelines.profiling.data import newest_split
from pipelines.profiling.plain import plain
from tests.small_project.command import evertrain, make_project
from tests.small_project.data_steps import RUN, run_data_steps

PLANTED = """

    def loss(self, outputs, target):
        losses = super().loss(outputs, target)
        self.last = losses.mean().item()  # planted
        print("a word of the task's own")
        return losses
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small project, whose loss reads a value and prints."""
    folder = make_project(tmp_path_factory.mktemp("profiled") / "project", 1)
    with (folder / "task.py").open("a") as file:
        file.write(PLANTED)
    return folder


def left(project: Path) -> set[str]:
    """Files in the project's object store and beside it."""
    home = project / ".evertrain"
    return {str(f.relative_to(home)) for f in home.rglob("*") if f.is_file()}


def test_a_profile_names_the_lines_and_leaves_a_page_and_a_trace_alone(project: Path) -> None:
    ended = evertrain("profile", project, "--price", "2", "--json")
    assert ended.code == 0, ended.err
    said = ended.json  # stdout is data, whatever the task prints
    line = (project / "task.py").read_text().splitlines().index(
        "        self.last = losses.mean().item()  # planted"
    ) + 1
    places = {each["place"]: each["kind"] for each in said["profile"]["syncs"]}
    assert places == {
        f"{project / 'task.py'}:{line}": "a value is read",
        f"{project / 'task.py'}:{line + 1}": "something is written",
    }
    assert said["bound"] in ("overhead", "input", "memory", "compute")
    assert said["estimate"]["cost"] > 0
    assert len(said["bars"]) <= 3
    assert left(project) == {"store/profile/profile.html", "store/profile/trace.json.gz"}
    page = Path(said["page"]).read_text()
    assert "What a step is spent on" in page
    assert f"task.py:{line}" in page
    with gzip.open(said["trace"]) as file:
        assert json.load(file)["traceEvents"]
    assert "Traceback" not in ended.err
    assert "a word of the task" in ended.err


def test_a_rate_is_proposed_or_the_planned_one_is_kept(project: Path) -> None:
    ended = evertrain("lr", project, "--steps", "80", "--set", "training.optimiser.lr=1e-6")
    assert ended.code == 0, ended.err
    first, *rest = ended.out.splitlines()
    assert first.startswith("Proposed: training.optimiser.lr "), ended.out
    assert float(first.rsplit(" ", 1)[1]) > 1e-4
    assert any("from the same start" in line for line in rest)
    page = project / ".evertrain" / "store" / "profile" / "lr.html"
    assert f"page:    {page}" in rest
    assert "Loss while the learning rate rises" in page.read_text()


def test_a_sweep_of_nothing_is_refused_with_words(project: Path) -> None:
    ended = evertrain("lr", project, "--from", "1", "--to", "0.1")
    assert ended.code == 2
    assert "a sweep of 150 steps from 1 to 0.1 shows nothing" in ended.err


def test_batch_sizes_are_proposed_with_both_reasons(project: Path) -> None:
    ended = evertrain("batch-size", project, "--json")
    assert ended.code == 0, ended.err
    said = ended.json
    assert said["planned"] == 256
    assert said["knee"] in [each["batch_size"] for each in said["sizes"]["speeds"]]
    assert said["sizes"]["limit"] == "rows"
    assert said["noise"][0]["step"] == 1
    assert "training.batch_size" in said["proposal"]
    assert "The gradient noise scale" in Path(said["page"]).read_text()


def test_data_that_is_not_there_is_said_with_its_own_exit_code(tmp_path: Path) -> None:
    empty = make_project(tmp_path / "empty", 1)
    (empty / "data" / "2025-01.parquet").write_bytes(b"no Parquet")
    ended = evertrain("profile", empty)
    assert ended.code == 1
    assert "2025-01.parquet" in ended.err
    assert ended.out == ""


def test_the_newest_runs_split_is_taken_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KFP_RUN_ID", RUN)
    project = make_project(tmp_path / "ran", 1)
    opened = open_project(project)
    assert newest_split(opened, project_store(opened)) is None
    records = run_data_steps(project)
    found = newest_split(opened, project_store(opened))
    assert found is not None
    assert found.words == (
        f"{records['split_data'].figures['parts']['train']['rows']:,} rows of train; "
        f"the split of run {RUN}"
    )
    assert found.train.exists()
    assert found.rows == 0  # the whole part, no sample


def test_what_is_no_number_is_null_in_json() -> None:
    assert plain({"a": float("inf"), "b": (1.5, [None, "c"])}) == {
        "a": None,
        "b": [1.5, [None, "c"]],
    }
