"""evertrain.yaml: what is wrong, where, and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.common.project import open_project
from training_core.errors import ConfigurationError


def fault(project: Path, *overrides: str) -> tuple[str, str]:
    """What opening says, and its hint."""
    with pytest.raises(ConfigurationError) as refused:
        open_project(project, overrides=list(overrides))
    return refused.value.what, refused.value.hint


def test_a_sound_project_opens_with_its_overrides(fresh_project: Path) -> None:
    project = open_project(fresh_project, overrides=["training.epochs=0.5", "task.options={}"])
    assert project.settings.training.epochs == 0.5
    assert project.data_source == str(fresh_project / "data")
    assert open_project(fresh_project, data="s3://b/p").data_source == "s3://b/p"
    assert type(project.task()).__name__ == "SmallTask"


def test_two_projects_in_one_process_keep_their_own_helpers_of_one_name(
    fresh_project: Path, tmp_path: Path
) -> None:
    task = """
from helpers.names import LABEL

from features import WIDTH
from training_core.task import BinaryTask


class Both(BinaryTask):
    label = f"{LABEL}{WIDTH}"
    preprocessor = build_model = None  # nothing is trained
"""
    seen = []
    for project in ("first", "second", "first"):
        folder = tmp_path / project
        (folder / "helpers").mkdir(parents=True, exist_ok=True)
        settings = (fresh_project / "evertrain.yaml").read_text().replace("SmallTask", "Both")
        (folder / "evertrain.yaml").write_text(settings)
        (folder / "task.py").write_text(task)
        (folder / "features.py").write_text(f"WIDTH = {len(project)}")
        (folder / "helpers" / "names.py").write_text(f"LABEL = {project!r}")
        seen.append(open_project(folder, data="rows").task().label)
    assert seen == ["first5", "second6", "first5"]


def test_off_is_a_word_and_not_a_falsehood(fresh_project: Path) -> None:
    file = fresh_project / "evertrain.yaml"
    levels = "quarantine_budget: 0.01\n  levels: {leak: off}"
    file.write_text(file.read_text().replace("quarantine_budget: 0.01", levels))
    settings = open_project(fresh_project, overrides=["training.deterministic=off"]).settings
    assert settings.validation.level("leak") == settings.training.deterministic == "off"
    assert open_project(fresh_project, overrides=["baselines.trees=false"])


def test_the_old_name_of_the_linear_baseline_is_still_understood(fresh_project: Path) -> None:
    file = fresh_project / "evertrain.yaml"
    file.write_text(file.read_text().replace("  linear: true", "  logistic: false"))
    settings = open_project(fresh_project).settings
    assert settings.offered_baselines == ["prior", "input_independent", "rule", "table", "trees"]
    beaten = ["baselines.logistic=true", "decision.must_beat=[logistic]"]
    assert open_project(fresh_project, overrides=beaten).settings.decision.must_beat == ["linear"]
    what, _ = fault(fresh_project, "baselines.linear=true")
    assert "`logistic` is the old name of `linear`" in what


def test_a_human_score_says_who_and_when_and_cannot_be_among_what_must_be_beaten(
    fresh_project: Path,
) -> None:
    score = "baselines.human={metric: error, value: 0.2, by: two people, when: 2013-05-01}"
    human = open_project(fresh_project, overrides=[score]).settings.baselines.human
    assert human is not None
    assert (human.value, human.when) == (0.2, "2013-05-01")
    what, _ = fault(fresh_project, score, "decision.must_beat=[prior, human]")
    assert "no predictions row by row" in what
    assert "decision.floors" in what
    what, _ = fault(fresh_project, "baselines.human={metric: error, value: 0.2, by: me}")
    assert "'baselines.human.when' is missing" in what
    what, _ = fault(fresh_project, score.replace("0.2", ".nan"))
    assert "baselines.human.value" in what


@pytest.mark.parametrize(
    ("override", "key", "hint"),
    [
        ("training.epoch=2", "training.epoch", "did you mean 'epochs'?"),
        ("training.optimiser.learning=1", "training.optimiser.learning", "valid keys here: betas"),
        ("decission.margin=0", "decission", "did you mean 'decision'?"),
        ("validation.row_rules=[{name: a, colum: b}]", "colum", "did you mean 'column'?"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_valid_one(
    fresh_project: Path, override: str, key: str, hint: str
) -> None:
    what, advice = fault(fresh_project, override)
    assert str(fresh_project / "evertrain.yaml") in what
    assert "unknown key" in what
    assert key in what
    assert hint in advice


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("training.epochs=many", ["training.epochs", "number", "'many'"]),
        ("training.epochs=-1", ["training.epochs", "greater than 0", "-1"]),
        ("data.row_key=id", ["data.row_key", "list", "'id'"]),
        ("name=Not A Name", ["name", "pattern"]),
        ("data.time_column=null", ["split.by: time", "data.time_column"]),
        ("decision.must_beat=[table]", []),
        ("split={by: hash, holdout: 0.6, validation: 0.5}", ["below 1"]),
    ],
)
def test_a_wrong_value_is_named_with_what_was_expected(
    fresh_project: Path, override: str, words: list[str]
) -> None:
    if not words:  # must_beat names a baseline that is not trained
        what, _ = fault(fresh_project, override, "baselines.table=[]")
        words = ["decision.must_beat", "table"]
    else:
        what, _ = fault(fresh_project, override)
    assert str(fresh_project / "evertrain.yaml") in what
    for word in words:
        assert word in what


@pytest.mark.parametrize("override", ["training.epochs", "=3", "name.of.it=3", "name=[1"])
def test_an_override_that_is_none_is_quoted(fresh_project: Path, override: str) -> None:
    what, hint = fault(fresh_project, override)
    assert override in what
    assert hint


def test_a_missing_section_is_named(fresh_project: Path) -> None:
    (fresh_project / "evertrain.yaml").write_text("name: small\n")
    what, _ = fault(fresh_project)
    assert "is missing (and 1 more)" in what


@pytest.mark.parametrize(
    ("content", "words"),
    [("a: [1", "is not YAML"), ("- a\n- b\n", "holds no settings"), ("", "holds no settings")],
)
def test_a_file_that_is_no_configuration_says_so(
    fresh_project: Path, content: str, words: str
) -> None:
    (fresh_project / "evertrain.yaml").write_text(content)
    assert words in fault(fresh_project)[0]


def test_a_folder_without_the_file_says_so(tmp_path: Path) -> None:
    what, hint = fault(tmp_path)
    assert f"no evertrain.yaml in {tmp_path}" in what
    assert "evertrain run" in hint
