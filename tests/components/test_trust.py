"""Columns, times and rows that cannot be trusted, each found and named; honest ones let through."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from trust_samples import FEATURES, only, rows, trust

from components.validate_data import drawn, near_duplicates


@pytest.mark.parametrize("value", [None, np.nan])
def test_a_column_without_any_value_blocks_if_it_is_a_feature(
    tmp_path: Path, value: object
) -> None:
    data = rows().assign(empty=pd.Series([value] * 6_000, dtype="float64"))
    assert only(trust(data, tmp_path)).level == "warn"
    found = only(trust(data, tmp_path, features=(*FEATURES, "empty")))
    assert (found.check, found.column, found.level) == ("missing_column", "empty", "block")
    assert "no value in any of 6000 rows" in found.message


@pytest.mark.parametrize("value", [3, 2.5, "same", True, pd.Timestamp("2025-01-01", tz="UTC")])
def test_a_column_of_one_value_is_named(tmp_path: Path, value: object) -> None:
    found = only(trust(rows().assign(stuck=value), tmp_path, features=(*FEATURES, "stuck")))
    assert (found.check, found.column, found.level) == ("constant_column", "stuck", "warn")


def test_one_value_beside_nulls_is_no_constant(tmp_path: Path) -> None:
    data = rows().assign(flag=lambda rows: np.where(rows["noise"] > 0, 1.0, np.nan))
    assert trust(data, tmp_path, features=(*FEATURES, "flag")) == []


SHUFFLED = np.random.default_rng(5).permutation(6_000)
IDS = {
    "a number handed out": SHUFFLED + 5_000_000,
    "one that nulls have made real": np.where(SHUFFLED < 9, np.nan, SHUFFLED + 70.0),
    "a random number": np.random.default_rng(6).integers(0, 2**62, 6_000),
    "a code": [f"{value * 7_919:08x}" for value in SHUFFLED],
    "a serial number with gaps": np.arange(6_000) * 1_000 + SHUFFLED % 900,
    "a time of its own": pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(6_000), unit="min"),
}


@pytest.mark.parametrize("name", IDS)
def test_ids_used_as_features_are_named(tmp_path: Path, name: str) -> None:
    found = trust(rows().assign(code=IDS[name]), tmp_path, features=(*FEATURES, "code"))
    (named,) = [f for f in found if f.check == "id_feature"]
    assert (named.column, named.level) == ("code", "warn")
    assert (named.measured or 0) > (named.limit or 1)
    assert trust(rows().assign(code=IDS[name]), tmp_path) == [], "it is no feature"


def test_the_row_key_as_a_feature_is_called_so(tmp_path: Path) -> None:
    found = only(trust(rows(), tmp_path, features=(*FEATURES, "id")))
    assert "'id' is the row's key" in found.message


DESCRIPTIONS = {
    "a price in cents": np.random.default_rng(7).integers(0, 100_000_000, 6_000),
    "prose": [f"a review that says {value} things" for value in SHUFFLED],
    "a category": SHUFFLED % 800,
    "a trend with noise": np.arange(6_000) / 6_000 + np.random.default_rng(8).normal(0, 0.1, 6_000),
}


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_what_describes_rows_is_no_id(tmp_path: Path, name: str) -> None:
    data = rows().assign(value=DESCRIPTIONS[name])
    assert trust(data, tmp_path, features=(*FEATURES, "value")) == []


def test_the_share_of_different_values_is_right_in_many_rows(tmp_path: Path) -> None:
    """DuckDB's own estimate is up to a fifth off: it would call half of such columns ids."""
    data = rows(200_000)
    data["twice"] = [f"{value // 2:x}" for value in range(200_000)]
    data["once"] = [f"{value:x}" for value in range(200_000)]
    features = (*FEATURES, "twice", "once")
    found = only(trust(data, tmp_path, features=features))
    assert (found.column, found.measured) == ("once", 1.0)


