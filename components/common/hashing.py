"""Hashes of rows: one that stays for years, to divide by; one for a single query, to compare by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.common.tables import quoted
from components.common.values import kind_of, known

_DIGITS = 13  # hexadecimal: 52 bits, what a share as a double can tell apart
_SPLITTER = f"{2**33 + 1}.0::DOUBLE"  # leaves 53 - 33 bits of a double
_EXACT = 2**53  # whole numbers below it are themselves as doubles


def place(names: Sequence[str], columns: Mapping[str, str]) -> str:
    """Return SQL for where a row lies between 0 and 1, as the text that `below` compares with.

    It is the MD5 of the values' text, each with its length before it ("2:42"), a null as "-": a
    function of the values alone, the same in every version of DuckDB, on every platform, in any
    language. 7, 7.0 and "7" lie at one place, and so do a date and its midnight in UTC.

    Args:
        names: Columns, in order.
        columns: DuckDB types by name.
    """
    texts = [_text(name, columns[name]) for name in names]
    parts = [f"coalesce(strlen({t}) || ':' || {t}, '-')" for t in texts]
    return f"md5({' || '.join(parts)})"


def below(place_sql: str, share: float) -> str:
    """Return SQL for whether a place lies in the lowest share of all places."""
    if share >= 1:
        return "true"
    return f"{place_sql} < '{int(share * 16**_DIGITS):0{_DIGITS}x}'"


def alike(names: Sequence[str], columns: Mapping[str, str]) -> str:
    """Return SQL for a number that rows share whose values are as good as equal.

    Real numbers count as equal in 20 bits (6 significant digits), texts whatever their case and
    the blanks around them; NaN is a null. It is DuckDB's own 64-bit hash, fast and good within
    one query: of 20 million different rows the chance that any two meet is 1 in 100,000.
    """
    parts = []
    for name in names:
        kind = kind_of(columns[name])
        if kind == "real":
            value = f"CAST({known(name, columns[name])} AS DOUBLE)"
            # Veltkamp's splitting: a sixth of the time of round() to 6 decimal digits
            parts.append(f"{value} * {_SPLITTER} - ({value} * {_SPLITTER} - {value})")
        elif kind == "text":
            parts.append(f"lower(trim(CAST({quoted(name)} AS VARCHAR)))")
        else:
            parts.append(quoted(name))
    return f"hash({', '.join(parts)})"


def _text(name: str, type_name: str) -> str:
    """A value as text that does not depend on how it is stored."""
    column, kind = quoted(name), kind_of(type_name)
    if kind == "time":
        return f"CAST(epoch_us({column}) AS VARCHAR)"
    if kind == "real":
        value = f"CAST({column} AS DOUBLE)"
        return (
            f"CASE WHEN isnan({value}) THEN 'nan' "
            f"WHEN abs({value}) < {_EXACT} AND {value} = trunc({value}) "
            f"THEN CAST(CAST({value} AS BIGINT) AS VARCHAR) ELSE format('{{:.17g}}', {value}) END"
        )
    return f"CAST({column} AS VARCHAR)"
