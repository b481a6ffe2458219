"""What is wrong is said in words, by the right exit code, and the champion stays.

Most cases are a whole command on a copy of a project that has a champion. Of bad data a few kinds
are, and every kind goes through the data steps in this process, which takes a fraction of the time.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from components.common.records import STEPS, StepRecord
from infra.folder import FolderStore
from tests.small_project.command import Ended, evertrain
from tests.small_project.data_steps import (
    RUN,
    Metrics,
    as_a_step_of_its_own,
    run_data_steps,
)
from tests.small_project.make_data import file_of, month
from tests.small_project.splits import write_splits

pytestmark = pytest.mark.slow


def log_of(project: Path) -> dict[str, bytes]:
    """The promotion log, byte by byte."""
    folder = project / ".evertrain" / "store" / "promotions"
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def run(project: Path, *words: str) -> Ended:
    """Run the project; whatever is wrong, nobody sees a traceback and the champion stays."""
    before = log_of(project)
    assert len(before) == 1
    ended = evertrain("run", project, "--json", *words)
    assert "Traceback" not in ended.out + ended.err
    assert log_of(project) == before
    return ended


def stopped_run(project: Path, *words: str) -> dict[str, Any]:
    """Run the project, which some step must stop; return the run's record."""
    ended = run(project, *words)
    assert ended.code != 0, ended.out
    record: dict[str, Any] = ended.json
    assert record["exit_code"] == ended.code
    assert record["hint"]
    assert (record["champion_before"], record["champion_after"]) == ("1", "1")
    folder = project / ".evertrain" / "store" / "runs" / record["run"]
    assert json.loads((folder / "run.json").read_text()) == record
    page = (folder / "report.html").read_text()
    assert record["reasons"][0].split()[0] in page
    return record


def change(project: Path, edit: Callable[[pd.DataFrame], pd.DataFrame], *months: int) -> None:
    """Edit the rows of months, in place."""
    for number in months:
        file = file_of(project / "data", number)
        edit(pd.read_parquet(file)).to_parquet(file, index=False)


def empty_folder(project: Path) -> None:
    shutil.rmtree(project / "data")
    (project / "data").mkdir()


def no_parquet(project: Path) -> None:
    file_of(project / "data", 3).write_text("id,when,kind\n1,2025-03-01,bread\n")


def cut_off(project: Path) -> None:
    file = file_of(project / "data", 2)
    file.write_bytes(file.read_bytes()[:-500])


def same_file_twice(project: Path) -> None:
    shutil.copyfile(file_of(project / "data", 2), project / "data" / "2025-02-copy.parquet")


def same_rows_twice(project: Path) -> None:
    month(2).iloc[::-1].to_parquet(project / "data" / "2025-02-again.parquet", index=False)


def column_lost_in_one_file(project: Path) -> None:
    month(3).drop(columns="number").to_parquet(file_of(project / "data", 3), index=False)


def column_lost_everywhere(project: Path) -> None:
    change(project, lambda rows: rows.drop(columns="number"), 1, 2)


def column_renamed(project: Path) -> None:
    renamed = month(3).rename(columns={"number": "figure"})
    renamed.to_parquet(file_of(project / "data", 3), index=False)


def text_for_numbers(project: Path) -> None:
    text = month(3).assign(number=lambda rows: rows["number"].astype(str))
    text.to_parquet(file_of(project / "data", 3), index=False)


def text_for_numbers_everywhere(project: Path) -> None:
    change(project, lambda rows: rows.assign(number=rows["number"].astype(str)), 1, 2)


def mostly_nan(project: Path) -> None:
    number = lambda rows: rows["number"].where(np.arange(len(rows)) % 3 > 0)  # noqa: E731
    change(project, lambda rows: rows.assign(number=number(rows)), 1, 2)


def no_labels(project: Path) -> None:
    change(project, lambda rows: rows.assign(bought=np.nan), 1, 2)


def one_class(project: Path) -> None:
    change(project, lambda rows: rows.assign(bought=0.0), 1, 2)


CASES: list[tuple[Callable[[Path], None], str, list[str]]] = [
    (empty_folder, "snapshot_data", ["nothing to read", "data", "'*.parquet'"]),
    (no_parquet, "snapshot_data", ["2025-03.parquet", "no readable Parquet"]),
    (cut_off, "snapshot_data", ["2025-02.parquet", "no readable Parquet"]),
    (same_file_twice, "snapshot_data", ["2025-02.parquet", "2025-02-copy.parquet", "twice"]),
    (same_rows_twice, "validate_data", ["be_unique", "id", "blocking"]),
    (column_lost_in_one_file, "validate_data", ["2025-03.parquet", "lacks column 'number'"]),
    (column_lost_everywhere, "validate_data", ["number", "columns_to_match_set"]),
    (column_renamed, "validate_data", ["2025-03.parquet", "lacks column 'number'", "'figure'"]),
    (text_for_numbers, "validate_data", ["2025-03.parquet", "'number' as", "not double"]),
    (text_for_numbers_everywhere, "validate_data", ["number", "DOUBLE"]),
    (mostly_nan, "validate_data", ["not_be_null", "number", "0.95"]),
    (no_labels, "split_data", ["none of the 2950 rows", "'bought'"]),
    (one_class, "split_data", ["one class only", "train"]),
]


