"""Filters, orders and page tokens of the KFP API.

After `filter/filter.go` and `list/list.go` of kubeflow/pipelines: texts compare without case, times
have whole seconds, what ties is ordered by its id, a token names the first row of the next page.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable
from typing import Any, Protocol
from urllib.parse import unquote_plus

from tests.cluster.kfp_errors import INVALID, KfpError
from tests.cluster.kfp_times import seconds

DEFAULT_PAGE, LARGEST_PAGE = 20, 200
_VALUES: dict[str, Callable[[Any], Any]] = {
    "intvalue": int, "longvalue": int, "stringvalue": str, "timestampvalue": seconds,
    "intvalues": int, "longvalues": int, "stringvalues": str,
}  # fmt: skip
_NUMBERS = {
    1: "EQUALS", 2: "NOT_EQUALS", 3: "GREATER_THAN", 5: "GREATER_THAN_EQUALS", 6: "LESS_THAN",
    7: "LESS_THAN_EQUALS", 8: "IN", 9: "IS_SUBSTRING",
}  # fmt: skip
_OPERATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "EQUALS": lambda have, want: have == want,
    "NOT_EQUALS": lambda have, want: have != want,
    "GREATER_THAN": lambda have, want: have > want,
    "GREATER_THAN_EQUALS": lambda have, want: have >= want,
    "LESS_THAN": lambda have, want: have < want,
    "LESS_THAN_EQUALS": lambda have, want: have <= want,
    "IN": lambda have, want: have in want,
    "IS_SUBSTRING": lambda have, want: want in have,
}


class Row(Protocol):
    """What can be listed: an id, and a table of what can be asked for by name."""

    @property
    def key(self) -> str: ...

    def columns(self) -> dict[str, Any]: ...


def page_of(rows: Iterable[Row], query: dict[str, str], *, kind: str) -> tuple[list[Any], int, str]:
    """The rows of one page, how many rows match in all, and the token of the next page."""
    try:
        size = int(query.get("page_size") or 0)
    except ValueError:
        raise KfpError(INVALID, f"type mismatch, parameter: page_size, {query}") from None
    if size < 0:
        raise KfpError(INVALID, f"The page size should be greater than 0. Got {size}")
    size = min(size or DEFAULT_PAGE, LARGEST_PAGE)
    column, descending = _order(query.get("sort_by", ""))
    predicates = _predicates(query.get("filter", ""))
    start: list[Any] | None = None
    if token := query.get("page_token", ""):
        told = _token(token)
        asked = {"sort": column, "desc": descending, "filter": predicates}
        again = bool(query.get("sort_by") or query.get("filter"))
        if again and {name: told[name] for name in asked} != asked:
            raise KfpError(
                INVALID,
                "page token does not match the supplied sort by and/or filtering criteria. "
                "Either specify the same criteria or leave the latter empty if page token is "
                "specified",
            )
        column, descending, predicates = told["sort"], told["desc"], told["filter"]
        start = told["start"]
    matching = [row for row in rows if all(_meets(row, each) for each in predicates)]
    matching.sort(key=lambda row: _place(row, column, kind), reverse=descending)
    total = len(matching)
    if start is not None:
        matching = [
            row
            for row in matching
            if (_place(row, column, kind) <= start if descending else
                _place(row, column, kind) >= start)
        ]  # fmt: skip
    if len(matching) <= size:
        return matching, total, ""
    following = {
        "sort": column, "desc": descending, "filter": predicates,
        "start": _place(matching[size], column, kind),
    }  # fmt: skip
    return matching[:size], total, base64.b64encode(json.dumps(following).encode()).decode()


def _order(text: str) -> tuple[str, bool]:
    words = text.lower().split()
    if len(words) > 2 or (len(words) == 2 and words[1] not in ("asc", "desc")):
        raise KfpError(
            INVALID,
            f'Received invalid sort by format "{text}". Supported format: "field_name", '
            '"field_name desc", or "field_name asc"',
        )
    return (words[0] if words else "created_at"), words[1:] == ["desc"]


def _place(row: Row, column: str, kind: str) -> list[Any]:
    table = row.columns()
    if column not in table:
        raise KfpError(INVALID, f'Invalid sorting field: "{column}" on listable type {kind}')
    return [table[column], row.key]


def _token(text: str) -> dict[str, Any]:
    try:
        told = json.loads(base64.b64decode(text, validate=True))
        return {name: told[name] for name in ("sort", "desc", "filter", "start")}
    except (ValueError, KeyError, TypeError, binascii.Error):
        raise KfpError(INVALID, "Invalid package token") from None


def _predicates(text: str) -> list[dict[str, Any]]:
    """The server decodes the filter once more than HTTP does: a `+` in it becomes a space."""
    if not text:
        return []
    try:
        listed = json.loads(unquote_plus(text)).get("predicates", [])
        return [_predicate(each) for each in listed]
    except (ValueError, AttributeError, TypeError) as error:
        said = f"failed to parse valid filter from {text!r}: {error}"
        raise KfpError(INVALID, said) from None


def _predicate(told: dict[str, Any]) -> dict[str, Any]:
    names = {name.lower().replace("_", ""): value for name, value in told.items()}
    operation = names.pop("operation", "OPERATION_UNSPECIFIED")
    operation = _NUMBERS.get(operation, operation)  # an enum may come as its number
    key = names.pop("key", "")
    if len(names) != 1 or next(iter(names)) not in _VALUES:
        raise ValueError(f"unknown value {sorted(names)}")
    ((form, value),) = names.items()
    if operation not in _OPERATIONS:
        raise KfpError(INVALID, f"invalid predicate operation: {operation}")
    if not key:
        raise KfpError(
            INVALID, f"Predicate key cannot be empty for operation {operation} and value {value}"
        )
    many = form.endswith("values")
    if many != (operation == "IN"):
        said = f"cannot use scalar operator {operation} on array type" if many else (
            f"cannot use IN operator with scalar type {form}")  # fmt: skip
        raise KfpError(INVALID, said)
    if operation == "IS_SUBSTRING" and form != "stringvalue":
        raise KfpError(
            INVALID, f"cannot use non string value type {form} with operator {operation}"
        )
    read = _VALUES[form]
    values = [read(each) for each in (value.get("values", []) if many else [value])]
    lowered = [each.lower() if isinstance(each, str) else each for each in values]
    return {"operation": operation, "key": key, "value": lowered if many else lowered[0]}


def _meets(row: Row, predicate: dict[str, Any]) -> bool:
    table = row.columns()
    if predicate["key"] not in table:
        raise KfpError(
            INVALID, f'no support for filtering on unrecognized field "{predicate["key"]}"'
        )
    have = table[predicate["key"]]
    have = have.lower() if isinstance(have, str) else have
    try:
        return _OPERATIONS[predicate["operation"]](have, predicate["value"])
    except TypeError:
        return False  # the database compares a text with a number without complaint
