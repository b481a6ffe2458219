"""Sends one alert by several channels, side by side, and never takes longer than it was given.

    outcomes = send_all(channels, alert, timeout=20)

Each channel has a daemon thread: neither a server that hangs nor a name that does not resolve can
hold the caller beyond its time, or the process at its exit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from infra.alerts.alert import Alert, Channel, NotSent
from infra.errors import OutsideError

_ATTEMPTS = 4
_FIRST_PAUSE = 0.5  # seconds; doubled after each attempt


@dataclass(frozen=True)
class Sending:
    """What became of an alert on one channel.

    Attributes:
        reason: Why it failed; empty: it did not.
        attempts: That were begun.
    """

    sent: bool
    reason: str
    attempts: int
    seconds: float


def send_all(channels: Sequence[Channel], alert: Alert, *, timeout: float) -> list[Sending]:
    """Send by all channels; return what became of it, in their order.

    What fails and may be better a moment later (`OutsideError`) is tried again after growing
    pauses, four times in all, while there is time; what was refused (`NotSent`) is not.

    Args:
        channels: By which to send.
        alert: What to send.
        timeout: Seconds that all of them together may take. One that is still under way then is
            reported as failed, though its message may have arrived.
    """
    if timeout <= 0:
        return [Sending(False, "no time was left", 0, 0.0) for _ in channels]
    until = time.monotonic() + timeout
    posts = [_Post(channel, alert, until) for channel in channels]
    for post in posts:
        post.start()
    for post in posts:
        post.join(max(0.0, until - time.monotonic()))
    return [post.outcome(timeout) for post in posts]


class _Post(threading.Thread):
    """One channel's sending."""

    def __init__(self, channel: Channel, alert: Alert, until: float) -> None:
        super().__init__(name=f"alert by {channel.name}", daemon=True)
        self._channel, self._alert, self._until = channel, alert, until
        self._began = time.monotonic()
        self._last = Sending(sent=False, reason="", attempts=0, seconds=0.0)
        self._ended = False

    def run(self) -> None:
        pause = _FIRST_PAUSE
        for attempt in range(1, _ATTEMPTS + 1):
            self._last = replace(self._last, attempts=attempt)
            reason, again = self._try()
            seconds = round(time.monotonic() - self._began, 3)
            self._last = Sending(not reason, reason, attempt, seconds)
            over = attempt == _ATTEMPTS or time.monotonic() + pause >= self._until
            if over or not again:
                break
            time.sleep(pause)
            pause *= 2
        self._ended = True

    def _try(self) -> tuple[str, bool]:
        """Return why it failed (empty: it did not), and whether another attempt may help."""
        try:
            self._channel.send(self._alert)
        except NotSent as error:
            return error.what, False
        except OutsideError as error:
            return error.what, True
        except Exception as error:  # noqa: BLE001 (a fault of a channel is not the run's)
            return f"fault in the channel: {type(error).__name__}", False  # its words may tell
        return "", False

    def outcome(self, timeout: float) -> Sending:
        """What is known now."""
        last = self._last
        if self._ended or last.sent:
            return last
        before = f"; before that, {last.reason}" if last.reason else ""
        reason = f"no answer within {timeout:.3g} s, it may have arrived all the same{before}"
        return Sending(False, reason, last.attempts, round(time.monotonic() - self._began, 3))
