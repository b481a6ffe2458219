"""Columns that know the label: found, named and measured; honest ones let through."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score
from trust_samples import FEATURES, only, rows, trust


def test_honest_columns_are_no_leaks(tmp_path: Path) -> None:
    assert trust(rows(), tmp_path) == []


def test_the_limit_decides_and_the_auc_is_exact(tmp_path: Path) -> None:
    data = rows()
    found = only(trust(data, tmp_path, leak_auc=0.7))
    assert (found.check, found.column, found.level) == ("leak", "number", "block")
    assert found.measured == pytest.approx(roc_auc_score(data["label"], data["number"]), abs=1e-9)
    assert found.limit == 0.7
    assert "'number' alone ranks the labels with an AUC of 0.7" in found.message


def test_a_sample_of_many_rows_is_as_good_to_a_thousandth(tmp_path: Path) -> None:
    data = rows(400_000, strength=5.0)
    data["label"] *= data.index % 4 == 0  # an eighth is positive: 350,000 negative rows
    truth = roc_auc_score(data["label"], data["number"])
    found = only(trust(data, tmp_path, leak_auc=0.7))
    assert found.measured == pytest.approx(truth, abs=2e-3)  # 3 standard errors of 6e-4


def test_columns_that_know_the_label_are_found_the_strongest_first(tmp_path: Path) -> None:
    data = rows()
    data["copy"] = -data["label"]
    data["text"] = np.where(data["label"] > 0, "paid", "left")
    data["almost"] = data["label"] + np.random.default_rng(1).normal(0, 0.4, len(data))
    features = (*FEATURES, "copy", "text", "almost")
    found = trust(data, tmp_path, features=features, levels={"near_duplicates": "off"})
    assert [f.column for f in found] == ["copy", "text", "almost"]
    assert [f.measured for f in found[:2]] == [1.0, 1.0]
    assert 0.955 < (found[2].measured or 0) < 0.97
    assert {f.level for f in found} == {"block"}


def test_a_leak_that_the_task_does_not_read_is_a_warning(tmp_path: Path) -> None:
    found = only(trust(rows().assign(paid=lambda data: data["label"] * 3), tmp_path))
    assert (found.level, found.column) == ("warn", "paid")
    assert found.message.endswith("; the task does not read it")


def test_a_number_that_knows_the_label_without_ranking_it_is_a_leak(tmp_path: Path) -> None:
    data = rows()
    far = np.random.default_rng(2).choice([-1.0, 1.0], len(data)) * (1 + data["noise"].abs())
    data["score"] = np.where(data["label"] > 0, far, data["noise"].clip(-1, 1))
    assert roc_auc_score(data["label"], data["score"]) == pytest.approx(0.5, abs=0.03)
    found = only(trust(data, tmp_path, features=(*FEATURES, "score")))
    assert (found.column, "64 quantiles" in found.message) == ("score", True)


def test_being_null_can_be_the_leak(tmp_path: Path) -> None:
    data = rows().assign(gate=lambda rows: rows["noise"].where(rows["label"] == 0))
    found = only(trust(data, tmp_path, features=(*FEATURES, "gate")))
    assert (found.column, found.measured) == ("gate", 1.0)
    assert "by being null or not" in found.message


def test_a_category_of_many_values_that_fix_the_label_is_found_in_all_rows(tmp_path: Path) -> None:
    """A sample of 200,000 rows has 5 of each user; the whole 300,000 have 60 of each."""
    data = rows(300_000)
    user = np.random.default_rng(3).integers(0, 5_000, len(data))
    data["user"] = [f"user {u}" for u in user]
    data["label"] = (user % 2).astype(float)
    found = trust(data, tmp_path, features=(*FEATURES, "user"))
    assert [(f.check, f.column, f.measured) for f in found] == [("leak", "user", 1.0)]


def test_a_key_that_is_text_is_no_leak(tmp_path: Path) -> None:
    """Each value is there once, so rates learned on half of the rows say nothing of the others."""
    data = rows().assign(name=lambda rows: "row " + rows["id"].astype(str))
    assert trust(data, tmp_path) == []


def test_rates_are_not_judged_by_the_rows_they_were_learned_from(tmp_path: Path) -> None:
    """Three rows a value: on those very rows their rates would rank the labels to 0.9."""
    town = np.random.default_rng(4).integers(0, 1_900, 6_000)
    data = rows().assign(town=[f"town {t}" for t in town])
    assert trust(data, tmp_path, features=(*FEATURES, "town"), leak_auc=0.8) == []


def test_ten_rows_that_know_the_label_by_luck_are_no_leak(tmp_path: Path) -> None:
    data = rows()
    few = data.index < 20
    data["rare"] = data["label"].where(few)
    assert trust(data, tmp_path, features=(*FEATURES, "rare")) == []


def test_labels_as_text_are_read_as_the_task_reads_them(tmp_path: Path) -> None:
    data = rows().assign(copy=lambda rows: rows["label"])
    data["label"] = data["label"].map({0.0: "0", 1.0: "1"}).where(data.index % 5 > 0, "unknown")
    assert only(trust(data, tmp_path, features=(*FEATURES, "copy"))).measured == 1.0


def test_a_check_that_is_off_says_nothing(tmp_path: Path) -> None:
    data = rows().assign(copy=lambda rows: rows["label"])
    features = (*FEATURES, "copy")
    assert trust(data, tmp_path, features=features, levels={"leak": "off"}) == []
    assert only(trust(data, tmp_path, features=features, levels={"leak": "warn"})).level == "warn"


def test_rows_without_labels_are_not_held_against_any_column(tmp_path: Path) -> None:
    data = rows()
    data["label"] = pd.Series(np.nan, index=data.index)
    assert trust(data, tmp_path) == []
