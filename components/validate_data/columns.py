"""Columns that say nothing, or that name rows instead of describing them."""

from __future__ import annotations

from dataclasses import dataclass

from components.common.data_figures import Finding
from components.common.tables import quoted
from components.common.values import kind_of, known, number, utc
from components.validate_data.subject import PLACE, POSITIVE, ROWS, SAMPLE, Subject

_LOOKED_AT = 20_000  # different values of a column, of which rows are counted
_LEAST = 100  # values before "nearly every row has a value of its own" is said
_OWN_VALUE = 0.9  # different values a row
# Whole numbers drawn at random out of four times as many as there are rows would repeat: they
# would have 0.88 different values a row. So more, in so narrow a range, have been handed out.
_DENSE = 4
_NO_MEASURE = 2.0**53  # wider than any count or measure: a hash, a random id
_MONOTONE = 0.999  # rank correlation


@dataclass(frozen=True)
class ColumnFacts:
    """What one query found of a column.

    Attributes:
        known: Rows with a value.
        known_positive: Of the positive rows.
        known_negative: Of the negative rows.
        same: Whether all values are the same.
        sampled: Rows of some 20,000 of its values, or of all of them.
        different: Number of those values.
        in_all: Different values in all rows, as that sample has it.
        span: Largest number minus smallest.
    """

    known: int
    known_positive: int
    known_negative: int
    same: bool
    sampled: int
    different: int
    in_all: int
    span: float

    @property
    def own_value(self) -> float:
        """Different values a row, up to 1; 0 where values are few, for those may all be rare ones.

        Counted, because DuckDB's own estimate is up to 20 % off.
        """
        return self.different / self.sampled if self.different >= _LEAST else 0.0


def facts_of(subject: Subject) -> dict[str, ColumnFacts]:
    """Look at all columns in one scan.

    Different values are counted among those whose own hash falls into one class of many: a value
    is in with all its rows or not at all, so values a row are met without bias in little memory.
    """
    every = max(1, subject.rows // _LOOKED_AT)
    asked = []
    for name, type_name in subject.columns.items():
        value, figure = known(name, type_name), number(name, type_name)
        chosen = f"hash({quoted(name)}) % {every} = 0"
        span = "NULL" if kind_of(type_name) == "text" else f"max({figure}) - min({figure})"
        same = f"min({value}) = max({value})" if span == "NULL" else f"{span} = 0"
        # Sums: a count with FILTER takes twice as long.
        tests = (POSITIVE, f"NOT {POSITIVE}", chosen)
        counts = [f"sum(CAST({test} AND {value} IS NOT NULL AS INT))" for test in tests]
        asked.append(
            f"count({value}), {', '.join(counts)}, count(DISTINCT {value}) FILTER ({chosen}), "
            f"{same}, {span}"
        )
    answer = subject.one(f"SELECT {', '.join(asked)} FROM {ROWS}")
    facts = {}
    for i, name in enumerate(subject.columns):
        count, positive, negative, sampled, different, same, span = answer[7 * i : 7 * i + 7]
        facts[name] = ColumnFacts(
            known=count, known_positive=positive or 0, known_negative=negative or 0,
            same=bool(same), sampled=sampled or 0, different=different,
            in_all=different * every, span=span or 0.0,
        )  # fmt: skip
    return facts


def find_missing(subject: Subject, facts: dict[str, ColumnFacts]) -> list[Finding]:
    """Columns without a value in any row."""
    return [
        subject.finding(
            "missing_column", f"the column {name!r} has no value in any of {subject.rows} rows",
            column=name, measured=1.0,
            hint="ask its source whether it still comes; else leave it out",
        )
        for name, fact in facts.items()
        if not fact.known and name != subject.label and subject.rows
    ]  # fmt: skip


def find_constant(subject: Subject, facts: dict[str, ColumnFacts]) -> list[Finding]:
    """Columns with one value in all rows; some nulls beside it say something."""
    return [
        subject.finding(
            "constant_column",
            f"the column {name!r} has the same value in all {subject.rows} rows",
            column=name, measured=1.0,
            hint="it teaches nothing; a sensor that is stuck or a filter at the source looks alike",
        )
        for name, fact in facts.items()
        if fact.same and fact.known == subject.rows > 1 and name != subject.label
    ]  # fmt: skip


def find_ids(subject: Subject, facts: dict[str, ColumnFacts]) -> list[Finding]:
    """Features that name rows: a model learns them by heart, and new rows have new ones.

    A text or a whole number is an id where nearly every row has a value of its own and the values
    are no measure: handed out one by one, hashes, or texts that are no prose. Any number is one
    that puts the rows in the order of time.
    """
    found = []
    for name in subject.read:
        why = _names_rows(subject, name, facts[name]) or _follows_time(subject, name, facts[name])
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


def _names_rows(subject: Subject, name: str, fact: ColumnFacts) -> tuple[str, float, float] | None:
    share = fact.own_value
    if share < _OWN_VALUE:
        return None
    is_key = subject.settings.data.row_key == [name]
    no_measure = fact.span <= _DENSE * fact.known or fact.span >= _NO_MEASURE
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


def _follows_time(
    subject: Subject, name: str, fact: ColumnFacts
) -> tuple[str, float, float] | None:
    if subject.time_column in (None, name) or fact.known < _LEAST:
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
