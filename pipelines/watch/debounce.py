"""When what came has been quiet for long enough, or has waited for too long."""

from __future__ import annotations

from components.common.trigger_settings import WatchSettings
from pipelines.watch.cursor import Pending


def seconds_left(pending: Pending, settings: WatchSettings) -> float:
    """Return the seconds until a run is due, if nothing else comes; 0: it is due."""
    left = settings.quiet - pending.quiet
    if settings.longest:
        left = min(left, settings.longest - pending.waited)
    return max(0.0, left)


def is_worth_a_look(pending: Pending, settings: WatchSettings) -> bool:
    """Whether a look may find a run due: something came since the last one, or enough is there."""
    return not pending.version or pending.count >= settings.minimum


def is_ready(pending: Pending, settings: WatchSettings) -> bool:
    """Whether a run is due on what the last look found."""
    enough = bool(pending.version) and pending.count >= settings.minimum
    return enough and seconds_left(pending, settings) == 0
