"""One thing that is wrong with the inputs, as the looks at them yield it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Something wrong (`fails`) or doubtful, and what to do about it."""

    fails: bool
    message: str
    advice: str
    measured: float | None = None
    limit: float | None = None