def test_rare_values_of_a_category_are_no_ids(tmp_path: Path) -> None:
    """Of 200,000 rows a tenth of the values is looked at: here some of those that are there once.

    A task may read a column twice, as a category and as a number: that is no second finding.
    """
    data = rows(200_000)
    data["hour"] = np.where(data.index < 40, data.index, 99)
    data["named"] = data["hour"].astype(str)
    assert trust(data, tmp_path, features=(*FEATURES, "hour", "named")) == []
    data["once"] = data.index
    only(trust(data, tmp_path, features=(*FEATURES, "once", "once")))


def test_rows_after_the_snapshot_block_and_are_named(tmp_path: Path) -> None:
    data = rows()
    data.loc[[7, 9], "when"] = pd.Timestamp("2025-07-01 00:00:01", tz="UTC")
    found = only(trust(data, tmp_path))
    assert (found.check, found.level, found.measured) == ("future_rows", "block", 2 / 6_000)
    for word in ("2 of 6000 rows", "'when'", "2025-07-01 00:00", "10007", "10009"):
        assert word in found.message


def test_a_feature_that_is_known_only_later_is_named(tmp_path: Path) -> None:
    random = np.random.default_rng(9)
    data = rows()
    hours = pd.to_timedelta(random.exponential(2_000, 6_000), unit="h")
    data["returned"] = (data["when"] + hours).where(data["noise"] > -1)
    data["registered"] = data["when"] - hours
    features = (*FEATURES, "returned", "registered")
    found = only(trust(data, tmp_path, features=features))
    assert (found.check, found.column, found.level) == ("future_rows", "returned", "warn")
    assert found.measured == pytest.approx((data["noise"] > -1).mean(), abs=1e-9)
    assert trust(data, tmp_path) == []


def test_rows_sent_again_under_new_keys_are_counted_with_their_contradictions(
    tmp_path: Path,
) -> None:
    data = rows()
    again = data.head(60).assign(
        id=lambda rows: rows["id"] + 1_000_000,
        when=lambda rows: rows["when"] + pd.Timedelta(days=3),
        kind=lambda rows: rows["kind"].str.upper() + " ",
        number=lambda rows: rows["number"] * (1 + 1e-12),
        label=lambda rows: np.where(rows.index < 10, 1 - rows["label"], rows["label"]),
    )
    found = only(trust(pd.concat([data, again]), tmp_path))
    assert (found.check, found.level) == ("near_duplicates", "warn")
    assert found.measured == 120 / 6_060
    assert "120 of 6060 rows" in found.message
    assert "20 of them have a twin with the other label" in found.message


@pytest.mark.parametrize(("twins", "each"), [(60, 2), (1, 120), (6, 20)])
def test_of_many_rows_a_part_says_whether_to_count_twins(
    twins: int, each: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are counted exactly, be they pairs or one multitude; without them nothing is said."""
    monkeypatch.setattr(near_duplicates, "_AT_ONCE", 400)
    monkeypatch.setattr(drawn, "SAMPLE", 3_000)
    data = rows()
    again = pd.concat([data.head(twins)] * (each - 1))
    again["id"] = np.arange(len(again)) + 1_000_000
    found = only(trust(pd.concat([data, again]), tmp_path))
    assert f"{twins * each} of {6_000 + len(again)} rows" in found.message
    assert trust(data, tmp_path) == []


def test_rows_of_a_few_coarse_columns_meet_by_chance(tmp_path: Path) -> None:
    random = np.random.default_rng(10)
    data = rows().assign(number=random.integers(0, 30, 6_000), noise=random.integers(0, 30, 6_000))
    assert trust(data, tmp_path) == []


def test_a_missing_key_stops_the_run(tmp_path: Path) -> None:
    from training_core.errors import StoppedByGate

    with pytest.raises(StoppedByGate, match="lacks the column 'id'"):
        trust(rows().drop(columns="id"), tmp_path)


def test_columns_may_have_any_name(tmp_path: Path) -> None:
    """Names that queries of ours use inside, that SQL knows, and that need quoting."""
    names = ["value", "target", "rows", "time", "positive", "low", "select", 'a "b"', "fold", "c0"]
    random = np.random.default_rng(11)
    data = rows().assign(**{name: random.normal(0, 1, 6_000) for name in names})
    on = {"label_noise": "warn"}
    assert trust(data, tmp_path, features=(*FEATURES, *names), levels=on) == []
