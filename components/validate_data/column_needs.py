"""What an expectation needs of the columns that it names, looked at before it is evaluated.

A column that is absent, or of another type than the expectation compares it with, is the data's
fault; whatever else keeps an expectation from being evaluated is the suite's. And DuckDB, left to
itself, would compare text with numbers by reading the text as numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from components.common.column_types import family_of, family_of_values

_WORDS = {"number": "a number", "text": "text", "time": "a time", "boolean": "true or false"}

# By a part of the expectation's type: the first that fits.
_OF_NUMBERS = ("mean_to", "median_to", "stdev_to", "sum_to", "quantile_values", "z_scores",
               "kl_divergence")  # fmt: skip
_OF_TEXT = ("regex", "like_pattern", "value_lengths", "strftime", "dateutil", "json")
_OF_BOUNDS = ("values_to_be_between", "column_min_to_be", "column_max_to_be")
_OF_VALUES = ("_in_set", "_contain_set", "_equal_set")


def fault_of(kind: str, arguments: Mapping[str, Any], columns: Mapping[str, str]) -> str:
    """Say what keeps the data from being held against an expectation, or "".

    Args:
        kind: Of the expectation, for example "expect_column_mean_to_be_between".
        arguments: What it was given, parameters filled in.
        columns: Of the data, with their DuckDB types.
    """
    if kind == "expect_column_to_exist":
        return ""
    named = columns_named(arguments)
    absent = [name for name in named if name not in columns]
    if absent:
        return f"no column {absent[0]!r} in the data"
    families = {name: family_of(columns[name]) for name in named}
    if kind.startswith("expect_column_pair") and len(set(families.values())) > 1:
        first, second = named
        return f"{first!r} is {columns[first]}, which cannot be compared with {columns[second]}"
    wanted = _wanted(kind, arguments)
    for name, family in families.items():
        if wanted and family not in wanted:
            words = " or ".join(_WORDS[each] for each in wanted)
            return f"{name!r} is {columns[name]}, not {words}"
    return ""


def columns_named(arguments: Mapping[str, Any]) -> list[str]:
    """Return the columns that an expectation is about."""
    one = [arguments[key] for key in ("column", "column_A", "column_B") if arguments.get(key)]
    return [*one, *arguments.get("column_list", [])]


def _wanted(kind: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return the families that fit; none where any does."""
    if kind == "expect_multicolumn_sum_to_equal" or any(part in kind for part in _OF_NUMBERS):
        return ["number"]
    if any(part in kind for part in _OF_TEXT):
        return ["text"]
    if any(part in kind for part in _OF_BOUNDS):
        bounds = [arguments.get("min_value"), arguments.get("max_value")]
        return _families_of([bound for bound in bounds if bound is not None], text=["time"])
    if any(part in kind for part in _OF_VALUES):
        return _families_of(arguments.get("value_set") or [], text=["text", "time"])
    return []


def _families_of(values: Sequence[Any], *, text: list[str]) -> list[str]:
    """Return what a column may be whose values are compared with these."""
    if not values:
        return []
    family = family_of_values(values)
    if family == "text":
        return text
    if family == "number" and set(values) <= {0, 1}:
        return ["number", "boolean"]  # 0 and 1 are what JSON of older tools has for booleans
    if all(isinstance(value, date) for value in values):  # given as a parameter
        return ["time"]
    return [] if family == "other" else [family]
