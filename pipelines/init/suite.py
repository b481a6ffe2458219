"""The Great Expectations suite: what a snapshot has to fulfil, with the reason for each.

Plain data of the shape that `ExpectationSuite.to_json_dict()` gives; Great Expectations itself, 3
seconds of imports, is not needed to write it.

What is critical stops a run. A sample cannot prove that a value is impossible, so what it merely
did not hold warns: a person who knows better raises it.
"""

from __future__ import annotations

import math
from datetime import date, datetime
from typing import Any

from components.common.tables import quoted
from pipelines.init.columns import Column
from pipelines.init.proposal import Proposal

Expectation = dict[str, Any]

_FAMILIES = {  # a whole number may be stored wider or narrower: the values are the same
    "integer": ["TINYINT", "SMALLINT", "INTEGER", "BIGINT"],
    "unsigned": ["UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"],
}


def suite_of(proposal: Proposal, *, name: str) -> dict[str, Any]:
    """Return the suite as JSON-able data."""
    found = [
        *_table(proposal),
        *_key(proposal),
        *_time(proposal),
        *_label(proposal),
    ]
    for feature in proposal.features.used:
        column = proposal.column(feature)
        found += [_type(column), *_nulls(column), *_values(column)]
    return {"name": name, "expectations": found, "meta": {}}


def _expectation(
    type_: str, notes: str, *, severity: str = "critical", **kwargs: Any
) -> Expectation:
    return {
        "type": type_, "kwargs": kwargs, "meta": {}, "notes": notes, "severity": severity
    }  # fmt: skip


def _table(proposal: Proposal) -> list[Expectation]:
    asked = [*proposal.key, proposal.time, proposal.label.name, *proposal.features.used]
    least = _rounded(proposal.sample.likely_rows / 2)
    return [
        _expectation(
            "expect_table_columns_to_match_set",
            "The columns that are read. A new one does no harm: the task names what it reads.",
            column_set=[name for name in dict.fromkeys(asked) if name],
            exact_match=False,
        ),
        _expectation(
            "expect_table_row_count_to_be_between",
            f"Half of the {proposal.sample.likely_rows:,} rows that were there: less is a loss.",
            min_value=least,
        ),
    ]


def _key(proposal: Proposal) -> list[Expectation]:
    notes = "One row each: data that landed twice shows here."
    nulls = [
        _expectation("expect_column_values_to_not_be_null", "Part of the row's key.", column=name)
        for name in proposal.key
        if name != proposal.time
    ]
    if len(proposal.key) == 1:
        unique = _expectation("expect_column_values_to_be_unique", notes, column=proposal.key[0])
    else:
        unique = _expectation(
            "expect_compound_columns_to_be_unique", notes, column_list=proposal.key
        )
    return [*nulls, unique]


def _time(proposal: Proposal) -> list[Expectation]:
    if not proposal.time:
        return []
    column = proposal.column(proposal.time)
    found = [
        _type(column),
        _expectation(
            "expect_column_values_to_not_be_null",
            "Rows are divided by it.",
            column=column.name,
        ),
    ]
    days = freshness(proposal)
    if days:
        newest = f"CAST(max({quoted(column.name)}) AS TIMESTAMP)"
        found.append(
            {
                **_expectation(
                    "unexpected_rows_expectation",
                    f"Fresh: the newest row is at most {days} days old.",
                    severity="warning",
                    unexpected_rows_query=f"SELECT newest FROM (SELECT {newest} AS newest FROM "
                    "{batch}) AS rows_of_it WHERE newest < CAST(now() AT TIME ZONE 'UTC' AS "
                    f"TIMESTAMP) - INTERVAL {days} DAY",
                ),
            }
        )
    return found


