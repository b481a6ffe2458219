"""Schedules as Kubeflow reads them, in words, and when they fire."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from croniter import croniter
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.cron import parse_cron
from tests.cluster.kfp_cron import Cron as ServersCron
from training_core.errors import ConfigurationError

SUNDAY = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 0 2 * * *", "at 02:00 UTC every day"),
        ("30 0 2 * * *", "at 02:00:30 UTC every day"),
        ("0 0 9 ? * 1-5", "at 09:00 UTC, Monday through Friday"),
        ("0 0 9 ? * MON", "at 09:00 UTC, only on Monday"),
        ("0 0 2 1,15 * *", "at 02:00 UTC, on day 1 and 15 of the month"),
        ("0 0 2 13 * 5", "at 02:00 UTC, on day 13 of the month, or on Friday"),
        ("0 0 2 */2 * mon", "at 02:00 UTC, every 2 days, and only on Monday"),
        ("0 */15 * * * *", "every 15 minutes (UTC)"),
        ("@daily", "at 00:00 UTC every day"),
        ("@every 1h30m", "every 1 h 30 min, counted from when it is made"),
    ],
)
def test_a_schedule_is_said_in_words_with_its_time_zone(text: str, words: str) -> None:
    assert parse_cron(text).words() == words


def test_another_zone_is_said_and_used() -> None:
    cron = parse_cron("0 0 2 * * *", zone="Europe/Berlin")
    assert cron.words() == "at 02:00 Europe/Berlin every day"
    assert cron.firings(SUNDAY, count=1) == [datetime(2026, 11, 22, 1, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("text", "why", "hint"),
    [
        (
            "0 2 * * *",
            "would fire at 2 minutes past the hour",
            "write `0 0 2 * * *`: at 02:00 UTC every day",
        ),
        ("*/5 * * * *", "would fire every 5 seconds", "write `0 */5 * * * *`: every 5 minutes"),
        ("0 2 * * 7", "has five fields", "write `0 0 2 * * 0`: at 02:00 UTC, only on Sunday"),
        ("0 2 * * 1-9", "has five fields", "write six fields: seconds"),
        ("0 0 2", "has 3 fields, not six", "0 0 2 * * * is 02:00 every day"),
        ("", "has 0 fields, not six", "seconds minutes hours"),
        ("0 0 2 * * * 2027", "has 7 fields", "seconds minutes hours"),
        ("* 0 2 * * *", "fires 60 times a minute", "0 0 2 * * *"),
        ("0,30 * * * * *", "fires 2 times a minute", "0 * * * * *"),
        ("@every 10s", "more often than once a minute", "@every 15m"),
        ("@every soon", "names no length of time", "@every 1h30m"),
        ("@reboot", "is not known", "@daily"),
        ("0 0 2 30 2 *", "never fires", "February"),
        ("0 0 24 * * *", "has 24 for the hours", "0 to 23"),
        ("0 60 * * * *", "has 60 for the minutes", "0 to 59"),
        ("0 0 2 0 * *", "has 0 for the day of month", "1 to 31"),
        ("0 0 2 * foo *", "has 'foo' for the month", "jan, feb"),
        ("0 0 2 * * 7", "has 7 for the day of week", "Sunday is 0"),
        ("0 0 2 L * *", "has 'L' for the day of month", "1 to 31"),
        ("0 0 2 15W * *", "has '15W' for the day of month", "1 to 31"),
        ("0 0 2 ? * MON#1", "has 'MON#1' for the day of week", "sun, mon"),
        ("0 0 2 * * FRI-MON", "ends before it begins", "write it as two: FRI-6,0-MON"),
        ("0 0 1-2-3 * * *", "has '1-2-3' for the hours", "1-5"),
        ("0 0 1/2/3 * * *", "has '1/2/3' for the hours", "*/15"),
        ("0 0 */0 * * *", "has '*/0' for the hours", "a step is a number from 1"),
        ("0 0 */x * * *", "has '*/x' for the hours", "a step is a number from 1"),
        ("0 0 , * * *", "has '' for the hours", "0 to 23"),
        ("CRON_TZ=Asia/Tokyo 0 0 2 * * *", "names a time zone", "cluster.timezone"),
        ("TZ=UTC 0 0 2 * * *", "names a time zone", "cluster.timezone"),
    ],
)
def test_what_kubeflow_refuses_or_reads_otherwise_is_refused(
    text: str, why: str, hint: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_cron(text)
    assert why in refused.value.what
    assert f"`{text}`" in refused.value.what
    assert hint in refused.value.hint


def test_an_hour_that_daylight_saving_skips_is_not_caught_up() -> None:
    cron = parse_cron("0 30 2 * * *", zone="Europe/Berlin")
    march = cron.firings(datetime(2026, 3, 28, tzinfo=UTC), count=2)
    assert march == [
        datetime(2026, 3, 28, 1, 30, tzinfo=UTC),
        datetime(2026, 3, 30, 0, 30, tzinfo=UTC),
    ]
    october = cron.firings(datetime(2026, 10, 25, tzinfo=UTC), count=3)
    assert [at.hour for at in october] == [0, 1, 1], "the hour that comes twice counts twice"


def test_an_interval_is_counted_from_the_moment_it_is_asked_for() -> None:
    assert parse_cron("@every 6h").firings(SUNDAY, count=2) == [
        datetime(2026, 11, 22, 6, tzinfo=UTC),
        datetime(2026, 11, 22, 12, tzinfo=UTC),
    ]


def parts(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    spans = st.lists(number, min_size=2, max_size=2, unique=True)  # croniter reads 2-2 as all
    span = spans.map(lambda ends: "-".join(map(str, sorted(ends))))
    step = st.integers(1, high)
    one = st.one_of(
        st.just("*"),
        number.map(str),
        span,
        step.map(lambda by: f"*/{by}"),
        st.tuples(span, step).map(lambda both: f"{both[0]}/{both[1]}"),
        st.tuples(number, step).map(lambda both: f"{both[0]}/{both[1]}"),
    )
    return st.lists(one, min_size=1, max_size=3).map(",".join)


FIELDS = st.tuples(
    st.integers(0, 59).map(str), parts(0, 59), parts(0, 23), parts(1, 28), parts(1, 12), parts(0, 6)
)
MOMENTS = st.datetimes(datetime(2024, 1, 1), datetime(2028, 1, 1), timezones=st.just(UTC))


@settings(max_examples=60, deadline=None)
@given(FIELDS, MOMENTS)
def test_the_times_are_those_of_kubeflows_own_parser(
    fields: tuple[str, ...], since: datetime
) -> None:
    """Held against the server's double, which was written apart from this."""
    text, since = " ".join(fields), since.replace(microsecond=0)
    theirs = ServersCron.parse(text)
    at, expected = since, []
    while len(expected) < 3 and (found := theirs.after(at)) is not None:
        expected.append(found)
        at = found
    assert parse_cron(text).firings(since, count=3) == expected


@settings(max_examples=60, deadline=None)
@given(FIELDS, MOMENTS)
def test_the_times_are_those_of_every_cron_where_all_agree(
    fields: tuple[str, ...], since: datetime
) -> None:
    """Held against croniter; days of the week left open, where it reads `*/2` in another way."""
    ours = parse_cron(" ".join([*fields[:5], "*"]))
    theirs = croniter(" ".join([*fields[:5], "*"]), since, second_at_beginning=True)
    assert ours.firings(since, count=3) == [theirs.get_next(datetime) for _ in range(3)]
