"""Patterns of parameters' names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from training_core.errors import ConfigurationError

_SHOWN = 12


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Say whether a name is meant by one of the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def matching(names: Sequence[str], patterns: Sequence[str], *, setting: str) -> set[str]:
    """Return the names that patterns mean.

    Raises:
        ConfigurationError: A pattern means none: most likely it is misspelt.
    """
    for pattern in patterns:
        if not matches_any(names, pattern):
            raise ConfigurationError(
                f"{setting}: {pattern!r} means none of the model's {len(names)} names",
                hint=f"they are {listed(names)}",
            )
    return {name for name in names if matches(name, patterns)}


def matches_any(names: Iterable[str], pattern: str) -> bool:
    """Say whether a pattern means any of the names."""
    return any(fnmatchcase(name, pattern) for name in names)


def listed(names: Sequence[str]) -> str:
    """Return names for a message, the first of many."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