# Where there is a champion, its data says more than a fresh project can know.
WHOLE_RUNS: list[tuple[Callable[[Path], None], str, str, list[str]]] = [
    (no_parquet, "", "snapshot_data", ["2025-03.parquet"]),
    (no_labels, "", "validate_data", ["no label"]),
    (lambda project: None, "split.holdout=90", "split_data", ["part is empty"]),
]


def name_of(value: object) -> str:
    return getattr(value, "__name__", "")


@pytest.mark.parametrize(("spoil", "step", "words"), CASES, ids=name_of)
def test_bad_data_is_named_by_the_step_that_stops(
    fresh_project: Path, spoil: Callable[[Path], None], step: str, words: list[str]
) -> None:
    spoil(fresh_project)
    records = run_data_steps(fresh_project)
    assert list(records) == list(STEPS[: STEPS.index(step) + 1])
    stopped = records[step]
    assert (stopped.status, stopped.exit_code) == ("stopped", 1)
    assert stopped.hint
    for word in words:
        assert word in stopped.reason


@pytest.mark.smoke  # whole commands; every kind goes through the data steps below
@pytest.mark.parametrize(("spoil", "setting", "step", "words"), WHOLE_RUNS, ids=name_of)
def test_bad_data_stops_the_run_and_is_named(
    project: Path, spoil: Callable[[Path], None], setting: str, step: str, words: list[str]
) -> None:
    spoil(project)
    record = stopped_run(project, *(["--set", setting] if setting else []))
    assert (record["status"], record["exit_code"]) == ("stopped", 1)
    statuses = {s["step"]: s["status"] for s in record["steps"]}
    assert statuses[step] == "stopped"
    later = [*STEPS[STEPS.index(step) + 1 : -1]]
    assert {statuses[name] for name in later} == {"not_run"}
    for word in words:
        assert word in record["reasons"][0]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("training.epoch=2", ["unknown key 'training.epoch'", "did you mean 'epochs'"]),
        ("training.epochs=many", ["training.epochs", "'many'"]),
        ("training.epochs", ["--set 'training.epochs'", "key=value"]),
        ("task.path=nonsense", ["task.path", "'nonsense'"]),
    ],
)
def test_a_wrong_setting_ends_before_anything_starts(
    project: Path, setting: str, words: list[str]
) -> None:
    ended = run(project, "--set", setting)
    assert (ended.code, ended.out) == (2, "")
    for word in [*words, "hint: "]:
        assert word in ended.err
    if "=" in setting:
        assert str(project / "evertrain.yaml") in ended.err
    runs = project / ".evertrain" / "store" / "runs"
    assert len(list(runs.iterdir())) == 1, "no run was started"


@pytest.mark.parametrize(
    ("path", "words", "hint"),
    [
        ("tusk:SmallTask", ["no module 'tusk'"], "create tusk.py"),
        ("task:Task", ["no task class 'Task'"], "SmallTask"),
    ],
)
def test_a_task_that_is_not_there_is_wrong_configuration(
    project: Path, path: str, words: list[str], hint: str
) -> None:
    runs = sorted((project / ".evertrain" / "store" / "runs").iterdir())
    ended = run(project, "--set", f"task.path={path}")
    assert (ended.code, ended.out) == (2, "")
    for word in [*words, str(project / "evertrain.yaml"), f"hint: {hint}" if "." in hint else hint]:
        assert word in ended.err
    assert sorted((project / ".evertrain" / "store" / "runs").iterdir()) == runs


def test_unknown_words_on_the_command_line_are_wrong_usage(project: Path) -> None:
    for words in (["--frobnicate"], ["extra"]):
        ended = run(project, *words)
        assert (ended.code, ended.out) == (2, "")


class FullFor(FolderStore):
    """A folder on a disk that has room for everything but the third checkpoint and later ones."""

    puts = 0

    def put(self, key: str, data: bytes | memoryview) -> None:
        if key.startswith("checkpoints/") and key.endswith(".bin"):
            self.puts += 1
            if self.puts > 2:
                with self._writing(key):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().put(key, data)


@pytest.fixture
def split(fresh_project: Path) -> Iterator[Path]:
    """The splits of the project, as split_data leaves them; yields their manifest."""
    manifest = write_splits(fresh_project)
    with as_a_step_of_its_own():
        yield manifest


def test_a_full_disk_ends_with_3_and_the_same_again_goes_on(
    split: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from components.train_distributed import job, step

    project, training = split.parent, split.with_name("training.json")
    store = FolderStore(project / ".evertrain" / "store")
    metrics = Metrics(split.with_name("metrics.json"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    def train() -> None:
        step.run(str(project), "", [], "k", str(split), str(training), metrics)

    with monkeypatch.context() as full:
        full.setattr(job, "project_store", lambda opened, uri: FullFor(store.root))
        with pytest.raises(SystemExit) as ended:
            train()
    assert ended.value.code == 3
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "no space left for checkpoints/k/" in said
    assert "hint: free some space and run the same command again" in said
    key = f"runs/{RUN}/train_distributed.json"
    record = StepRecord.model_validate_json(store.get(key))
    assert (record.status, record.exit_code) == ("failed", 3)
    assert not training.exists()

    train()
    record = StepRecord.model_validate_json(store.get(key))
    assert record.status == "done"
    assert record.figures["resumed_from"] > 0, "it goes on from the second checkpoint"
    assert training.exists()
