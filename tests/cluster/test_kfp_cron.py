"""Schedules of the double mean what they mean to the real server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.cluster.kfp_cron import Cron, Every, times

MONDAY = datetime(2026, 3, 2, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 0 2 * * *", ["03-02 02:00", "03-03 02:00"]),
        ("0 2 * * *", ["03-02 02:02", "03-02 03:02"]),  # five fields: the first is seconds
        ("0 0 9 ? * 2-6", ["03-03 09:00", "03-04 09:00"]),  # from Tuesday on: 0 is Sunday
        ("0 */20 * * * *", ["03-02 01:40", "03-02 02:00"]),
        ("0 0 0 1 JAN,jul *", ["07-01 00:00", "01-01 00:00"]),
        ("0 0 0 13 * FRI", ["03-06 00:00", "03-13 00:00"]),  # both days given: either will do
        ("0 5/30 * * * *", ["03-02 01:35", "03-02 02:05"]),
        ("@daily", ["03-03 00:00", "03-04 00:00"]),
        ("@every 1h30m", ["03-02 03:00", "03-02 04:30"]),
    ],
)
def test_a_cron_fires_when_the_servers_library_says(text: str, expected: list[str]) -> None:
    schedule = Cron.parse(text)
    found = times(schedule, since=MONDAY, until=MONDAY + timedelta(days=400), end=None)
    assert [f"{at:%m-%d %H:%M}" for at, _ in zip(found, expected, strict=False)] == expected


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "Expected 5 or 6 fields, found 0"),
        ("a 0 0 * * *", "Failed to parse int from a"),
        ("0 0 24 * * *", "above maximum"),
        ("0 0 0 0 * *", "below minimum"),
        ("0 9-5 * * * *", "beyond end of range"),
        ("0 1-2-3 * * * *", "Too many hyphens"),
        ("0 */0 * * * *", "positive number"),
        ("@noon", "Unrecognized descriptor"),
        ("@every soon", "Failed to parse duration"),
    ],
)
def test_what_the_library_refuses_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Cron.parse(text)


def test_a_date_that_never_comes_gives_no_time() -> None:
    schedule = Cron.parse("0 0 0 30 2 *")
    assert not isinstance(schedule, Every)
    assert schedule.after(MONDAY) is None
