"""Rows for `evertrain check` are those that a run would train and validate on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest
import torch
from torch import Tensor, nn

from components.common.project import Project, open_project
from infra.folder import FolderStore
from pipelines import check_rows
from pipelines.check_rows import newest, read_rows
from tests.small_project.command import make_project
from tests.small_project.data_steps import RUN, run_data_steps
from tests.small_project.make_data import file_of, month
from training_core import TabularPreprocessor
from training_core.errors import ConfigurationError, StoppedByGate
from training_core.task import MulticlassTask, MultilabelTask, SequenceTask, Task


def opened(folder: Path, *overrides: str) -> Project:
    return open_project(folder, overrides=list(overrides))


class _Rows:
    """What a task says of rows alone."""

    def preprocessor(self) -> TabularPreprocessor:
        return TabularPreprocessor(categories=["kind"], numbers=["number"])

    def build_model(self, preprocessor: object) -> nn.Module:
        return nn.Identity()


class Kinds(_Rows, MulticlassTask):
    label = "kind"
    classes: ClassVar = ["apple", "bread", "cheese"]  # a row of dates has no label


class Both(_Rows, MultilabelTask):
    label = "bought"
    labels: ClassVar = ["bought", "again"]


class Tokens(_Rows, SequenceTask):
    label = "tokens"

    def target(self, frame: pd.DataFrame) -> npt.NDArray[np.int64]:
        return np.stack([np.asarray(t, dtype=np.int64) for t in frame[self.label]])

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return torch.zeros(len(target))


def test_the_rows_are_of_the_parts_that_the_pipeline_makes(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "project", 1, 2)
    drop_labels(folder, 2, days=3)
    records = run_data_steps(folder, "checks.rows=600")
    project = opened(folder, "checks.rows=600")
    rows = read_rows(project, project.task())
    store = FolderStore(folder / ".evertrain" / "store")
    for part, frame in (("train", rows.train), ("validation", rows.validation)):
        parts = json.loads((folder / "artifacts" / "splits.json").read_text())["parts"]
        path = tmp_path / f"{part}.parquet"
        path.write_bytes(store.get(f"objects/{parts[part]['sha256']}"))
        theirs = pd.read_parquet(path)
        assert set(frame["id"]) <= set(theirs["id"])
        assert len(frame) == min(600, len(theirs))
        assert (frame.dtypes == theirs.dtypes).all()
        assert frame["when"].is_monotonic_increasing
    assert records["split_data"].run == RUN
    assert rows.planned == records["split_data"].figures["parts"]["train"]["rows"]
    assert (rows.read, rows.objects, rows.divided) == (2, 2, "by the project's split")
    again = read_rows(project, project.task())
    pd.testing.assert_frame_equal(rows.train, again.train)


def drop_labels(folder: Path, number: int, *, days: int) -> None:
    """The newest labels have not come yet."""
    rows = month(number)
    rows.loc[rows["when"] >= rows["when"].max() - pd.Timedelta(days=days), "bought"] = np.nan
    rows.to_parquet(file_of(folder / "data", number), index=False)


def test_broken_rows_are_put_aside_as_in_a_run(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "project", 1)
    rows = month(1)
    rows.loc[::10, "number"] = 99.0
    rows.to_parquet(file_of(folder / "data", 1), index=False)
    project = opened(folder)
    read = read_rows(project, project.task())
    assert max(read.train["number"].max(), read.validation["number"].max()) < 10


@pytest.mark.parametrize("kind", [Kinds, Both, Tokens])
def test_rows_of_every_kind_of_task_are_read_and_only_labelled_ones(
    tmp_path: Path, kind: type[Task]
) -> None:
    folder = make_project(tmp_path / "project", 1)
    rows = month(1)
    rows["again"] = np.where(np.arange(len(rows)) % 3 == 0, np.nan, rows["bought"])
    rows["tokens"] = [None if i % 4 == 0 else [i % 5, 1, 2] for i in range(len(rows))]
    rows.to_parquet(file_of(folder / "data", 1), index=False)
    read = read_rows(opened(folder), kind())
    for frame in (read.train, read.validation):
        assert len(frame) > 100
        assert "dates" not in set(frame["kind"]) or kind is not Kinds
        assert frame["again"].notna().all() or kind is not Both
        assert frame["tokens"].map(len).eq(3).all() if kind is Tokens else True
    assert [(each.column, each.value) for each in read.lost] == (
        [("kind", "dates")] if kind is Kinds else []  # of the others only nulls have no target
    )
    shares = [float((rows["kind"] == "dates").mean())] if kind is Kinds else []
    assert [each.share for each in read.lost] == pytest.approx(shares)


def test_where_the_split_leaves_a_part_empty_the_newest_rows_validate(tmp_path: Path) -> None:
    project = opened(make_project(tmp_path / "project", 1), "split.validation=40")
    read = read_rows(project, project.task())
    assert read.divided.startswith("the newest fifth")
    assert read.train["when"].max() <= read.validation["when"].min()
    assert len(read.train) == 410  # of the 512 of checks.rows
    assert len(read.validation) == 102


def test_no_label_at_all_and_no_data_at_all_are_said(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "project", 1)
    month(1).assign(bought=np.nan).to_parquet(file_of(folder / "data", 1), index=False)
    project = opened(folder)
    with pytest.raises(StoppedByGate, match="none of the 1550 rows that were read has a label"):
        read_rows(project, project.task())
    file_of(folder / "data", 1).unlink()
    with pytest.raises(StoppedByGate, match="there is nothing to read"):
        read_rows(project, project.task())
    with pytest.raises(ConfigurationError, match=r"data\.types"):
        read_rows(opened(folder, "data.types={number: NOTHING}"), project.task())


def test_the_newest_objects_are_read_within_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    listing = pa.table({"key": list("abcde"), "size": [10, 10, 10, 10, 60]})
    assert newest(listing) == (list("abcde"), 1.0)
    monkeypatch.setattr(check_rows, "MOST_BYTES", 85)
    assert newest(listing) == (list("cde"), 0.8)
    monkeypatch.setattr(check_rows, "MOST_BYTES", 5)
    assert newest(listing) == (["e"], 0.6)
    monkeypatch.setattr(check_rows, "MOST_OBJECTS", 2)
    monkeypatch.setattr(check_rows, "MOST_BYTES", 1000)
    assert newest(listing) == (list("de"), 0.7)
