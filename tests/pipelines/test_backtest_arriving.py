"""The data of a backtest: each period's rows in a file, there once their time has come."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from components.common.cache import Cache
from components.common.project import open_project
from components.common.sources import open_source
from components.snapshot_data.taking import take_snapshot
from pipelines.backtest.arriving import arrive, cut_rows, files
from pipelines.backtest.schedule import Period, parse_day, periods
from pipelines.backtest.settings import Place, open_place
from tests.small_project.command import make_project
from tests.small_project.make_data import ROWS_A_DAY, file_of, month, write_months
from training_core.errors import ConfigurationError

FIRST = "2025-02-10"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", 1, 2, 3)


def planned(project: Path, *, given: tuple[str, ...] = ()) -> Place:
    return open_place(
        open_project(project, overrides=list(given)), given=list(given), first=FIRST, every="month"
    )


def schedule(to: str = "2025-03-15") -> list[Period]:
    return periods(parse_day(FIRST, "--from"), parse_day(to, "--to"), "month")


def cut(place: Place, to: str = "2025-03-15") -> dict[str, int]:
    place.folder.mkdir(parents=True, exist_ok=True)
    return cut_rows(place, schedule(to), "month")


def test_rows_are_cut_by_their_time_whatever_file_they_came_in(project: Path) -> None:
    place = planned(project)
    found = cut(place)
    days = {"2024-12-10": 9, "2025-01-10": 31, "2025-02-10": 28, "2025-03-10": 22}
    assert found == {name: count * ROWS_A_DAY for name, count in days.items()}
    frames = [pd.read_parquet(file) for file in files(place)]
    for frame, (name, count) in zip(frames, days.items(), strict=True):
        assert len(frame) == count * ROWS_A_DAY
        assert frame["when"].min() >= pd.Timestamp(name, tz="UTC")
    ids = pd.concat(frames)["id"]
    assert sorted(ids) == sorted(pd.concat([month(n) for n in (1, 2, 3)])["id"])


def test_only_what_is_older_than_the_date_has_arrived_and_is_read_once(project: Path) -> None:
    place = planned(project)
    cut(place)
    assert arrive(place, schedule()[0].start) == 2
    assert sorted(f.name for f in place.data.iterdir()) == [
        "2024-12-10.parquet", "2025-01-10.parquet"
    ]  # fmt: skip
    source, settings = open_source(str(place.data)), place.project.settings.data
    cache = Cache(place.home / "cache")
    first = take_snapshot(source, settings=settings, before=None, cache=cache)
    assert arrive(place, schedule()[1].start) == 3
    second = take_snapshot(source, settings=settings, before=first.manifest, cache=cache)
    assert list(second.new) == [False, False, True]


def test_a_window_cuts_by_the_day(project: Path) -> None:
    place = planned(
        project, given=("data.pattern='{date}.parquet'", "data.window=30d")
    )  # fmt: skip
    write_months(project / "data", 1)
    for number in (1, 2, 3):  # the pattern of the source needs whole dates
        file = file_of(project / "data", number)
        file.rename(file.with_name(f"2025-{number:02}-01.parquet"))
    found = cut(place)
    assert len(found) > 40
    assert set(found.values()) == {ROWS_A_DAY}
    assert place.project.settings.data.pattern == "{date}.parquet"


def test_new_rows_may_come_but_the_past_that_was_seen_may_not_change(project: Path) -> None:
    place = planned(project)
    cut(place)
    arrive(place, schedule()[0].start)
    more = pd.concat([month(3), month(4)])  # the period that began on 10 March goes on
    more.to_parquet(file_of(project / "data", 3), index=False)
    assert cut(place)["2025-03-10"] == 31 * ROWS_A_DAY
    month(1).head(-100).to_parquet(file_of(project / "data", 1), index=False)
    with pytest.raises(ConfigurationError, match=r"have changed since this backtest began: 1550"):
        cut(place)


def test_without_a_row_before_the_first_date_there_is_no_backtest(project: Path) -> None:
    for number in (1, 2):
        file_of(project / "data", number).unlink()
    with pytest.raises(ConfigurationError, match="no row is older than --from 2025-02-10"):
        cut(planned(project))


def test_the_same_project_goes_on_where_it_was_and_another_begins_afresh(project: Path) -> None:
    place = planned(project)
    assert planned(project).folder == place.folder
    assert planned(project, given=("training.epochs=1",)).folder != place.folder
    task = project / "task.py"
    task.write_text(task.read_text() + "\n# another\n")
    assert planned(project).folder != place.folder


def test_runs_of_a_backtest_keep_to_its_folder(project: Path) -> None:
    place = planned(project, given=("store=s3://real/store", "decision.approval=true"))
    settings = place.project.settings
    assert settings.store == str(place.home / "store")
    assert str(place.home) in settings.tracking.uri
    assert place.project.data_source == str(place.data)
    assert not settings.decision.approval


def test_partitions_are_not_counted(project: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"--set data\.window=90d"):
        planned(project, given=("data.newest=2",))
