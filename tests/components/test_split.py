"""split_data: sides that stay, time that is proved, overlaps that stop."""

from __future__ import annotations

import hashlib
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from split_samples import LABEL, PARTS, SHARES, by, divided, prove, settings_of, split

from components.common.targets import lost_labels
from components.split_data.sides import seen_by_training
from tests.small_project.make_data import month
from training_core.errors import StoppedByGate


@pytest.fixture
def project(fresh_project: Path) -> Path:
    return fresh_project


@pytest.mark.parametrize("rule", ["hash", "stratified", "group, group: [kind, number]"])
def test_by_any_hash_a_row_keeps_its_side_when_rows_are_added(
    project: Path, tmp_path: Path, rule: str
) -> None:
    settings, before = by(project, rule), month(1)
    after = pd.concat([month(2), before, month(3)], ignore_index=True).sample(frac=1)
    sides = divided(before, settings, tmp_path / "before").sides()
    later = divided(after, settings, tmp_path / "after").sides()
    assert len(sides) == len(before)
    assert {key: later[key] for key in sides} == sides
    shares = pd.Series(list(later.values())).value_counts(normalize=True)
    assert shares["holdout"] == pytest.approx(0.2, abs=0.03)  # 4,500 rows: 5 standard errors
    assert shares["validation"] == pytest.approx(0.1, abs=0.025)


def test_a_side_is_what_md5_says_and_can_be_computed_anywhere(
    project: Path, tmp_path: Path
) -> None:
    def side(key: int) -> str:
        place = int(hashlib.md5(f"{len(str(key))}:{key}".encode()).hexdigest()[:13], 16) / 16**13
        return "holdout" if place < 0.2 else "validation" if place < 0.3 else "train"

    sides = divided(month(1), by(project, "hash"), tmp_path / "split").sides()
    assert sides == {key: side(int(key)) for key in month(1)["id"]}


def test_the_type_in_which_a_key_is_stored_moves_no_row(project: Path, tmp_path: Path) -> None:
    settings = by(project, "hash")
    sides = [
        divided(month(1).astype({"id": type_name}), settings, tmp_path / type_name).sides()
        for type_name in ("int64", "int32", "float64", "str")
    ]
    assert [{int(k): side for k, side in each.items()} for each in sides] == [sides[0]] * 4


def test_rows_of_a_group_stay_together_and_the_proof_says_so(project: Path, tmp_path: Path) -> None:
    rows = month(1).assign(user=lambda frame: frame["id"] % 200)
    rows.loc[:20, "user"] = np.nan
    settings = by(project, "group, group: [user]")
    with split(rows, settings, tmp_path / "split") as made:
        proof = prove(made, settings)
        users = {name: set(frame["user"].fillna(-1)) for name, frame in made.frames.items()}
    assert sum(map(len, users.values())) == 201
    assert [p.claim for p in proof[3:6]] == [
        "no group of train is in validation (by user)",
        "no group of train is in holdout (by user)",
        "no group of validation is in holdout (by user)",
    ]


def test_a_group_in_two_parts_stops_the_run_and_is_named(project: Path, tmp_path: Path) -> None:
    rows = month(1).assign(user=lambda frame: frame["id"] % 200)
    settings = by(project, "group, group: [user]")
    with split(rows, settings, tmp_path / "split") as made:
        stray = made.frames["train"].head(1).assign(id=7)
        pd.concat([made.frames["holdout"], stray]).to_parquet(made.files["holdout"], index=False)
        with pytest.raises(StoppedByGate, match="1 rows of holdout are of groups that") as stopped:
            prove(made, settings)
    assert f"user {stray['user'].iloc[0]}" in stopped.value.what


def test_stratified_parts_have_their_share_of_a_rare_class_too(
    project: Path, tmp_path: Path
) -> None:
    rows = pd.concat([month(n) for n in range(1, 5)], ignore_index=True)
    rows["bought"] = (rows["number"] > 1.6).astype(float)
    settings = by(project, "stratified")
    with split(rows, settings, tmp_path / "split") as made:
        proof = {p.claim: p for p in prove(made, settings)}
        frames = made.frames
    rare = sum(frame["bought"].sum() for frame in frames.values())
    of_rare = proof["holdout has 20% of each class, but for chance"].answer
    assert f"{frames['holdout']['bought'].sum() / rare:.2%} of class 1" in of_rare


