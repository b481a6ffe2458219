"""Drift of the flights: no clean month is stopped, faults in a month are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
import yaml

from components.common.data_figures import Finding
from components.common.labels import Label
from components.common.settings import ProjectSettings
from components.validate_data.drift import drift_from
from components.validate_data.profile import Profile
from components.validate_data.take_profile import take_profile
from tests.examples.flights_example import EXAMPLE

SETTINGS = ProjectSettings.model_validate(
    yaml.safe_load((EXAMPLE / "evertrain.yaml").read_text())
)  # fmt: skip


@pytest.fixture(scope="module")
def months(
    rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], pd.DataFrame]:
    clean = rows[~(rows.wind_speed > 150)]  # put aside by the row rule
    number = clean.date.str[5:7].astype(int)

    def some(condition: str) -> pd.DataFrame:
        return clean[pd.eval(condition, local_dict={"m": number})]

    return some


LABEL = Label("binary", ("late",), lambda frame: frame["late"].to_numpy())


def profile_of(rows: pd.DataFrame, folder: Path, edges: Profile | None = None) -> Profile:
    path = folder / "rows.parquet"
    rows.to_parquet(path, index=False)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"CREATE VIEW rows AS SELECT * FROM '{path}'")
        return take_profile(connection, "rows", settings=SETTINGS, label=LABEL, edges=edges)


def findings_of(now: pd.DataFrame, before: Profile, folder: Path) -> list[Finding]:
    return drift_from(profile_of(now, folder, before), before, settings=SETTINGS)[1]


# What moves in these months, and why: schedules change in April and in June, Labour Day
# ends the summer schedule, April is warmer than any day of the winter before it.
EXPLAINED: dict[int, set[str]] = {
    2: set(),
    4: {"departures_hour", "temperature"},
    6: {"flight"},
    9: {"seats"},
    11: set(),
}


@pytest.mark.smoke  # months of flights; make prove-clean-flights has all
@pytest.mark.parametrize("month", EXPLAINED)
def test_a_clean_month_is_never_stopped(
    month: int, months: Callable[[str], pd.DataFrame], tmp_path: Path
) -> None:
    before = profile_of(months(f"m < {month}"), tmp_path)
    findings = findings_of(months(f"m == {month}"), before, tmp_path)
    assert [f for f in findings if f.level == "block"] == []
    assert {f.column for f in findings} <= EXPLAINED[month]


@pytest.mark.smoke  # a month of flights, spoiled in each way
def test_faults_in_july_are_noticed(months: Callable[[str], pd.DataFrame], tmp_path: Path) -> None:
    before = profile_of(months("m < 7"), tmp_path)
    july = months("m == 7")
    third = np.arange(len(july)) % 3 == 0
    blocked = {
        "distance": july.assign(distance=july.distance * 1.609),
        "seats": july.assign(seats=july.seats.mask(third, 0)),
        "hour": july.assign(hour=(july.hour + 4) % 24),
        "late": july.assign(late=1 - july.late),
        "": july.assign(late=july.late.sample(frac=1, random_state=0).to_numpy()),
    }
    for column, now in blocked.items():
        found = findings_of(now, before, tmp_path)
        assert column in {f.column for f in found if f.level == "block"}
    # of a season's column less is sure: it warns
    for now in (
        july.assign(temperature=(july.temperature - 32) / 1.8),
        july.assign(temperature=55.0),
        july.assign(temperature=july.temperature.mask(third, 0)),
    ):
        assert "temperature" in {f.column for f in findings_of(now, before, tmp_path)}
