"""Doubts and drift of each kind of label: what is looked for, and what is said not to be."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kind_rows import INPUTS, KINDS, SETTINGS, Tables, tables, two_months
from sklearn.metrics import roc_auc_score

from components.common.data_figures import ColumnDrift, Finding
from components.common.settings import ProjectSettings
from components.common.targets import add_label_views
from components.validate_data.class_leaks import ranked_alone
from components.validate_data.drawn import draw
from components.validate_data.drift import drift_from
from components.validate_data.not_run import NOT_OF_KIND
from components.validate_data.profile import Profile
from components.validate_data.subject import look_at
from tests.small_kinds.make_kind import month

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Change = Callable[[pd.DataFrame], pd.DataFrame]
WITH_LEAKS = ("multiclass", "multilabel", "regression")


def alone(made: Tables, name: str) -> float:
    """How well a column alone ranks the labels."""
    view = add_label_views(made.connection, made.label)
    drawn = draw(made.connection, view, data=made.settings.data, label=made.label)
    subject = look_at(
        made.connection, drawn, made.profile(), settings=made.settings, label=made.label,
        features=INPUTS[made.label.kind], now=NOW,
    )  # fmt: skip
    return ranked_alone(subject, name)[0]


def leaks(findings: list[Finding]) -> dict[str, Finding]:
    return {f.column: f for f in findings if f.check == "leak"}


@pytest.mark.parametrize("kind", KINDS)
def test_honest_rows_are_not_doubted(tmp_path: Path, kind: str) -> None:
    with tables(two_months(kind), kind, tmp_path) as made:
        assert [f for f in made.findings() if f.check != "near_duplicates"] == []


@pytest.mark.parametrize("kind", WITH_LEAKS)
def test_a_column_that_knows_the_label_is_found(tmp_path: Path, kind: str) -> None:
    rows = two_months(kind)
    name = "second" if kind == "multilabel" else "label"
    codes = {"low": 7.0, "middle": -3.0, "high": 5.0}  # in no order
    rows["copy"] = rows[name].map(codes) if kind == "multiclass" else -rows[name]
    rows["text"] = pd.cut(rows[name], 40).astype(str) if kind == "regression" else (
        rows[name].astype(str) + "!"
    )  # fmt: skip
    with tables(rows, kind, tmp_path) as made:
        found = leaks(made.findings(*INPUTS[kind], "copy", "text"))
    assert set(found) == {"copy", "text"}
    assert found["copy"].measured == pytest.approx(1.0, abs=1e-3)
    assert {f.level for f in found.values()} == {"block"}
    assert f"'{name}'" in found["copy"].message or kind != "multilabel"


def test_how_well_a_number_ranks_numbers_is_the_share_of_pairs_in_order(tmp_path: Path) -> None:
    rows = two_months("regression")
    rows["number"] = rows["number"].round(1)  # ties
    with tables(rows, "regression", tmp_path) as made:
        measured = alone(made, "number")
    truth, score = rows["label"].to_numpy(), rows["number"].to_numpy()
    above = truth[:, None] > truth[None, :]
    further = score[:, None] - score[None, :]
    right = (further > 0)[above].sum() + (further == 0)[above].sum() / 2
    assert measured == pytest.approx(right / above.sum(), abs=1e-9)


def test_a_number_that_knows_numbers_but_not_by_its_order_is_found(tmp_path: Path) -> None:
    rows = two_months("regression")
    place = (rows["label"] * 10).round().astype(int)
    rows["shuffled"] = place.map({p: (p * 37) % 101 for p in place.unique()})
    with tables(rows, "regression", tmp_path) as made:
        assert alone(made, "shuffled") > 0.95


def test_how_well_a_category_tells_classes_is_the_mean_of_their_areas(tmp_path: Path) -> None:
    rows = pd.concat([two_months("multiclass")] * 20, ignore_index=True)
    rows["id"] = range(len(rows))
    rows["fifth"] = pd.qcut(rows["number"], 5).astype(str)
    with tables(rows, "multiclass", tmp_path) as made:
        measured = alone(made, "fifth")
    rates = pd.crosstab(rows["fifth"], rows["label"], normalize="index")
    areas = [roc_auc_score(rows["label"] == name, rows["fifth"].map(rates[name])) for name in rates]
    assert measured == pytest.approx(np.mean(areas), abs=0.01)  # one half judges, 11,800 rows


def test_chance_is_no_knowledge_whatever_the_kind(tmp_path: Path) -> None:
    for kind in WITH_LEAKS:
        rows = two_months(kind)
        rows["chance"] = np.random.default_rng(0).integers(0, 50, len(rows))
        with tables(rows, kind, tmp_path / kind) as made:
            assert 0.4 < alone(made, "chance") < 0.6


def test_a_text_of_its_own_in_each_row_is_no_leak_and_no_id_where_it_is_what_is_learned(
    tmp_path: Path,
) -> None:
    rows = two_months("sequence")
    digits = str.maketrans("01234", "abcde")
    rows["word"] = [np.base_repr(i, 5).translate(digits) for i in rows["id"]]
    assert rows["word"].is_unique
    with tables(rows, "sequence", tmp_path) as made:
        assert [f for f in made.findings() if f.check in ("leak", "id_feature")] == []


def test_twins_of_another_class_contradict_each_other(tmp_path: Path) -> None:
    rows = two_months("multiclass")
    twins = rows.head(100).assign(id=lambda r: r["id"] + 10_000_000, label="low")
    with tables(pd.concat([rows, twins]), "multiclass", tmp_path) as made:
        (found,) = (f for f in made.findings() if f.check == "near_duplicates")
    wrong = 2 * (rows["label"].head(100) != "low").sum()
    assert f"{wrong} of them have a twin with another label" in found.message


def past_and_next(kind: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Three months, and the one after them."""
    past = pd.concat([month(n, kind) for n in (1, 2, 3)], ignore_index=True)
    return past, month(4, kind)


