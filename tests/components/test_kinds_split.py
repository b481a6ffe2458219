"""Parts of each kind of task: what they must have, and what is told of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kind_rows import KINDS, SETTINGS, Tables, tables, two_months
from profile_rows import settings_of

from components.common.data_figures import Proof
from components.common.rows import PARTS
from components.common.settings import ProjectSettings
from components.common.tables import add_view
from components.split_data.parts import write_parts
from components.split_data.proof import prove_apart
from components.split_data.sides import seen_by_training
from training_core.errors import StoppedByGate


def split(**changes: object) -> ProjectSettings:
    asked = {"by": "hash", "holdout": 0.2, "validation": 0.2} | changes
    return SETTINGS.model_validate(SETTINGS.model_dump() | {"split": asked})


def proved(made: Tables, folder: Path) -> list[Proof]:
    division = made.divide()
    files = write_parts(made.connection, division, settings=made.settings, folder=folder)
    for name, file in files.items():
        add_view(made.connection, name, [file])
    return prove_apart(
        made.connection, settings=made.settings, parts=division.parts, label=made.label
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_labels_of_each_part_are_told(tmp_path: Path, kind: str) -> None:
    rows = two_months(kind)
    with tables(rows, kind, tmp_path, split()) as made:
        parts = made.divide().parts
        holdout = made.connection.execute(
            'SELECT * EXCLUDE ("evertrain side") FROM sided '
            "WHERE \"evertrain side\" = 'holdout'"
        ).to_arrow_table().to_pandas()  # fmt: skip
    assert parts["holdout"].positive_rate is None
    told = parts["holdout"].labels
    if kind == "multiclass":
        expected = holdout["label"].value_counts(normalize=True).to_dict()
    elif kind == "multilabel":
        expected = {name: holdout[name].mean() for name in ("label", "second")}
    elif kind == "regression":
        expected = {"mean": holdout["label"].mean()}
    else:
        expected = {"tokens": (holdout["word"].str.len() - 1).mean()}
    assert told == pytest.approx(expected)


def rare(rows: int, *, in_train: bool = True) -> pd.DataFrame:
    """Rows of three classes, with so many of "high", all in train by time (or all elsewhere)."""
    found = two_months("multiclass")
    found["label"] = np.where(found["label"] == "high", "middle", found["label"])
    place = found.index[:rows] if in_train else found.index[-rows:]
    found.loc[place, "label"] = "high"
    return found


BY_TIME = split(by="time", holdout=7, validation=7)


def test_a_rare_class_may_be_missing_behind_train_and_is_named(tmp_path: Path) -> None:
    with tables(rare(19), "multiclass", tmp_path, BY_TIME) as made:
        division = made.divide()
    assert division.rare == [
        "validation has no row of 'high' (19 rows in all)",
        "holdout has no row of 'high' (19 rows in all)",
    ]


def test_a_class_that_is_not_rare_stops_the_run_where_a_part_lacks_it(tmp_path: Path) -> None:
    with (
        tables(rare(20), "multiclass", tmp_path, BY_TIME) as made,
        pytest.raises(StoppedByGate) as stopped,
    ):
        made.divide()
    assert "the validation part has no row of the class 'high' (20 rows in all)" in (
        stopped.value.what
    )
    assert "fewer than 20 rows (split.rare_class)" in stopped.value.hint


def test_train_needs_every_class_however_rare(tmp_path: Path) -> None:
    with (
        tables(rare(3, in_train=False), "multiclass", tmp_path, BY_TIME) as made,
        pytest.raises(StoppedByGate, match="the train part has no row of the class 'high'") as no,
    ):
        made.divide()
    assert "what is never shown is never learned" in no.value.hint


def test_a_class_that_no_row_has_stops_the_run_and_its_other_spelling_is_shown(
    tmp_path: Path,
) -> None:
    rows = two_months("multiclass")
    with (
        tables(rows[rows["label"] != "high"], "multiclass", tmp_path / "gone", split()) as made,
        pytest.raises(StoppedByGate, match=r"'high' \(0 rows in all\)") as gone,
    ):
        made.divide()
    assert gone.value.hint.startswith("ask where its rows went, or take it out of SmallMulticlass.")
    rows["label"] = rows["label"].replace("high", "HIGH")
    with (
        tables(rows, "multiclass", tmp_path / "other", split()) as made,
        pytest.raises(StoppedByGate, match=r"'high' \(0 rows in all\)") as other,
    ):
        made.divide()
    assert "is it written otherwise? 'HIGH' in 'label' (" in other.value.hint


def test_each_label_of_several_needs_its_yes_and_its_no(tmp_path: Path) -> None:
    rows = two_months("multilabel").assign(second=0.0)
    with (
        tables(rows, "multilabel", tmp_path, split()) as made,
        pytest.raises(StoppedByGate, match="no row of the answer 'second yes'") as stopped,
    ):
        made.divide()
    assert "SmallMultilabel.labels" in stopped.value.hint


def test_numbers_and_sequences_may_be_equal_but_there_must_be_numbers_to_learn(
    tmp_path: Path,
) -> None:
    rows = two_months("regression")
    later = rows["when"] >= rows["when"].max() - pd.Timedelta(days=10)
    rows.loc[later, "label"] = 0.0
    with tables(rows, "regression", tmp_path / "holdout", BY_TIME) as made:
        assert made.divide().parts["holdout"].labels == {"mean": 0.0}
    with (
        tables(rows.assign(label=3.5), "regression", tmp_path / "train", BY_TIME) as made,
        pytest.raises(StoppedByGate, match=r"all labels of the train part are 3\.5"),
    ):
        made.divide()
    same = two_months("sequence").assign(word="abc")
    with tables(same, "sequence", tmp_path / "words", split()) as made:
        assert made.divide().parts["holdout"].labels == {"tokens": 2.0}


def test_stratified_parts_have_their_share_of_each_class(tmp_path: Path) -> None:
    with tables(two_months("multiclass"), "multiclass", tmp_path, split(by="stratified")) as made:
        claims = [p for p in proved(made, tmp_path) if "of each class" in p.claim]
    assert len(claims) == 2
    for name in ("low", "middle", "high"):
        assert f"of class {name}" in claims[0].answer


def test_rows_of_one_text_are_near_duplicates_though_the_text_is_the_label(
    tmp_path: Path,
) -> None:
    with tables(two_months("sequence"), "sequence", tmp_path, split()) as made:
        *_, proof, _ = proved(made, tmp_path)
    assert (
        proof.claim
        == "rows of validation and of holdout that a row of train equals but for "
        + ("key and time")
    )
    later = {name: pd.read_parquet(tmp_path / f"{name}.parquet")["word"] for name in PARTS}
    known = [later[name].isin(later["train"]).sum() for name in PARTS[1:]]
    assert [int(share.split()[0]) for share in proof.answer.split(" and ")] == known


def test_how_rare_a_class_may_be_moves_no_row(tmp_path: Path) -> None:
    rules = []
    for number in (5, 50):
        settings = split(rare_class=number)
        with tables(two_months("multiclass"), "multiclass", tmp_path, settings) as made:
            rules.append(seen_by_training(made.divide().parts, settings))
    assert rules[0] == rules[1]
    assert set(PARTS) == {"train", "validation", "holdout"}
    assert settings_of().split.rare_class == 20
