"""`evertrain check`: the sanity checks alone, on rows as a run would have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.common.project import open_project
from pipelines.check import checks_of_project, planned_checks
from tests.small_project.command import evertrain, make_project
from tests.small_project.own_checks import add_own_checks
from training_core.errors import ConfigurationError

OWN = ("outputs_are_small", "no_future_reaches_the_past")
MADE = [word for name in OWN for word in ("--only", name)]


@pytest.fixture
def sane(tmp_path: Path) -> Path:
    """The small project with checks of its own, which pass."""
    return add_own_checks(make_project(tmp_path / "sane", 1))


def test_a_sane_project_passes_and_nothing_but_the_page_is_stored(sane: Path) -> None:
    ended = evertrain("check", sane, *MADE, "--page")
    assert ended.code == 0, ended.err
    for words in (*OWN, "not applicable", "[sequence]", "2 checks: none failed, 1 passed"):
        assert words in ended.out
    page = sane / ".evertrain" / "store" / "checks.html"
    assert f"page:    {page}" in ended.out
    assert "Nothing is wrong with the training code." in page.read_text()
    assert "The chart as a table" in page.read_text()
    assert [file for file in (sane / ".evertrain").rglob("*") if file.is_file()] == [page]
    talk = [line.split() for line in ended.err.splitlines()]
    assert [line[1] for line in talk if line[0] in "✓·"] == list(OWN)
    assert "a word of the task's own" in ended.err


def test_a_broken_task_ends_with_1_and_says_what_is_wrong_and_what_to_do(tmp_path: Path) -> None:
    broken = add_own_checks(make_project(tmp_path / "broken", 1), limit=0.0)
    ended = evertrain("check", broken, *MADE, "--set", "checks.rows=300", "--json")
    assert ended.code == 1
    said = ended.json  # stdout is data, whatever the task prints
    assert said["failed"] == ["outputs_are_small"]
    first, second = said["checks"]
    assert (first["verdict"], first["advice"]) == ("fail", "scale the last layer")
    assert first["measured"] > first["limit"] == 0
    assert "of 300 rows" in first["message"]
    assert second["verdict"] == "not_applicable"
    assert said["rows"] == {"train": 300, "validation": 300}
    assert "error: the training code is broken (outputs_are_small): the largest" in ended.err
    assert "hint: scale the last layer; nothing was trained" in ended.err
    assert "Traceback" not in ended.err
    assert not (broken / ".evertrain").exists()


def test_a_name_that_no_check_has_is_refused_before_any_data_is_read(sane: Path) -> None:
    (sane / "data" / "2025-01.parquet").write_bytes(b"this would be noticed")
    ended = evertrain("check", sane, "--only", "outputs_are_smal")
    assert ended.code == 2
    assert "'outputs_are_smal'" in ended.err
    assert "outputs_are_small" in ended.err
    assert ended.out == ""
    opened = open_project(sane, overrides=["checks.levels.outputs=off"])
    with pytest.raises(ConfigurationError, match="no check named 'outputs'"):
        planned_checks(opened, [])


def test_the_list_says_what_each_check_looks_at(sane: Path) -> None:
    ended = evertrain("check", sane, "--list", "--json")
    assert ended.code == 0, ended.err
    own = [check for check in ended.json["checks"] if check["name"] in OWN]
    assert [check["looks_at"] for check in own] == [
        "outputs of the untrained network are below 100.0",
        "a position depends on those before it",
    ]
    assert OWN[0] not in [check.name for check in checks_of_project(None)]
    nothing = evertrain("check")
    assert nothing.code == 2
    assert "no project is named" in nothing.err


def test_data_that_cannot_be_read_is_said_with_its_own_exit_code(sane: Path) -> None:
    (sane / "data" / "2025-01.parquet").write_bytes(b"no Parquet")
    ended = evertrain("check", sane)
    assert ended.code == 1
    assert "2025-01.parquet" in ended.err
    assert "Traceback" not in ended.err
