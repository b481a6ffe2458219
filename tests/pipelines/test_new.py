"""What `evertrain new` writes: whole projects whose code is clean, and which run at once."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pandas as pd
import pytest
import torch

from components.common.project import open_project
from pipelines.new.start import start
from pipelines.new.template import Template
from tests.pipelines.linting import lint
from tests.small_project.command import REPOSITORY, command, environment, evertrain
from training_core.errors import ConfigurationError

SAME = {  # files that a template shares with an example: one is mended with the other
    Template.IMAGE: ("digits", ("images.py", "augmentation.py", "network.py")),
    Template.TEXT: ("text", ("characters.py", "network.py")),
}


@pytest.fixture(scope="module", params=list(Template), ids=str)
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new project of each kind."""
    folder = tmp_path_factory.mktemp("new") / f"my-{request.param}"
    made = start(folder, request.param)
    assert len(made.data) == 8
    assert sorted(path for path in folder.iterdir() if path.is_file()) == sorted(made.files)
    return made.folder


def rows_of(project: Path) -> pd.DataFrame:
    files = sorted((project / "data").glob("*.parquet"))
    return pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)


def test_the_new_project_opens_and_its_network_scores_its_data(project: Path) -> None:
    opened = open_project(project)
    assert opened.settings.name == project.name
    assert opened.data_source == str(project / "data")
    task, rows = opened.task(), rows_of(project)
    assert set(opened.settings.data.row_key) <= set(rows.columns)
    sample = rows.head(50)
    preprocessor = task.preprocessor().fit(sample)
    model = task.build_model(preprocessor).eval()
    arrays = {name: torch.from_numpy(a) for name, a in preprocessor.transform(sample).items()}
    loss = task.loss(model(**arrays), torch.from_numpy(task.target(sample)))
    assert loss.shape == (50,)
    assert bool(torch.isfinite(loss).all())


def test_what_was_written_is_as_clean_as_our_own_code(project: Path) -> None:
    for file in project.glob("*.py"):
        assert lint(file) == "", file.name
    for file in (path for path in project.iterdir() if path.is_file()):
        text = file.read_text()
        assert text.endswith("\n"), file.name
        assert not text.endswith("\n\n"), file.name
        assert "{%" not in text, file.name


def test_the_readme_names_every_file_and_no_other(project: Path) -> None:
    readme = (project / "README.md").read_text()
    named = {line.split("|")[1] for line in readme.splitlines() if line.startswith("| `")}
    files = {word for cell in named for word in cell.replace("`", "").replace(",", "").split()}
    there = {path.name for path in project.iterdir() if path.is_file()} - {"README.md"}
    assert there <= files


def test_more_weeks_of_data_come_by_its_own_script_and_the_same_are_the_same_bytes(
    project: Path, tmp_path: Path
) -> None:
    words = [command()[0], project / "make_data.py", "--data", tmp_path, "--weeks", "8-9"]
    subprocess.run(words, check=True, capture_output=True, env=environment())
    eighth, ninth = sorted(tmp_path.iterdir())
    assert eighth.read_bytes() == (project / "data" / eighth.name).read_bytes()
    assert list(pd.read_parquet(ninth).columns) == list(rows_of(project).columns)


@pytest.mark.parametrize("template", SAME, ids=str)
def test_a_template_and_its_example_share_their_code(template: Template) -> None:
    example, files = SAME[template]
    folder = REPOSITORY / "pipelines" / "new" / "templates" / template
    for name in files:
        ours = (REPOSITORY / "examples" / example / name).read_text()
        assert (folder / f"{name}.jinja").read_text() == ours, f"copy {name} from one to the other"


def test_a_folder_that_is_not_empty_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"not empty: it holds mine\.txt") as caught:
        start(tmp_path, Template.IMAGE)
    assert "evertrain init" in caught.value.hint
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(ConfigurationError, match="is no folder"):
        start(tmp_path / "mine.txt", Template.IMAGE)


def test_an_empty_folder_is_taken_and_a_template_that_is_none_is_refused(tmp_path: Path) -> None:
    ended = evertrain("new", tmp_path, "--template", "text", "--json")
    assert ended.code == 0, ended.err
    assert ended.json["template"] == "text"
    assert len(ended.json["data"]) == 8
    assert set(map(Path, ended.json["files"])) == {p for p in tmp_path.iterdir() if p.is_file()}
    unknown = evertrain("new", tmp_path / "other", "--template", "sound")
    assert unknown.code == 2
    assert "tabular" in unknown.err
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("there", [True, False])
def test_where_files_cannot_be_written_nothing_is_left_behind(tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "project"
    if there:
        folder.mkdir()

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))  # as if the disk were full

    ended = subprocess.run(
        command("new", folder, "--template", "image"),
        capture_output=True, text=True, check=False, cwd="/", env=environment(),
        preexec_fn=small_files,
    )  # fmt: skip
    assert ended.returncode not in (0, 130), ended.stderr
    assert folder.exists() == there
    assert not there or list(folder.iterdir()) == []


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.timeout(900)
@pytest.mark.parametrize("template", list(Template), ids=str)
def test_a_new_project_runs_at_once(template: Template, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    assert evertrain("new", folder, "--template", template).code == 0
    quick = [
        "checks.seconds=5", "checks.rows=512", "baselines.input_independent_steps=10",
        "decision.retraining_noise=0.001", "decision.resamples=300",
    ]  # fmt: skip
    words = [word for each in quick for word in ("--set", each)]
    ended = evertrain("run", folder, "--json", *words, timeout=800)
    assert ended.code == 0, ended.err
    assert (ended.json["verdict"], ended.json["champion_after"]) == ("promote", "1")
