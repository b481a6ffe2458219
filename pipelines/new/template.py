"""Which templates there are. The command line reads this, so it imports nothing of weight."""

from __future__ import annotations

from enum import StrEnum


class Template(StrEnum):
    """What a project is about."""

    TABULAR = "tabular"
    IMAGE = "image"
    TEXT = "text"
