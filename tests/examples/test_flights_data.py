"""What the files of the flights example hold."""

from __future__ import annotations

import csv
import datetime as dt
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.examples.flights_example import prepare, task_module


def keys(rows: pd.DataFrame) -> list[tuple[str, str, str, str]]:
    return list(
        zip(rows["date"], rows["carrier"], rows["flight"].astype(str), rows["origin"], strict=True)
    )


# --- the files ----------------------------------------------------------------------------------


def test_every_scheduled_flight_is_one_row(rows: pd.DataFrame, source: dict[Any, Any]) -> None:
    assert len(rows) == len(source) == 336_776
    assert set(keys(rows)) == set(source)


def test_no_column_tells_what_happened_after_departure(rows: pd.DataFrame) -> None:
    told = {"dep_time", "dep_delay", "arr_time", "arr_delay", "air_time", "tailnum"}
    assert not told & set(rows.columns)
    task = task_module.FlightsTask()
    used = task.preprocessor().columns
    assert task.label not in used
    assert set(used) <= set(rows.columns)


def test_no_feature_alone_ranks_the_labels(rows: pd.DataFrame) -> None:
    labelled = rows[rows["late"].notna()]
    positive = labelled["late"].to_numpy() == 1
    for column in task_module.NUMBERS:
        ranks = labelled[column].fillna(-1).rank().to_numpy()
        n, m = positive.sum(), (~positive).sum()
        auc = (ranks[positive].sum() - n * (n + 1) / 2) / (n * m)
        assert 0.3 < auc < 0.7, column


def test_the_label_is_fifteen_minutes_and_cancelled_flights_have_none(
    rows: pd.DataFrame, source: dict[Any, Any]
) -> None:
    expected = np.array(
        [
            np.nan if source[key]["dep_time"] == "NA" else float(int(source[key]["dep_delay"]) > 15)
            for key in keys(rows)
        ]
    )
    assert np.isnan(expected).sum() == 8_255
    np.testing.assert_array_equal(rows["late"].to_numpy(), expected)


def test_files_are_cut_by_the_local_month(rows: pd.DataFrame, tmp_path: Path) -> None:
    january = pd.read_parquet(prepare.write_month(rows, month=1, folder=tmp_path))
    assert len(january) == 27_004
    assert set(january["date"].str[:7]) == {"2013-01"}
    assert january["time_hour"].max() == pd.Timestamp("2013-02-01T04:00:00Z")
    assert (rows["time_hour"].dt.month != rows["date"].str[5:7].astype(int)).sum() == 1_218


def test_the_same_month_is_the_same_bytes_whatever_else_is_asked_for(tmp_path: Path) -> None:
    assert prepare.main(["--data", str(tmp_path / "alone"), "--months", "4"]) == 0
    assert prepare.main(["--data", str(tmp_path / "among"), "--months", "3-4,12"]) == 0
    names = sorted(path.name for path in (tmp_path / "among").iterdir())
    assert names == [f"flights-2013-{month:02d}.parquet" for month in (3, 4, 12)]
    alone, among = ((tmp_path / folder / names[1]).read_bytes() for folder in ("alone", "among"))
    assert alone == among


def test_types_do_not_depend_on_the_month(rows: pd.DataFrame, tmp_path: Path) -> None:
    for month in range(1, 13):
        path = prepare.write_month(rows, month=month, folder=tmp_path)
        assert pq.read_schema(path).equals(prepare.SCHEMA), path.name


def test_an_interrupted_write_leaves_the_file_that_was_there(
    rows: pd.DataFrame, tmp_path: Path
) -> None:
    target = prepare.write_month(rows, month=1, folder=tmp_path)
    before = target.read_bytes()
    with pytest.raises(KeyError):
        prepare.write_month(rows.drop(columns="dest"), month=1, folder=tmp_path)
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("text", ["0", "13", "3-1", "x", "", "1-"])
def test_months_that_are_none_are_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        prepare.main(["--data", str(tmp_path), "--months", text])
    assert stopped.value.code == 2
    assert "as in 1-3" in capsys.readouterr().err


# --- the features -------------------------------------------------------------------------------


def test_weather_is_the_observation_three_hours_before(rows: pd.DataFrame) -> None:
    with (prepare.source_folder() / "weather.csv").open(encoding="utf-8") as file:
        observed = {(row["origin"], row["time_hour"]): row for row in csv.DictReader(file)}
    names = {"temperature": "temp", "wind_speed": "wind_speed", "visibility": "visib"}
    spots = pd.concat(
        [
            rows.sample(500, random_state=1),
            rows[rows["date"].isin(["2013-03-10", "2013-11-03"])],  # clocks change
            rows[rows["date"] == "2013-12-31"],  # no weather any more
        ]
    )
    unmatched = 0
    for row in spots.to_dict("records"):
        moment = row["time_hour"].to_pydatetime() - dt.timedelta(hours=3)
        found = observed.get((row["origin"], moment.strftime("%Y-%m-%dT%H:%M:%SZ")))
        unmatched += found is None
        for column, theirs in names.items():
            if found is None or found[theirs] == "NA":
                assert np.isnan(row[column])
            else:
                assert row[column] == pytest.approx(float(found[theirs]))
    assert 0 < unmatched < len(spots) / 2


def test_shares_of_yesterday_count_the_day_before_and_no_other(
    rows: pd.DataFrame, source: dict[Any, Any]
) -> None:
    late: dict[tuple[str, str], list[bool]] = defaultdict(list)
    cancelled: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for (date, carrier, _, origin), row in source.items():
        for group in (carrier, origin):
            cancelled[group, date].append(row["dep_time"] == "NA")
            if row["dep_time"] != "NA":
                late[group, date].append(int(row["dep_delay"]) > 15)
    for row in rows.sample(2_000, random_state=2).to_dict("records"):
        before = str(dt.date.fromisoformat(row["date"]) - dt.timedelta(days=1))
        for by in ("origin", "carrier"):
            for name, outcomes in (("late", late), ("cancelled", cancelled)):
                known = outcomes.get((row[by], before))
                value = row[f"{by}_{name}_yesterday"]
                assert np.isnan(value) if not known else value == pytest.approx(np.mean(known))
