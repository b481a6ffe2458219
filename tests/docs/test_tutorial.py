"""The tutorial, command by command as its page shows it; then the other lines that are run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.docs.documented import ROOT, listed, tutorial
from tests.docs.terminal import not_printed, typed

pytestmark = [pytest.mark.smoke, pytest.mark.slow]


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which somebody has followed the tutorial to its end."""
    folder = tmp_path_factory.mktemp("ada")
    problems = []
    for step in tutorial():
        ended = typed(step.command, folder=folder)
        assert ended.code == 0, f"$ {step.command}\n{ended.out}\n{ended.err}"
        if line := not_printed(step.shown, ended.out, folder=str(folder)):
            problems.append(f"$ {step.command}\npage: {line}\nprinted:\n{ended.out}")
    assert not problems, "\n\n".join(problems)
    return folder


@pytest.mark.timeout(1200)
def test_the_tutorial_says_what_its_commands_print(followed: Path) -> None:
    assert (followed / "shop" / ".evertrain" / "store" / "promotions").is_dir()


@pytest.mark.timeout(1200)
def test_the_lines_that_are_listed_as_run_end_well(followed: Path) -> None:
    shutil.copytree(ROOT / "examples", followed / "examples", ignore=_what_runs_left)
    shutil.copytree(followed / "shop" / "data", followed / "data")
    for command in listed()["Run"]:
        line = command.replace("PROJECT", "shop")
        # The clone itself is not written to: what the examples prepare lies in a copy.
        ended = typed(f"make -C {ROOT}" if line == "make" else line, folder=followed)
        assert ended.code == 0, f"$ {command}\n{ended.out}\n{ended.err}"
        assert ended.out.strip(), command


def _what_runs_left(_: str, names: list[str]) -> set[str]:
    return {name for name in names if name in ("data", ".evertrain", "__pycache__")}