def test_stratified_by_a_key_that_is_no_key_stops_the_run(project: Path, tmp_path: Path) -> None:
    changes = [f"split={{by: stratified, {SHARES}}}", "data.row_key=[kind2]"]
    settings = settings_of(project, *changes)
    rows = month(1).assign(kind2=lambda frame: frame["id"] % 20)
    with (
        split(rows, settings, tmp_path / "split") as made,
        pytest.raises(StoppedByGate, match="further off than chance"),
    ):
        prove(made, settings)


def test_by_time_whole_days_follow_one_another(project: Path, tmp_path: Path) -> None:
    settings = settings_of(project)
    with split(month(1), settings, tmp_path / "split") as made:
        proof = prove(made, settings)
        days = {name: frame["when"].dt.day for name, frame in made.frames.items()}
    assert (days["train"].min(), days["train"].max()) == (1, 17)
    assert (days["validation"].min(), days["validation"].max()) == (18, 24)
    assert (days["holdout"].min(), days["holdout"].max()) == (25, 31)
    in_order = {p.claim: p.answer for p in proof}
    claim = "train ends before holdout begins (2025-01-17 23:31 UTC)"
    assert in_order[claim] == "2025-01-17 23:31:00 UTC, then 2025-01-25 00:00:00 UTC"


def test_each_proof_is_a_query_that_can_be_asked_again(project: Path, tmp_path: Path) -> None:
    settings = settings_of(project)
    with split(month(1), settings, tmp_path / "split") as made:
        proof, files = prove(made, settings), made.files
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, path in files.items():
        connection.execute(f"CREATE VIEW {name} AS FROM '{path}'")
    answers = [str(connection.execute(p.query).fetchone()) for p in proof]
    assert len(answers) == 8
    assert answers[:3] == ["(0,)"] * 3
    assert all(answer.startswith("(True, ") for answer in answers[3:6])


def test_near_duplicates_across_parts_are_counted_and_stop_nothing(
    project: Path, tmp_path: Path
) -> None:
    settings = settings_of(project)
    rows = month(1)
    copies = rows.head(30).assign(id=lambda f: f["id"] + 77_000_000, when=rows["when"].max())
    copies["kind"] = " " + copies["kind"].str.upper()
    copies["number"] *= 1 + 1e-9
    with split(pd.concat([rows, copies]), settings, tmp_path / "split") as made:
        *_, of_train, of_validation = prove(made, settings)
    assert of_train.answer == "0 (0.00%) and 30 (7.89%)"
    assert of_train.claim.startswith("rows of validation and of holdout that a row of train equals")
    assert of_validation.answer == "0 (0.00%)"


def test_parts_that_are_not_in_order_of_time_stop_the_run(project: Path, tmp_path: Path) -> None:
    settings = settings_of(project)
    with split(month(1), settings, tmp_path / "split") as made:
        made.files["train"], made.files["holdout"] = made.files["holdout"], made.files["train"]
        with pytest.raises(StoppedByGate, match="after validation begins"):
            prove(made, settings)


def test_a_row_in_two_parts_stops_the_run_and_is_named(project: Path, tmp_path: Path) -> None:
    settings = by(project, "hash")
    with split(month(1), settings, tmp_path / "split") as made:
        stray = made.frames["train"].head(1)
        pd.concat([made.frames["holdout"], stray]).to_parquet(made.files["holdout"], index=False)
        with pytest.raises(StoppedByGate, match="1 rows are in train and in holdout") as stopped:
            prove(made, settings)
    assert str(stray["id"].iloc[0]) in stopped.value.what


