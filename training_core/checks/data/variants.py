"""Other ways to write a value, and whether a text holds a number that float() does not read."""

from __future__ import annotations

import re
from typing import Any

NEVER_SEEN = "zqxjkvwpt"  # a value that no column holds

# A sign or a currency, digits with marks between them, and a unit of a few letters: -1.234,50 €
_NUMBER = re.compile(
    r"^\s*[-+−]?\s*(?P<before>[$€£¥]?)\s*[-+−]?\d{1,3}(?:[.,'’\s_\u00a0]?\d{1,3})*"
    r"(?:[.,]\d+)?\s*(?P<unit>[%°€$£¥]|[^\W\d_]{1,4}(?:/[^\W\d_]{1,4})?)?\s*$"
)


def variants_of(value: Any) -> list[Any]:
    """Return the same value in other letters, without its punctuation, or of another type."""
    found: list[Any] = []
    if isinstance(value, str):
        bare = re.sub(r"^\W+|\W+$", "", value)
        found = [value.lower(), bare.lower(), bare, value.upper(), value.title()]
        if bare.lstrip("-").isdigit():
            found.append(int(bare))
    elif isinstance(value, bytes):
        found = [value.decode(errors="ignore")]
    elif isinstance(value, float) and value.is_integer():
        found = [int(value), str(int(value)), str(value)]
    elif isinstance(value, int):
        found = [str(value), float(value)]
    own = (type(value), value)
    kept = {(type(other), other): other for other in found if (type(other), other) != own}
    return [other for other in kept.values() if other != ""]


def plainly(value: Any) -> str:
    """Return a value without case, blanks, punctuation and type: twins have the same."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return re.sub(r"[\W_]+", "", str(value)).casefold()


def is_marked_number(value: Any) -> bool:
    """Say whether a text holds a number with a comma, a unit, a currency, marks of thousands."""
    if not isinstance(value, str) or not any(mark.isdigit() for mark in value):
        return False
    try:
        float(value)
    except ValueError:
        return _NUMBER.match(value) is not None
    return False