def drifted(
    before: pd.DataFrame,
    now: pd.DataFrame,
    kind: str,
    folder: Path,
    *,
    settings: ProjectSettings = SETTINGS,
) -> tuple[dict[str, ColumnDrift], list[Finding], Profile]:
    with tables(before, kind, folder / "before") as made:
        old = made.profile()
    with tables(now, kind, folder / "now") as made:
        new = made.profile(edges=old)
    drift, findings = drift_from(new, old, settings=settings)
    assert drift.label_kind == kind
    return {c.column: c for c in drift.columns}, findings, new


@pytest.mark.parametrize("kind", KINDS)
def test_a_month_like_those_before_is_no_shift(tmp_path: Path, kind: str) -> None:
    past, following = past_and_next(kind)
    columns, findings, profile = drifted(past, following, kind, tmp_path)
    assert findings == []
    assert profile.label_mean is None
    shown = {"sequence": {"word: tokens"}, "multilabel": {"label", "second"}}
    for name in shown.get(kind, {"label"}):
        assert columns[name].level == "steady"
        assert columns[name].threshold is not None


def one_class_more(rows: pd.DataFrame) -> pd.DataFrame:
    """Most rows are of the class that was the rarest."""
    usual, *_, rarest = month(1, "multiclass")["label"].value_counts().index
    return rows.assign(label=rows["label"].replace(usual, rarest))


MOVED: dict[str, tuple[str, Change, str]] = {
    "multiclass": ("label", one_class_more, "the label's most frequent class was "),
    "multilabel": (
        "second", lambda r: r.assign(second=1 - r["second"]), "the label second's mean was 0.3",
    ),
    "regression": (
        "label", lambda r: r.assign(label=1000 * r["label"] + 1), "the label's mean was",
    ),
    "sequence": (
        "word: tokens",
        lambda r: r.assign(word=r["word"].str[:3]),
        "the label's mean number of tokens was 7.046 and is 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_label_that_moved_is_found_and_said_in_the_words_of_its_kind(
    tmp_path: Path, kind: str
) -> None:
    name, change, said = MOVED[kind]
    past, following = past_and_next(kind)
    _, findings, _ = drifted(past, change(following), kind, tmp_path)
    (found,) = (f for f in findings if f.check == "label_shift")
    assert (found.column, found.level) == (name, "block")
    assert said in found.message


def test_the_level_of_label_shift_holds_for_every_column_of_the_label(tmp_path: Path) -> None:
    name, change, _ = MOVED["multilabel"]
    past, following = past_and_next("multilabel")
    validation = SETTINGS.validation.model_copy(update={"levels": {"label_shift": "warn"}})
    settings = SETTINGS.model_copy(update={"validation": validation})
    columns, findings, _ = drifted(
        past, change(following), "multilabel", tmp_path, settings=settings
    )
    assert columns[name].level == "warn"
    assert {f.level for f in findings if f.check == "label_shift"} == {"warn"}


def test_labels_that_are_not_there_yet_are_no_shift(tmp_path: Path) -> None:
    for kind in KINDS:
        past, following = past_and_next(kind)
        columns = {"sequence": ["word"], "multilabel": ["label", "second"]}.get(kind, ["label"])
        for column in columns:
            following[column] = following[column].where(following.index < 300)
        if kind == "sequence":
            following["word"] = following["word"].fillna("")
        _, findings, _ = drifted(past, following, kind, tmp_path / kind)
        assert [f for f in findings if f.check == "label_shift"] == []


def test_each_kind_names_the_checks_that_there_are_none_of() -> None:
    assert NOT_OF_KIND["binary"] == ()
    for kind in KINDS:
        assert {"label_relation", "label_noise"} <= set(NOT_OF_KIND[kind])
        assert ("leak" in NOT_OF_KIND[kind]) == (kind not in WITH_LEAKS)
