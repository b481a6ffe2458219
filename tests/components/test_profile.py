"""The profile of a snapshot: right numbers, whatever way the rows come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from profile_rows import LABEL, make_rows, profile_of, settings_of, view_of
from scipy.stats.contingency import association

from components.validate_data.column_figures import column_figures
from components.validate_data.profile import Profile
from components.validate_data.take_profile import take_profile
from training_core.errors import StoppedByGate


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rows = make_rows(0, 60)
    rows.loc[rows.index % 7 == 0, "number"] = np.nan
    rows.loc[rows.index % 5 == 0, "kind"] = None
    rows.loc[rows.index % 11 == 0, "bought"] = np.nan
    rows["flag"] = np.where(rows.index % 3 == 0, 7, 2)
    rows["many"] = [f"name {i % 1500}" for i in range(len(rows))]
    return rows


@pytest.fixture(scope="module")
def profile(rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return profile_of(tmp_path_factory.mktemp("rows"), rows)


def test_moments_are_those_of_pandas(rows: pd.DataFrame, profile: Profile) -> None:
    for name in ("number", "warmth", "noise", "flag"):
        column, values = profile.columns[name], rows[name]
        assert column.nulls == values.isna().sum()
        assert (column.least, column.most) == (values.min(), values.max())
        assert column.mean == pytest.approx(values.mean(), rel=1e-9)
        assert column.std == pytest.approx(values.std(ddof=0), rel=1e-8)
        assert column.label_correlation == pytest.approx(
            values[rows.bought.notna()].corr(rows.bought), abs=1e-8
        )


def test_categories_are_counted_exactly_and_related_to_the_label(
    rows: pd.DataFrame, profile: Profile
) -> None:
    kind = profile.columns["kind"]
    counts = rows.kind.value_counts()
    named = {n: int(rows) for n, rows in zip(kind.cells.names, kind.totals, strict=False)}
    assert named == counts.to_dict()
    assert kind.typical == counts.index[0]
    known = rows.dropna(subset=["kind", "bought"])
    table = pd.crosstab(known.kind, known.bought).to_numpy()
    assert kind.label_correlation == pytest.approx(association(table, method="cramer"))
    many = profile.columns["many"]
    assert len(many.cells.names) == 200
    assert many.totals.sum() == len(rows)
    assert many.totals[-2] == len(rows) - many.totals[:200].sum() > 0


def test_the_middle_of_times_is_a_day(rows: pd.DataFrame, profile: Profile) -> None:
    middle = pd.Timestamp(profile.columns["when"].typical, tz="UTC")
    assert abs(middle - rows["when"].quantile(0.5)) < pd.Timedelta(days=2)
    shown = {c.column: c for c in column_figures(profile)}["when"]
    assert (shown.typical, shown.mean) == (f"{middle:%Y-%m-%d}", None)


def test_cells_hold_the_values_between_their_edges(rows: pd.DataFrame, profile: Profile) -> None:
    column = profile.columns["noise"]
    expected = np.bincount(np.searchsorted(column.cells.edges, rows.noise, side="right"))
    # an edge is rounded towards the centre: a value within 1/128 of it may be on its other side
    assert np.abs(column.totals[:-1] - expected).max() <= 0.002 * len(rows)
    shares = column.cells.merged(column.totals)[:-1] / len(rows)
    assert len(shares) == 20
    assert shares == pytest.approx(np.full(20, 0.05), abs=0.01)


def test_a_number_with_few_values_has_a_bin_for_each(rows: pd.DataFrame, profile: Profile) -> None:
    flag = profile.columns["flag"]
    assert sorted(flag.cells.merged(flag.totals)) == sorted([0, *rows.flag.value_counts()])
    assert flag.typical == "2"


def test_days_add_up_to_the_whole(rows: pd.DataFrame, profile: Profile) -> None:
    assert profile.ordered
    by_day = rows.groupby(rows.when.dt.floor("D")).size()
    assert profile.cluster_rows.sum(axis=0).tolist() == by_day.tolist()
    for column in profile.columns.values():
        total = column.daily.sum(axis=(0, 1))
        assert total.tolist() == column.cells.merged(column.totals).tolist()
    positives = rows[rows.bought == 1]
    kind = profile.columns["kind"]
    apples = kind.cells.names.index("apple")
    assert kind.daily[2, :, apples].sum() == (positives.kind == "apple").sum()
    assert profile.label_mean == pytest.approx(rows.bought.mean())


def test_distinct_values_are_about_right(tmp_path: Path) -> None:
    rows = make_rows(0, 60)
    rows["many"] = np.arange(len(rows)) % 5900 + 0.5
    big = pd.concat([rows.assign(id=rows.id + i * 10_000) for i in range(40)])
    big["text"] = [f"t{i}" for i in range(len(big))]
    found = profile_of(tmp_path, big).columns
    assert found["kind"].distinct == 4
    assert found["many"].distinct == pytest.approx(5900, rel=0.05)
    assert found["text"].distinct == pytest.approx(len(big), rel=0.05)


def test_neither_order_nor_files_change_the_profile(
    rows: pd.DataFrame, profile: Profile, tmp_path: Path
) -> None:
    mixed = rows.sample(frac=1, random_state=1)
    again = profile_of(tmp_path, mixed[:1000], mixed[1000:1001], mixed[1001:])
    assert again.to_json() == profile.to_json()


def test_another_profiles_cells_make_them_comparable(profile: Profile, tmp_path: Path) -> None:
    now = make_rows(60, 10)
    now["kind"] = np.where(now.index % 4 == 0, "eggs", now.kind)
    now["noise"] = np.where(now.index % 10 == 0, 1e6, now.noise)
    found = profile_of(tmp_path, now, edges=profile)
    assert found.columns["noise"].cells == profile.columns["noise"].cells
    assert found.columns["noise"].beyond == (
        (now.noise < profile.columns["noise"].least).sum(),
        (now.noise > profile.columns["noise"].most).sum(),
    )
    assert found.columns["kind"].unseen == {"eggs": 250}
    assert found.columns["kind"].totals[-2] == 250


def test_values_are_new_only_where_all_old_ones_are_known(
    rows: pd.DataFrame, profile: Profile, tmp_path: Path
) -> None:
    now = rows.assign(many="name 1501", kind=rows.kind.replace("dates", "eggs"))
    found = profile_of(tmp_path, now, edges=profile)
    assert list(found.columns["kind"].unseen) == ["eggs"]
    assert profile.columns["many"].totals[-2] > 0, "it has more values than are named"
    assert found.columns["many"].unseen == {}


def test_infinities_and_empty_columns_are_survived(tmp_path: Path) -> None:
    rows = make_rows(0, 5)
    rows.loc[0, "number"] = np.inf
    rows["nothing"] = np.nan
    rows["none"] = pd.Series([None] * len(rows), dtype="string")
    found = profile_of(tmp_path, rows).columns
    assert found["number"].high == "inf"
    assert found["number"].mean is None
    assert found["nothing"].nulls == found["none"].nulls == len(rows)
    assert (found["nothing"].low, found["nothing"].mean, found["none"].typical) == ("", None, "")


def test_three_years_are_kept_in_four_hundred_clusters(tmp_path: Path) -> None:
    rows = make_rows(0, 1500, a_day=4)
    stray = rows.tail(1).assign(when=pd.Timestamp("2199-01-01", tz="UTC"), id=-1)
    found = profile_of(tmp_path, rows, stray)
    undated = sum(found.label_rows) - found.cluster_rows.sum()
    assert found.lengths.tolist() == [0] + [7] * 120 + [1] * 280
    assert found.cluster_rows.sum() == len(rows) - 4 * int(undated > 1)
    assert found.first_days[-1] <= 20089 + 1499
    assert undated >= 1


def test_without_a_time_rows_are_grouped_by_their_key(tmp_path: Path) -> None:
    found = profile_of(tmp_path, make_rows(0, 60), settings=settings_of(time_column=None))
    assert not found.ordered
    assert len(found.first_days) == 64
    assert found.cluster_rows.sum() == 6000


def test_the_file_is_small(tmp_path: Path) -> None:
    rows = make_rows(0, 365, a_day=50)
    random = np.random.default_rng(0)
    for number in range(14):
        rows[f"c{number}"] = random.normal(size=len(rows))
    with view_of(tmp_path, rows) as connection:
        text = take_profile(
            connection, "rows", settings=settings_of(), label=LABEL
        ).to_json()  # fmt: skip
    assert len(text) < 1_000_000


@pytest.mark.parametrize("text", ["", "[]", '{"format": "evertrain/profile/1"}', '{"rows": 3}'])
def test_what_is_no_profile_is_refused(text: str) -> None:
    with pytest.raises(StoppedByGate, match="evertrain/profile/3"):
        Profile.from_json(text)
