"""What `evertrain init` refuses, in words that help."""

from __future__ import annotations

import os
import pty
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from init_samples import decided, orders, proposed, write, written

from pipelines.init.asking import Asking
from pipelines.init.sample import find_source
from tests.small_project.command import command, environment, evertrain
from training_core.errors import ConfigurationError, EvertrainError, StoppedByGate


@pytest.mark.parametrize(
    ("label", "change", "kind", "words", "hint"),
    [
        ("Bougth", None, ConfigurationError, "'Bougth'", "did you mean 'bought'"),
        ("price", None, ConfigurationError, "not binary: it is DOUBLE", "bought"),
        ("country", None, ConfigurationError, "among them 'DE', 'FR', 'PL'", "yes or no"),
        ("ordered_at", None, ConfigurationError, "not binary", "yes or no"),
        ("bought", lambda r: r.assign(bought=1), StoppedByGate, "all labels are 1", "both classes"),
        ("bought", lambda r: r.assign(bought=np.nan), StoppedByGate, "no row has a label", "both"),
        ("bought", lambda r: r.iloc[:0], StoppedByGate, "no row in the 2 objects", "bring data"),
        (
            "bought",
            lambda r: r[["order_id", "ordered_at", "currency", "comment", "bought"]],
            StoppedByGate,
            "no column is left to learn from",
            "describe a row",
        ),
    ],
)
def test_data_without_a_problem_to_learn_is_refused(
    tmp_path: Path,
    label: str,
    change: Callable[[pd.DataFrame], pd.DataFrame] | None,
    kind: type[EvertrainError],
    words: str,
    hint: str,
) -> None:
    rows = orders(1_000) if change is None else change(orders(1_000))
    with pytest.raises(kind) as caught:
        decided(tmp_path, rows, label=label)
    assert words in caught.value.what
    assert hint in caught.value.hint


def test_an_object_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = write(tmp_path, orders(1_000)) / "part-1.parquet"
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(StoppedByGate, match=r"part-1\.parquet") as caught, proposed(tmp_path):
        pass
    assert "no readable Parquet file" in caught.value.what
    assert "/tmp" not in caught.value.what.replace(str(tmp_path), ""), "no file of our own"


def test_an_empty_folder_and_one_without_data_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoppedByGate, match="nothing to read"):
        find_source(str(tmp_path))
    (tmp_path / "notes.txt").touch()
    with pytest.raises(StoppedByGate, match=r"it holds notes\.txt"):
        find_source(str(tmp_path))
    with pytest.raises(ConfigurationError, match="there is no folder"):
        find_source(str(tmp_path / "nowhere"))


def test_nothing_is_overwritten_unless_forced(tmp_path: Path) -> None:
    data, project = write(tmp_path / "data", orders(1_000)), tmp_path / "project"
    project.mkdir()
    (project / "task.py").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"already holds task\.py"):
        written(data, project)
    assert sorted(os.listdir(project)) == ["task.py"]
    assert (project / "task.py").read_text() == "mine"


def test_nothing_is_written_when_something_cannot_be_told(tmp_path: Path) -> None:
    data = write(tmp_path / "data", orders(1_000))
    with pytest.raises(ConfigurationError, match="cannot tell which column is the label"):
        written(data, tmp_path / "project", label="")
    assert not (tmp_path / "project").exists()


def test_a_person_is_asked_only_for_what_cannot_be_told(tmp_path: Path) -> None:
    rows = orders(1_000).assign(created_at=lambda r: r["ordered_at"])
    rows = rows.drop(columns=["order_id", "comment"])
    rows = pd.concat([rows, rows]).assign(half=np.repeat([0.25, 0.75], 1_000))
    data, asked = write(tmp_path / "data", rows), []

    def ask(question: str, proposal: str) -> str:
        asked.append(question)
        if "label" in question:
            return "bought"
        return (
            proposal if "row came to be" in question else "customer_id,price,half,hour,created_at"
        )

    proposal = written(data, tmp_path / "a", asking=Asking(ask=ask), label="").proposal
    assert (proposal.label.name, proposal.time) == ("bought", "ordered_at")
    assert proposal.key == ["customer_id", "price", "half", "hour", "created_at"]
    assert len(asked) == 3
    asked.clear()
    written(write(tmp_path / "clear", orders(1_000)), tmp_path / "b", asking=Asking(ask=ask))
    assert asked == []


def test_yes_takes_the_first_of_two_likely_times(tmp_path: Path) -> None:
    rows = orders(1_000).assign(created_at=lambda r: r["ordered_at"])
    folder = write(tmp_path, rows)
    with proposed(folder, asking=Asking(take_proposals=True)) as found:
        assert found.time == "ordered_at"


def test_the_command_says_what_is_wrong_with_the_code_of_it(tmp_path: Path) -> None:
    data = write(tmp_path / "data", orders(1_000))
    for words, code, said in (
        ([data, "--label", "bougth"], 2, "did you mean 'bought'"),
        ([tmp_path / "none", "--label", "bought"], 2, "there is no folder"),
        ([data], 2, "pass --label COLUMN"),
    ):
        ended = evertrain("init", *words, "--project", tmp_path / "project")
        assert (ended.code, ended.out) == (code, "")
        assert said in ended.err
    assert not (tmp_path / "project").exists()


def test_on_a_terminal_the_label_is_asked_for(tmp_path: Path) -> None:
    data, project = write(tmp_path / "data", orders(1_000)), tmp_path / "project"
    here, there = pty.openpty()
    words = command("init", data, "--project", project, "--json")
    with subprocess.Popen(
        words, stdin=there, stderr=there, stdout=subprocess.PIPE, cwd="/", env=environment()
    ) as running:
        os.close(there)
        said = b""
        began = time.monotonic()
        while b"which column is the label?" not in said and time.monotonic() - began < 60:
            said += os.read(here, 1024)
        os.write(here, b"bought\n")
        assert running.stdout is not None
        out = running.stdout.read()
    os.close(here)
    assert running.returncode == 0, said
    assert b"two values have returning, bought" in said
    assert out.startswith(b"{"), "the question is talk, not data"
    assert (project / "evertrain.yaml").exists()
