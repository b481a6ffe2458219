"""What `evertrain init` decides, and what for."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from init_samples import decided, orders, proposed, write

from pipelines.init.naming import names_a_thing, plausible_time
from pipelines.init.splitting import SHARE
from pipelines.init.suite import freshness, suite_of
from training_core.errors import ConfigurationError


def test_each_column_of_a_shop_gets_its_part(tmp_path: Path) -> None:
    found = decided(tmp_path, orders())
    assert (found.key, found.time, found.label.name) == (["order_id"], "ordered_at", "bought")
    assert found.features.categories == ["country", "weekday", "hour", "returning"]
    assert found.features.numbers == ["price", "hour", "discount"], (
        "hours are ordered, weekdays few"
    )
    why = found.features.left_out
    assert set(why) == {
        *("order_id", "ordered_at", "updated_at", "customer_id", "comment", "currency", "fax"),
        *("refund", "bought"),
    }
    for column, word in {
        "order_id": "key",
        "ordered_at": "later than those learned",
        "updated_at": "another time",
        "customer_id": "id by its name",
        "comment": "id or free text",
        "currency": "same value",
        "fax": "no value",
        "refund": "leak",
    }.items():
        assert word in why[column]


def test_a_leak_that_shows_only_in_nulls_or_categories_is_found(tmp_path: Path) -> None:
    rows = orders().drop(columns="refund")
    bought = rows["bought"] == 1
    rows["carrier"] = np.where(bought, rows["discount"].fillna(0.5), np.nan)
    rows["reason"] = np.where(bought, np.where(rows["hour"] % 2, "red", "blue"), "grey")
    found = decided(tmp_path, rows)
    assert found.leaks == ["carrier", "reason"]
    assert found.features.auc["price"] < 0.9, "an honest feature is none"


def test_with_a_handful_of_rows_of_a_class_nothing_is_called_a_leak(tmp_path: Path) -> None:
    rows = orders(600)
    rows["bought"] = (np.arange(600) % 60 == 0).astype(int)
    rows["lucky"] = rows["bought"] * 2.5
    assert decided(tmp_path, rows).leaks == []


# --- key ------------------------------------------------------------------------------------------


def test_an_id_is_the_key_even_where_other_columns_are_unique_too(tmp_path: Path) -> None:
    rows = orders().assign(bought_for=lambda r: np.arange(len(r)) * 7, price=np.arange(3_000) / 7)
    rows["uuid"] = [f"{n:032x}" for n in rows["order_id"]]
    assert decided(tmp_path, rows.drop(columns="order_id")).key == ["uuid"]


def test_the_smallest_combination_that_is_unique_is_the_key(tmp_path: Path) -> None:
    rows = orders(2_400).drop(columns=["order_id", "comment", "ordered_at", "updated_at"])
    rows["customer_id"], rows["visit"] = np.arange(2_400) // 8, np.arange(2_400) % 8
    assert set(decided(tmp_path, rows).key) == {"customer_id", "visit"}


def test_a_key_must_be_unique_in_rows_that_the_sample_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.init.sample.MOST_ROWS", 1_000)
    rows = orders(9_000).drop(columns="comment")
    rows["number"] = rows["order_id"]
    rows.loc[rows.index[-1], "order_id"] = rows["order_id"].iloc[0]
    found = decided(tmp_path, rows)
    assert found.sample.rows < 1_500
    assert found.sample.read_rows == 9_000
    assert found.key == ["number"]


def test_measurements_are_no_key(tmp_path: Path) -> None:
    rows = orders().drop(columns=["order_id", "comment"])
    rows["price"] = np.arange(len(rows)) / 3
    assert "price" not in decided(tmp_path, rows).key


def test_a_key_that_is_given_is_held_against_the_rows(tmp_path: Path) -> None:
    folder = write(tmp_path, orders())
    with proposed(folder, key="customer_id,comment") as found:
        assert found.key == ["customer_id", "comment"]
    for key, words in (
        ("customer_id", "some rows share it"),
        ("customer", "no such column"),
        ("order_id,discount", "rows of the sample have none"),
    ):
        with pytest.raises(ConfigurationError, match=words), proposed(folder, key=key):
            pass


def test_without_any_key_the_error_says_what_to_pass_and_why(tmp_path: Path) -> None:
    rows = pd.concat([orders(1_000)] * 2)
    with pytest.raises(ConfigurationError, match="1,000 rows repeat") as caught:
        decided(tmp_path, rows)
    assert "--key" in caught.value.hint


# --- time and split -------------------------------------------------------------------------------


def test_of_two_equally_likely_times_none_is_taken_unasked(tmp_path: Path) -> None:
    rows = orders().assign(created_at=lambda r: r["ordered_at"] - pd.Timedelta(hours=1))
    folder = write(tmp_path, rows)
    with pytest.raises(ConfigurationError, match="ordered_at and created_at") as caught:
        decided(folder, rows)
    assert "--time" in caught.value.hint
    with proposed(folder, time="created_at") as found:
        assert found.time == "created_at"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.where(t.index != 5), "have none"),
        (lambda t: t + pd.Timedelta(days=400), "future"),
        (lambda t: t.dt.strftime("%Y-%m-%d %H:%M"), "dates as text"),
        (lambda t: t * 0 + t.iloc[0] if t.dtype.kind == "M" else t, "the same in every row"),
    ],
)
def test_a_time_that_cannot_be_one_is_not_taken_and_said(
    tmp_path: Path, change: object, words: str
) -> None:
    rows = orders().drop(columns="updated_at")
    if words == "the same in every row":
        rows["ordered_at"] = rows["ordered_at"].iloc[0]
    else:
        rows["ordered_at"] = change(rows["ordered_at"])  # type: ignore[operator]
    found = decided(tmp_path, rows)
    assert (found.time, found.split.by) == ("", "group")
    assert words in found.time_why


@pytest.mark.parametrize(("days", "held_out"), [(90, 14), (60, 7), (35, 7), (20, 3), (400, 28)])
def test_whole_weeks_are_held_out_where_the_data_is_long_enough(
    tmp_path: Path, days: int, held_out: int
) -> None:
    split = decided(tmp_path, orders(6_000, days=days)).split
    assert (split.by, split.holdout, split.validation) == ("time", held_out, held_out)


def test_a_holdout_grows_until_it_has_rows_enough_of_the_rarer_class(tmp_path: Path) -> None:
    rows = orders(6_000, days=200)
    rows["bought"] = (np.arange(6_000) % 35 == 0).astype(int)  # six a week
    assert decided(tmp_path, rows.drop(columns="refund")).split.holdout == 49


def test_few_days_are_divided_by_hash_or_by_group(tmp_path: Path) -> None:
    rows = orders(days=5)
    split = decided(tmp_path / "a", rows.drop(columns="customer_id")).split
    assert (split.by, split.holdout, split.group) == ("hash", SHARE, [])
    split = decided(tmp_path / "b", rows).split
    assert (split.by, split.holdout, split.group) == ("group", SHARE, ["customer_id"])
    assert "5 days" in split.why[0]


def test_by_time_a_customer_who_comes_again_is_mentioned(tmp_path: Path) -> None:
    split = decided(tmp_path, orders()).split
    assert (split.by, split.group, split.repeated) == ("time", [], "customer_id")


# --- label ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "positive", "plain"),
    [
        ((0, 1), 1, True),
        ((False, True), True, True),
        ((0.0, 1.0), 1.0, True),
        ((1, 2), 2, False),
        ((-1.0, 1.0), 1.0, False),
        (("no", "yes"), "yes", False),
        (("TRUE", "FALSE"), "TRUE", False),
        (("good", "bad"), "bad", False),
        (("stayed", "left"), "left", False),
    ],
)
def test_the_positive_value_is_the_one_that_says_yes(
    tmp_path: Path, values: tuple[object, object], positive: object, plain: bool
) -> None:
    rows = orders(1_000)
    negative = next(v for v in values if v != positive)
    one = np.arange(1_000) % 3 == 0
    labels = [positive if yes else negative for yes in one]
    rows["bought"] = pd.Series([labels[0], None, None, *labels[3:]], dtype=object).infer_objects()
    label = decided(tmp_path, rows).label
    assert (label.positive, label.plain) == (positive, plain)
    assert label.rate == pytest.approx(334 / 998)
    assert label.labelled == pytest.approx(0.998)


# --- names and freshness --------------------------------------------------------------------------


def test_names_tell_ids_and_times() -> None:
    ids = ["id", "ID", "order_id", "orderId", "uuid", "userid", "id_order", "row key"]
    assert [n for n in ids if not names_a_thing(n)] == []
    assert [
        n for n in ["paid", "valid", "width", "bidder", "grid", "hour"] if names_a_thing(n)
    ] == []
    assert [plausible_time(n) for n in ("when", "createdAt", "login_time", "t", "updated_at")] == [
        3, 3, 2, 1, 0,
    ]  # fmt: skip


def test_the_freshness_query_finds_a_stale_table_and_no_fresh_one(tmp_path: Path) -> None:
    folder = write(tmp_path, orders(days=60), files=4)
    with proposed(folder) as found:
        (fresh,) = [
            e
            for e in suite_of(found, name="shop")["expectations"]
            if e["type"] == "unexpected_rows_expectation"
        ]
        assert fresh["severity"] == "warning"
        query = fresh["kwargs"]["unexpected_rows_query"]
        connection = found.sample.connection
        for days, rows in ((29, 0), (31, 1)):  # four files: each spans 15 days
            connection.execute(
                "CREATE OR REPLACE VIEW kept AS SELECT * REPLACE (ordered_at - (SELECT "
                f"max(ordered_at) FROM sample) + now() - INTERVAL {days} DAY AS ordered_at) "
                "FROM sample"
            )
            assert len(connection.execute(query.replace("{batch}", "kept")).fetchall()) == rows


def test_old_data_is_not_asked_to_be_fresh(tmp_path: Path) -> None:
    folder = write(tmp_path, orders(days=60), files=2)
    with proposed(folder) as found:
        assert freshness(found) == 60, "twice the 30 days that each file spans"
    with proposed(folder, now=datetime(2026, 1, 1, tzinfo=UTC)) as found:
        assert freshness(found) == 0