def freshness(proposal: Proposal) -> int:
    """Days within which new rows should come; 0: the data was old already, so nobody can say.

    Twice what an object of the source spans, as if each had come when it was full; a week at least.
    """
    if not proposal.time:
        return 0
    column = proposal.column(proposal.time)
    span = (_day(column.high) - _day(column.low)).days + 1
    days = max(7, math.ceil(2 * span / len(proposal.sample.source.objects)))
    old = (proposal.now.date() - _day(column.high)).days
    return days if old <= days else 0


def _label(proposal: Proposal) -> list[Expectation]:
    label = proposal.label
    column = proposal.column(label.name)
    missing = 1 - label.labelled
    found = [
        _type(column),
        _expectation(
            "expect_column_values_to_be_in_set",
            "Binary: anything else is a mistake.",
            column=label.name,
            value_set=[label.negative, label.positive],
        ),
    ]
    if mostly := _mostly(missing):
        found.append(
            _expectation(
                "expect_column_values_to_not_be_null",
                f"{missing:.1%} of the sample have no label; nothing is learned from those.",
                column=label.name,
                mostly=mostly,
            )
        )
    if label.plain and column.kind != "boolean":
        low, high = label.rate / 2, 1 - (1 - label.rate) / 2
        found.append(
            _expectation(
                "expect_column_mean_to_be_between",
                f"{label.rate:.1%} of the sample are positive: half of that, or half of the "
                "others, would be another problem.",
                severity="warning",
                column=label.name,
                min_value=_rounded(low),
                max_value=_rounded(high),
            )
        )
    return found


def _type(column: Column) -> Expectation:
    family = next((f for f in _FAMILIES.values() if column.type in f), [column.type])
    if column.type in ("FLOAT", "DOUBLE"):
        family = ["FLOAT", "DOUBLE"]
    return _expectation(
        "expect_column_values_to_be_in_type_list",
        "As it was; a number written as text is another column.",
        column=column.name,
        type_list=family,
    )


def _nulls(column: Column) -> list[Expectation]:
    mostly = _mostly(column.null_share)
    if not mostly:
        return []
    if not column.nulls:
        notes = "None was seen. One in a hundred is put up with: a null is read as unknown."
    else:
        notes = f"{column.null_share:.1%} of the sample: twice that, and two per cent, are let be."
    # A share that is large already was seen to come and go by itself.
    severity = "critical" if column.null_share <= 0.05 else "warning"
    return [
        _expectation(
            "expect_column_values_to_not_be_null",
            notes,
            severity=severity,
            column=column.name,
            mostly=mostly,
        )
    ]


def _values(column: Column) -> list[Expectation]:
    if column.values:
        return [
            _expectation(
                "expect_column_values_to_be_in_set",
                "Those that were seen; a new one is read as unknown.",
                severity="warning",
                column=column.name,
                value_set=sorted(column.values),
                mostly=0.99,
            )
        ]
    if column.kind not in ("integer", "float") or column.low is None:
        return []
    low, high = float(column.low), float(column.high)
    margin = (high - low) / 2 or max(1.0, abs(low)) / 2
    step = 10.0 ** math.floor(math.log10(margin / 2))  # of the bounds: outwards, for people
    least = 0.0 if 0 <= low <= margin else math.floor((low - margin) / step) * step
    most = 0.0 if -margin <= high <= 0 else math.ceil((high + margin) / step) * step
    return [
        _expectation(
            "expect_column_values_to_be_between",
            f"From {low:g} to {high:g} in the sample; half of that span more on each side, but not "
            "across zero. Make it critical where nature sets the bound.",
            severity="warning",
            column=column.name,
            min_value=_rounded(least, digits=12),
            max_value=_rounded(most, digits=12),
            mostly=0.999,
        )
    ]


def _mostly(nulls: float) -> float:
    """Share that must have a value: none missing so far lets 1% go, else twice as many and 2%."""
    return round(max(0.0, 0.99 if not nulls else 1 - 2 * nulls - 0.02), 3)


def _rounded(value: float, *, digits: int = 2) -> float | int:
    """A number as a person would write it."""
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


def _day(value: date | datetime) -> date:
    return value.date() if isinstance(value, datetime) else value
