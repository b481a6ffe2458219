"""One thing that an augmentation does and should not, as the looks at it return it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Harm:
    """What an augmentation does to raw examples, or to what is asked of the network.

    Attributes:
        said: In words.
        advice: What to do.
        measured, limit: The figure that says so.
        broken: Whether it is beyond doubt.
    """

    said: str
    advice: str
    measured: float
    limit: float
    broken: bool
