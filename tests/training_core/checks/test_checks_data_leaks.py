"""Rows that hold their own label, and held-back rows that train as good as knows, are found."""

from __future__ import annotations

from typing import Any

import check_data_samples as samples
import numpy as np
import pandas as pd
import pytest
import torch
from check_data_samples import Houses, Prices, look, table, using

from training_core.checks.contract import Finding
from training_core.checks.data import LabelIsNoInput, NoSharedRows
from training_core.checks.data.copies import copied
from training_core.checks.data.windows import overlapping
from training_core.checks.subject import Subject
from training_core.examples import Examples
from training_core.tabular import TabularPreprocessor
from training_core.task import Arrays

RANDOM = np.random.default_rng(0)


class _ByMeans(TabularPreprocessor):
    """A column's place is taken by the mean label of the train rows with its value."""

    label = "dear"
    rounded = 100.0
    out_of_fold = False

    def groups(self, frame: pd.DataFrame) -> Any:
        return (frame["distance"] // self.rounded).astype(int)

    def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
        super().fit(train)
        self.told = train[self.label].groupby(self.groups(train)).mean()
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        arrays = super().transform(frame)
        told = self.groups(frame).map(self.told).fillna(0.0)
        arrays["numbers"][:, 2] = np.asarray(told / max(1.0, float(self.told.abs().max())))
        return arrays


class _Price(_ByMeans):
    label = "price"


class _Large(_ByMeans):
    rounded = 10_000.0


@pytest.mark.parametrize(("kind", "task"), [(_ByMeans, Houses), (_Price, Prices)])
def test_a_column_encoded_by_the_rows_own_labels_is_found(
    kind: type[_ByMeans], task: type[Houses]
) -> None:
    finding = look(LabelIsNoInput, using(kind, task), table())
    assert finding.verdict == "fail"
    assert "'distance'" in finding.message
    assert "drawn at random" in finding.message
    assert "out of fold" in finding.advice


def test_means_of_labels_of_large_groups_are_no_leak() -> None:
    assert look(LabelIsNoInput, using(_Large), table()).verdict == "pass"


def test_groups_that_are_small_only_in_the_sample_are_a_warning() -> None:
    rows = table(800).assign(distance=np.random.default_rng(1).integers(0, 150, 800) * 100)
    plain = Subject(using(_ByMeans), rows, training=samples.TRAINING)
    sample = Subject(using(_ByMeans), rows, training=samples.TRAINING, planned_rows=100_000)
    verdicts = [LabelIsNoInput().look(subject).verdict for subject in (plain, sample)]
    assert verdicts == ["fail", "warn"]


# ---- what train as good as knows --------------------------------------------------------------


def _shared(rows: pd.DataFrame, validation: pd.DataFrame | None = None) -> Finding:
    subject = Subject(Houses(), rows, validation=validation, training=samples.TRAINING)
    return NoSharedRows().look(subject)


def _owned(times: int = 4) -> pd.DataFrame:
    one = table(100)
    one["owner"] = [f"owner {i}" for i in range(len(one))]
    random = np.random.default_rng(1)
    again = [one.assign(area=one["area"] + random.normal(0, 0.1, 100)) for _ in range(times)]
    return pd.concat(again, ignore_index=True)


def test_rows_of_one_owner_on_both_sides_are_a_warning_that_names_the_column() -> None:
    finding = _shared(_owned())
    assert finding.verdict == "warn"
    assert "'owner'" in finding.message
    assert "group [owner]" in finding.advice


def test_owners_divided_as_groups_and_owners_whose_houses_differ_are_none() -> None:
    rows = _owned()
    later = rows["owner"].isin({f"owner {i}" for i in range(20)})
    assert _shared(rows[~later], rows[later]).verdict == "pass"
    owner = [f"owner {i}" for i in RANDOM.integers(0, 100, 400)]
    assert _shared(table().assign(owner=owner)).verdict == "pass"
    taste = [f"{dear} {i % 40}" for i, dear in enumerate(table()["dear"])]
    assert _shared(table().assign(owner=taste)).verdict == "pass"


def _daily() -> pd.DataFrame:
    days = pd.date_range("2022-01-01", periods=400, freq="D", tz="UTC")
    dear = (np.sin(np.arange(400) / 20) > 0).astype("float64")
    return table().assign(day=days, dear=dear)


def test_days_between_days_of_train_are_a_warning_and_days_after_them_are_none() -> None:
    finding = _shared(_daily())
    assert finding.verdict == "warn"
    assert "'day'" in finding.message
    assert _shared(_daily().assign(day=lambda f: f["day"].astype(str))).verdict == "warn"
    assert _shared(_daily()[:300], _daily()[300:]).verdict == "pass"
    months = np.arange(400) // 25 % 4 == 1
    assert _shared(_daily()[~months], _daily()[months]).verdict == "pass"
    assert _shared(_daily().assign(dear=table()["dear"])).verdict == "pass"


def _windows(begins: np.ndarray) -> Examples:
    series = torch.from_numpy(np.random.default_rng(2).normal(size=(2, 3_000))).float()
    cut = torch.stack([series[:, b : b + 32] for b in begins])
    return Examples({"series": cut}, torch.zeros(len(begins)), None)


def test_windows_that_overlap_are_found_and_windows_side_by_side_are_not() -> None:
    begins = RANDOM.permutation(np.arange(0, 2_900, 6))
    found = overlapping(_windows(begins[100:]), _windows(begins[:100]))
    assert found is not None
    assert found.share > 0.9
    assert abs(found.lag) in (6, 12)
    apart = RANDOM.permutation(np.arange(0, 2_900, 32))
    assert overlapping(_windows(apart[20:]), _windows(apart[:20])) is None


def test_rows_of_a_table_that_share_columns_are_no_windows() -> None:
    customers = torch.randn(120, 24, generator=torch.Generator().manual_seed(0))
    rows = torch.cat([customers.repeat(4, 1), torch.randn(480, 4)], 1)
    train, held_back = (Examples({"numbers": r}, torch.zeros(240), None) for r in rows.split(240))
    assert overlapping(train, held_back) is None


def _texts(rows: np.ndarray) -> Examples:
    return Examples({"tokens": torch.from_numpy(rows)}, torch.zeros(len(rows)), None)


def test_texts_posted_again_are_copies_and_those_of_a_small_grammar_are_chance() -> None:
    posts = RANDOM.integers(0, 12, (500, 24))
    drawn = posts[np.concatenate([np.arange(500), RANDOM.integers(0, 500, 300)])]
    drawn = RANDOM.permutation(drawn)
    assert "copies" in copied(_texts(drawn[:600]), _texts(drawn[600:]))
    words, spoken = RANDOM.integers(0, 12, (3, 12, 8)), RANDOM.integers(0, 12, (800, 3))
    sentences = np.concatenate([words[place, spoken[:, place]] for place in range(3)], 1)
    assert not copied(_texts(sentences[:600]), _texts(sentences[600:]))
