"""Times as the KFP API has them: RFC 3339, whole seconds, and 1970 for what has not been yet."""

from __future__ import annotations

from datetime import UTC, datetime


def shown(at: int) -> str:
    """An unset time is not left out: the server shows the epoch."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text: str) -> int:
    """Seconds since the epoch.

    Raises:
        ValueError: The text is no RFC 3339 time with a zone.
    """
    at = datetime.fromisoformat(text)
    if at.tzinfo is None or "T" not in text.upper():
        raise ValueError(f"invalid google.protobuf.Timestamp value {text!r}")
    return int(at.timestamp())
