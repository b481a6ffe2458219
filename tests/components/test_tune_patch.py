"""The winner in evertrain.yaml: the values change, and not a byte beside them."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from components.common.project import open_project
from components.common.tune_figures import ChangeFigures, Repeated
from components.tune.patch import applied, write_patch
from training_core.errors import ConfigurationError

FLIGHTS = Path(__file__).parents[2] / "examples" / "flights"


def change(path: str, new: object) -> ChangeFigures:
    gained = Repeated(mean=0.01, error=0.001, seeds=[0.01, 0.01])
    return ChangeFigures.model_validate({"path": path, "old": 0, "new": new, "gained": gained})


def test_only_the_values_change_in_a_file_with_comments() -> None:
    project = open_project(FLIGHTS)
    before = (FLIGHTS / "evertrain.yaml").read_text()
    after = applied(
        project, [change("training.optimiser.lr", 0.0031), change("training.epochs", 4.0)]
    )
    pairs = [d for d in difflib.ndiff(before.split("\n"), after.split("\n")) if d[0] in "+-"]
    assert pairs == [
        "-   epochs: 3 # one was 0.005 worse, two as good; the best checkpoint is chosen among all "
        "of them",
        "+   epochs: 4.0 # one was 0.005 worse, two as good; the best checkpoint is chosen among "
        "all of them",
        "-   optimiser: {lr: 0.002, weight_decay: 0.01}",
        "+   optimiser: {lr: 0.0031, weight_decay: 0.01}",
    ]


def test_what_the_file_does_not_name_yet_is_added(fresh_project: Path) -> None:
    changes = [
        change("training.optimiser.weight_decay", 1e-5),  # into {lr: 0.02}
        change("training.schedule.warmup", 0.1),  # a section that is not there
        change("training.optimiser.betas", [0.9, 0.95]),
    ]
    project = open_project(fresh_project)
    write_patch(project, changes)
    found = open_project(fresh_project).settings.training
    assert found.optimiser.weight_decay == 1e-5
    assert found.optimiser.betas == (0.9, 0.95)
    assert found.optimiser.lr == 0.02
    assert found.schedule.warmup == 0.1
    assert "# The smallest project" in (fresh_project / "evertrain.yaml").read_text()


def test_a_section_below_the_top_is_added_at_the_end(fresh_project: Path) -> None:
    write_patch(open_project(fresh_project), [change("task.options.width", 3)])
    assert open_project(fresh_project).settings.task.options == {"width": 3}


def test_a_file_with_anchors_that_would_change_elsewhere_too_is_left_alone(
    fresh_project: Path,
) -> None:
    file = fresh_project / "evertrain.yaml"
    text = file.read_text().replace("log_every: 5", "log_every: &n 5\n  max_skipped: *n")
    file.write_text(text)
    with pytest.raises(ConfigurationError, match="cannot be applied"):
        applied(open_project(fresh_project), [change("training.max_skipped", 7)])
    assert file.read_text() == text
