"""What the steps of the data see of the label of each kind, and what they say of a bad one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kind_rows import KINDS, LABELS, tables, two_months, words

from components.common.labels import Label
from components.common.targets import lost_labels, lost_words
from tests.small_kinds.make_kind import month
from training_core.errors import ConfigurationError, StoppedByGate


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_shown_as_what_it_is(tmp_path: Path, kind: str) -> None:
    rows = month(1, kind)
    with tables(rows, kind, tmp_path) as made:
        seen = made.judged()
    if kind == "sequence":
        assert (seen["word"] == rows["word"]).all()
        assert (seen["word: tokens"] == rows["word"].str.len() - 1).all()
    elif kind == "multiclass":
        assert (seen["label"] == rows["label"]).all()
    else:
        names = list(LABELS[kind].columns)
        np.testing.assert_allclose(seen[names], rows[names], rtol=1e-6)


def test_a_class_is_shown_by_its_name_whatever_the_rows_say_for_it(tmp_path: Path) -> None:
    rows = month(1, "multiclass")
    codes = rows["label"].map({"low": 7.0, "middle": 8.0, "high": np.nan})

    def target(frame: pd.DataFrame) -> Any:
        return frame["label"].map({7.0: 0, 8.0: 1}).fillna(-1).to_numpy(np.int64)

    with tables(rows.assign(label=codes), "multiclass", tmp_path, target=target) as made:
        seen = made.judged()["label"]
    assert seen.isna().equals(codes.isna())
    assert set(seen.dropna()) == {"low", "middle"}


BAD: dict[str, tuple[str, Any, str]] = {
    "multiclass": ("label", "medium", "is no class of the task"),
    "multilabel": ("second", "maybe", "is no yes or no"),
    "regression": ("label", "n/a", "is no number"),
    "sequence": ("word", "", "is no sequence of a token or more"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_that_is_no_label_is_left_out_and_named(tmp_path: Path, kind: str) -> None:
    column, bad, said = BAD[kind]
    rows = two_months(kind)
    written = rows[column].astype(str).astype(object)
    written[:59] = bad
    written[59] = None
    with tables(rows.assign(**{column: written}), kind, tmp_path) as made:
        division = made.divide()
        assert division.unlabelled == 60
        (lost,) = division.lost
        assert (lost.column, lost.value) == (column, bad)
        assert lost.share == pytest.approx(59 / len(rows))
        words = lost_words(division.lost, made.label)
    assert words == f"{bad!r} in {column!r} (5.00% of the rows) {said}"


@pytest.mark.parametrize("kind", KINDS)
def test_where_no_value_is_a_label_the_run_stops_and_shows_them(tmp_path: Path, kind: str) -> None:
    column, bad, said = BAD[kind]
    rows = month(1, kind).assign(**{column: bad})
    with tables(rows, kind, tmp_path) as made, pytest.raises(StoppedByGate) as stopped:
        made.divide()
    assert f"none of the {len(rows)} rows has a label" in stopped.value.what
    assert f"{bad!r} in {column!r} (100.00% of the rows) {said}" in stopped.value.what
    assert f"{made.label.owner}.target" in stopped.value.hint


def test_numbers_that_are_not_finite_are_no_labels(tmp_path: Path) -> None:
    rows = two_months("regression")
    rows.loc[:9, "label"] = [np.nan] * 5 + [np.inf] * 3 + [-np.inf] * 2
    with tables(rows, "regression", tmp_path) as made:
        division = made.divide()
        shown = made.judged()["label"]
    assert division.unlabelled == 10
    assert {lost.value for lost in division.lost} == {np.inf, -np.inf}
    assert shown.isna().sum() == 10


def test_a_long_value_is_cut_where_it_is_named(tmp_path: Path) -> None:
    rows = two_months("multiclass")
    rows.loc[0, "label"] = "x" * 100_000
    with tables(rows, "multiclass", tmp_path) as made:
        assert len(lost_words(made.divide().lost, made.label)) < 200


def test_a_row_of_several_labels_needs_them_all(tmp_path: Path) -> None:
    rows = two_months("multilabel")
    rows.loc[:4, "second"] = np.nan
    with tables(rows, "multilabel", tmp_path) as made:
        assert made.divide().unlabelled == 5
        assert lost_labels(made.connection, "kept", made.label) == []


def test_a_label_that_lacks_a_column_is_named(tmp_path: Path) -> None:
    rows = month(1, "multilabel").drop(columns="second")
    with (
        tables(rows, "multilabel", tmp_path) as made,
        pytest.raises(StoppedByGate, match="lacks the label column 'second'"),
    ):
        made.divide()


def test_lists_of_tokens_are_sequences_too(tmp_path: Path) -> None:
    rows = pd.DataFrame({"id": range(4), "tags": [[1, 2, 3], [], None, [4]]})

    def target(frame: pd.DataFrame) -> Any:
        found = np.full((len(frame), 5), -100)
        for row, tags in enumerate(frame["tags"]):
            if tags is not None:
                found[row, : len(tags)] = tags
        return found

    settings = LABELS["sequence"]
    assert settings.is_input
    with tables(rows, "sequence", tmp_path, columns=("tags",), target=target) as made:
        seen = made.judged()["tags: tokens"]
    assert seen.fillna(0).tolist() == [3, 0, 0, 1]


def test_many_different_sequences_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    rows = pd.DataFrame({"id": range(5_000), "word": [f"{i:05}abc" for i in range(5_000)]})
    asked = []

    def target(frame: pd.DataFrame) -> Any:
        asked.append(len(frame))
        return np.tile([1, 2, -100], (len(frame), 1))

    with tables(rows, "sequence", tmp_path, target=target) as made:
        assert (made.judged()["word: tokens"] == 2).all()
    assert sum(asked) == 5_000
    assert max(asked) <= 2_048  # DuckDB's vectors


def broken(_: pd.DataFrame) -> Any:
    raise KeyError("other")


WRONG: dict[str, tuple[str, Any, str]] = {
    "raises": ("regression", broken, "raised KeyError: 'other'"),
    "too few": ("regression", lambda f: np.zeros(3), r"float64 of shape \[3\]"),
    "two dimensions": ("regression", lambda f: np.zeros((len(f), 1)), r"of shape \[\d+, 1\]"),
    "texts": ("regression", lambda f: np.array(["1.5"] * len(f)), "returned <U3"),
    "no whole numbers": ("multiclass", lambda f: np.zeros(len(f)), "returned float64"),
    "one dimension": ("sequence", lambda f: np.zeros(len(f), np.int64), r"of shape \[\d+\]"),
    "one label of two": ("multilabel", lambda f: np.zeros((len(f), 1)), r"of shape \[\d+, 1\]"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_target_that_is_none_of_its_kind_ends_with_what_it_should_be(
    tmp_path: Path, name: str
) -> None:
    kind, target, said = WRONG[name]
    with (
        tables(month(1, kind), kind, tmp_path, target=target) as made,
        pytest.raises(ConfigurationError, match=said) as refused,
    ):
        made.judged()
    assert refused.value.what.startswith(f"{made.label.owner}.target, asked for ")
    assert refused.value.hint


def test_a_label_of_a_task_knows_its_columns_and_its_classes() -> None:
    assert LABELS["multiclass"].classes == ("low", "middle", "high")
    assert LABELS["multilabel"].columns == ("label", "second")
    assert LABELS["sequence"].shown == ("word: tokens",)
    assert LABELS["sequence"].beside == {"word: tokens"}  # the word itself is an input
    assert Label("sequence", ("tags",), broken).beside == {"tags: tokens", "tags"}
    assert words(3) == ["abc"]
