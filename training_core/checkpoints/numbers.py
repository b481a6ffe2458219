"""Plain data as JSON, every number exact.

JSON has no infinity and no NaN, and a best loss so far begins as infinity: such a number becomes
`{"$number": "inf"}`. Python writes each other float so that it reads back as the very same.
"""

from __future__ import annotations

import json
import math
from typing import Any

_MARK = "$number"


def to_json(value: Any) -> bytes:
    """Encode strings, numbers, booleans, None, lists, and dicts with strings as keys.

    The same value gives the same bytes. A tuple comes back as a list, a number as key as a string.

    Raises:
        TypeError: Something else is in it.
    """
    return json.dumps(
        _marked(value), sort_keys=True, allow_nan=False, separators=(",", ":")
    ).encode()


def from_json(data: bytes) -> Any:
    """Decode what `to_json` has encoded.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        return json.loads(data, object_hook=_unmarked)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _marked(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {_MARK: repr(float(value))}
    if isinstance(value, dict):
        return {key: _marked(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_marked(inner) for inner in value]
    return value


def _unmarked(value: dict[str, Any]) -> Any:
    return float(value[_MARK]) if value.keys() == {_MARK} else value
