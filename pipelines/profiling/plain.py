"""What was found as plain data, for --json: places as text, what is not a number as null."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

_TEXTS = {"Place", "Change"}  # told by what they say of themselves


def plain(value: Any) -> Any:
    """Return it as JSON-able data."""
    if is_dataclass(value) and not isinstance(value, type):
        if type(value).__name__ in _TEXTS:
            return str(value)
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
