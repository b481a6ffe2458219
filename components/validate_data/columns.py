"""Columns that say nothing, or that name rows instead of describing them."""

from __future__ import annotations

from components.common.data_figures import Finding
from components.common.tables import quoted
from components.common.values import kind_of, number, utc
from components.validate_data.drawn import PLACE
from components.validate_data.subject import SAMPLE, Subject

_LOOKED_AT = 20_000  # rows whose order is compared with that of their times
_LEAST = 100  # values before "nearly every row has a value of its own" is said
_OWN_VALUE = 0.9  # different values a row
# Whole numbers drawn at random out of four times as many as there are rows would repeat: they
# would have 0.88 different values a row. So more, in so narrow a range, have been handed out.
_DENSE = 4
_NO_MEASURE = 2.0**53  # wider than any count or measure: a hash, a random id
_MONOTONE = 0.999  # rank correlation


def find_missing(subject: Subject) -> list[Finding]:
    """Columns without a value in any row."""
    return [
        subject.finding(
            "missing_column", f"the column {name!r} has no value in any of {subject.rows} rows",
            column=name, measured=1.0,
            hint="ask its source whether it still comes; else leave it out",
        )
        for name, fact in subject.seen.items()
        if not fact.filled and name not in subject.label_columns and subject.rows
    ]  # fmt: skip


def find_constant(subject: Subject) -> list[Finding]:
    """Columns with one value in all rows; some nulls beside it say something."""
    return [
        subject.finding(
            "constant_column",
            f"the column {name!r} has the same value in all {subject.rows} rows",
            column=name, measured=1.0,
            hint="it teaches nothing; a sensor that is stuck or a filter at the source looks alike",
        )
        for name, fact in subject.seen.items()
        if fact.same and fact.filled == subject.rows > 1 and name not in subject.label_columns
    ]  # fmt: skip


def find_ids(subject: Subject) -> list[Finding]:
    """Features that name rows: a model learns them by heart, and new rows have new ones.

    A text or a whole number is an id where nearly every row has a value of its own and the values
    are no measure: handed out one by one, hashes, or texts that are no prose. Any number is one
    that puts the rows in the order of time.
    """
    found = []
    for name in subject.read:
        if name in subject.label_columns:  # a sequence that is learned: each is another
            continue
        why = _names_rows(subject, name) or _follows_time(subject, name)
        if why:
            words, measured, limit = why
            found.append(
                subject.finding(
                    "id_feature", f"the feature {name!r} {words}", column=name,
                    measured=measured, limit=limit,
                    hint="new rows will have values that no training has seen: leave it out, or "
                    "use what it stands for",
                )
            )  # fmt: skip
    return found


def _names_rows(subject: Subject, name: str) -> tuple[str, float, float] | None:
    seen = subject.seen[name]
    share = seen.own_value or 0.0
    if share < _OWN_VALUE or (seen.distinct or 0) < _LEAST:  # few values may all be rare ones
        return None
    is_key = subject.settings.data.row_key == [name]
    no_measure = seen.span <= _DENSE * seen.filled or seen.span >= _NO_MEASURE
    if is_key or (no_measure and _is_whole(subject, name)) or _is_code(subject, name):
        what = "is the row's key" if is_key else "names rows"
        return f"{what}: {share:.1%} of its values are there once only", share, _OWN_VALUE
    return None


def _is_whole(subject: Subject, name: str) -> bool:
    """Whether a column holds whole numbers; with nulls they may have become real ones."""
    kind = kind_of(subject.columns[name])
    if kind != "real":
        return kind == "whole"
    value = number(name, subject.columns[name])
    (whole,) = subject.one(f"SELECT bool_and({value} = trunc({value})) FROM {SAMPLE}")
    return bool(whole)


def _is_code(subject: Subject, name: str) -> bool:
    """Whether a column is text, and mostly without a blank: prose is each time different, too."""
    if kind_of(subject.columns[name]) != "text":
        return False
    value = f"CAST({quoted(name)} AS VARCHAR)"
    (prose,) = subject.one(f"SELECT avg(CAST(contains(trim({value}), ' ') AS INT)) FROM {SAMPLE}")
    return prose is not None and prose < 0.5


def _follows_time(subject: Subject, name: str) -> tuple[str, float, float] | None:
    if subject.time_column in (None, name) or subject.seen[name].filled < _LEAST:
        return None
    assert subject.time_column is not None
    value = number(name, subject.columns[name])
    time = utc(subject.time_column, subject.columns)
    ranks = ", ".join(
        f"rank() OVER (ORDER BY {x}) + count(*) OVER (PARTITION BY {x}) / 2.0 AS {x}_rank"
        for x in ("value", "time")
    )
    count, order = subject.one(
        f"SELECT count(*), corr(value_rank, time_rank) FROM (SELECT {ranks} FROM "
        f"(SELECT {value} AS value, epoch_us({time}) AS time FROM {SAMPLE} "
        f"ORDER BY {PLACE} LIMIT {_LOOKED_AT}) WHERE value IS NOT NULL AND time IS NOT NULL)"
    )
    if count < _LEAST or order is None or not abs(order) > _MONOTONE:
        return None
    words = f"puts the rows in the order of time (rank correlation {order:.4f})"
    return words, abs(order), _MONOTONE
