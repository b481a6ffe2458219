"""Due times: each once, as Kubeflow has it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from components.common.cluster_settings import ScheduleSettings
from pipelines.watch.schedules import Schedules, key_of
from training_core.errors import ConfigurationError


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-03-{text}+00:00")


def schedule(**more: object) -> ScheduleSettings:
    given = {"name": "nightly", "cron": "0 0 2 * * *"} | more
    return ScheduleSettings.model_validate(given)


def due(given: ScheduleSettings, last: str, now: str, *, zone: str = "UTC") -> datetime | None:
    found = Schedules([given], zone=zone).due({key_of(given): at(last)}, now=at(now))
    return found.at if found else None


def test_a_time_is_due_from_its_second_on_and_once() -> None:
    given = schedule()
    assert due(given, "01T12:00:00", "02T01:59:59") is None
    assert due(given, "01T12:00:00", "02T02:00:00") == at("02T02:00:00")
    assert due(given, "01T12:00:00", "02T23:00:00") == at("02T02:00:00")
    assert due(given, "02T02:00:00", "02T23:00:00") is None


def test_of_missed_times_the_last_is_due_or_all_of_them_one_by_one() -> None:
    assert due(schedule(), "01T12:00:00", "05T01:00:00") == at("04T02:00:00")
    catching = schedule(catch_up=True)
    assert due(catching, "01T12:00:00", "05T01:00:00") == at("02T02:00:00")
    assert due(catching, "02T02:00:00", "05T01:00:00") == at("03T02:00:00")
    assert due(catching, "04T02:00:00", "05T01:00:00") is None


def test_what_was_never_seen_or_is_switched_off_is_not_due() -> None:
    now = at("05T01:00:00")
    assert Schedules([schedule()], zone="UTC").due({}, now=now) is None
    off = Schedules([schedule(enabled=False)], zone="UTC")
    assert off.keys == []
    assert off.due({key_of(schedule()): now - timedelta(days=3)}, now=now) is None
    assert off.seconds_to_next(now=now) is None


def test_another_cron_under_the_same_name_is_another_schedule() -> None:
    assert key_of(schedule()) != key_of(schedule(cron="0 0 3 * * *"))


def test_the_first_of_several_fires_first() -> None:
    late, early = schedule(), schedule(name="hourly", cron="0 0 * * * *")
    found = Schedules([late, early], zone="UTC").due(
        {key_of(late): at("01T12:00:00"), key_of(early): at("01T23:30:00")}, now=at("02T02:10:00")
    )
    assert found is not None
    assert {found.schedule.name, found.at} <= {"nightly", "hourly", at("02T02:00:00")}


def test_times_are_those_of_the_clusters_zone() -> None:
    """Berlin is two hours ahead from 29 March on, one before."""
    given = schedule()
    assert due(given, "10T00:00:00", "10T00:59:59", zone="Europe/Berlin") is None
    assert due(given, "10T00:00:00", "10T01:00:00", zone="Europe/Berlin") == at("10T01:00:00")
    assert due(given, "30T00:00:00", "31T00:00:00", zone="Europe/Berlin") == at("31T00:00:00")


def test_the_next_time_is_waited_for() -> None:
    both = Schedules([schedule(), schedule(name="b", cron="0 30 * * * *")], zone="UTC")
    assert both.seconds_to_next(now=at("01T01:59:30")) == 30.0
    assert both.words == [
        "nightly at 02:00 UTC every day",
        f"b {Schedules([schedule(name='b', cron='0 30 * * * *')], zone='UTC').words[0][2:]}",
    ]


def test_a_cron_that_kubeflow_would_misread_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="five fields"):
        Schedules([schedule(cron="0 2 * * *")], zone="UTC")
