"""Rows and columns out of a time that had not come yet."""

from __future__ import annotations

from components.common.data_figures import Finding
from components.common.tables import quoted, text
from components.common.values import kind_of, utc
from components.validate_data.drawn import POSITIVE, ROWS
from components.validate_data.subject import Subject

_NAMED = 3  # rows, as examples
_MOST = 0.5  # share of labelled rows


def find_future(subject: Subject) -> list[Finding]:
    """Rows whose time lies after the snapshot was taken, and features that are known only later.

    A feature whose time is later than the row's own in most labelled rows is a warning: it may be
    a plan made before (the scheduled arrival of a flight that has not left).
    """
    if subject.time_column is None:
        return []
    return [*_rows(subject, subject.time_column), *_columns(subject, subject.time_column)]


def _rows(subject: Subject, column: str) -> list[Finding]:
    time = utc(column, subject.columns)
    latest_day = subject.seen[column].most  # of texts nothing is known
    if latest_day is not None and latest_day * 86400 < subject.now.timestamp():
        return []
    later = f"{time} > TIMESTAMPTZ {text(subject.now.isoformat())}"
    count, latest = subject.one(
        f"SELECT count(*), strftime(max({time}), '%Y-%m-%d %H:%M') FROM {ROWS} WHERE {later}"
    )
    if not count:
        return []
    keys = ", ".join(map(quoted, subject.settings.data.row_key))
    first = subject.connection.execute(
        f"SELECT {keys} FROM {ROWS} WHERE {later} ORDER BY {time} DESC, {keys} LIMIT {_NAMED}"
    ).fetchall()
    examples = "; ".join(" ".join(map(str, row)) for row in first)
    finding = subject.finding(
        "future_rows",
        f"{count} of {subject.rows} rows have a {column!r} after the snapshot was taken "
        f"({subject.now:%Y-%m-%d %H:%M} UTC): up to {latest}, for example {examples}",
        measured=count / subject.rows,
        limit=0.0,
        hint="is it local time that was written as UTC, seconds as milliseconds, or a plan?",
    )
    return [finding]


def _columns(subject: Subject, column: str) -> list[Finding]:
    own = utc(column, subject.columns)
    others = [
        name for name in subject.read if name != column and kind_of(subject.columns[name]) == "time"
    ]
    if not others:
        return []
    asked = ", ".join(f"count(*) FILTER ({utc(name, subject.columns)} > {own})" for name in others)
    labelled, *counts = subject.one(
        f"SELECT count(*), {asked} FROM {ROWS} WHERE {POSITIVE} IS NOT NULL"
    )
    return [
        subject.finding(
            "future_rows",
            f"the feature {name!r} is later than {column!r} in {count / labelled:.1%} of the "
            "labelled rows: it is known only afterwards",
            column=name, measured=count / labelled, limit=_MOST, at_most="warn",
            hint="leave it out, unless it is a plan that is there at prediction time",
        )
        for name, count in zip(others, counts, strict=True)
        if labelled and count / labelled > _MOST
    ]  # fmt: skip