def test_too_few_days_stop_the_run(project: Path, tmp_path: Path) -> None:
    with pytest.raises(StoppedByGate, match="the train part is empty"):
        divided(month(1).head(14 * 50), settings_of(project), tmp_path / "split")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bought": np.nan}, "none of the 1550 rows has a label in 'bought'"),
        ({"bought": 1.0}, "the train part has labels of one class only"),
        ({"when": "yesterday"}, "1550 rows have no readable time in 'when'"),
        ({"when": 5}, "the time column 'when' holds BIGINT, no times"),
    ],
)
def test_what_cannot_be_divided_stops_the_run(
    project: Path, tmp_path: Path, change: dict[str, object], words: str
) -> None:
    with pytest.raises(StoppedByGate, match=words):
        divided(month(1).assign(**change), settings_of(project), tmp_path / "split")


def test_rows_without_a_label_are_in_no_part(project: Path, tmp_path: Path) -> None:
    rows = month(1)
    rows.loc[rows.index % 3 == 0, "bought"] = np.nan
    made = divided(rows, settings_of(project), tmp_path / "split")
    assert made.division.unlabelled == 517
    assert sum(made.division.parts[name].rows for name in PARTS) == 1550 - 517
    assert not pd.concat(made.frames.values())["bought"].isna().any()


def test_values_of_the_label_that_are_no_target_are_named(project: Path, tmp_path: Path) -> None:
    rows = month(1)
    written = rows["bought"].astype(int).astype(str).mask(rows.index % 10 == 0, "perhaps")
    rows["bought"] = written.mask(rows.index % 10 == 1, None)
    with split(rows, settings_of(project), tmp_path / "split") as made:
        assert lost_labels(made.connection, "kept", LABEL) == [("bought", "perhaps", 0.1)]


def test_parts_are_read_as_the_snapshot_was_and_are_the_same_bytes_again(
    project: Path, tmp_path: Path
) -> None:
    rows = month(1).assign(small=np.int8(3), maybe=pd.array([1, None] * 775, dtype="Int64"))
    rows["yes"] = rows["number"] > 0
    settings = settings_of(project)
    first = divided(rows, settings, tmp_path / "first")
    again = divided(rows.sample(frac=1, random_state=0), settings, tmp_path / "again")
    for name in PARTS:
        assert first.files[name].read_bytes() == again.files[name].read_bytes()
    whole = pd.concat(first.frames.values(), ignore_index=True)
    expected = pd.read_parquet(tmp_path / "first" / "rows.parquet")
    pd.testing.assert_frame_equal(whole, expected.astype({"maybe": "float64"}))


def test_what_training_has_seen_ends_with_validation(project: Path, tmp_path: Path) -> None:
    by_time, by_hash = settings_of(project), by(project, "hash")
    parts = divided(month(1), by_time, tmp_path / "time").division.parts
    seen = seen_by_training(parts, by_time)
    assert seen == {"by": "time", "until": "2025-01-24T23:31:00+00:00"}
    changes: list[list[str]] = [
        [f"split={{by: hash, {SHARES}}}"],
        ["split={by: hash, holdout: 0.3, validation: 0.1}"],
        [f"split={{by: stratified, {SHARES}}}"],
        [f"split={{by: hash, {SHARES}}}", "data.row_key=[id, kind]"],
    ]
    rules = [seen_by_training(parts, settings_of(project, *each)) for each in changes]
    assert rules[0] == seen_by_training(parts, by_hash)
    assert len({rule["rule"] for rule in rules}) == 4
    assert {rule["by"] for rule in rules} == {"hash"}


@pytest.mark.parametrize("rule", ["time, holdout: 7, validation: 7", f"stratified, {SHARES}"])
def test_columns_may_have_any_name(project: Path, tmp_path: Path, rule: str) -> None:
    changes = [f"split={{by: {rule}}}", "data.time_column=value", "data.row_key=[target]"]
    settings = settings_of(project, *changes)
    rows = month(1).rename(columns={"when": "value", "id": "target", "kind": "part"})
    rows["select"], rows['a "b"'] = rows["number"], rows["noise"]
    with split(rows, settings, tmp_path / "split") as made:
        prove(made, settings)
        frames = made.frames
    assert sum(map(len, frames.values())) == len(rows)
    assert list(frames["train"]) == list(rows)
