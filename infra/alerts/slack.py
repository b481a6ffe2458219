"""An alert for Slack's incoming webhooks, and for those of others that understand them.

https://docs.slack.dev/messaging/formatting-message-text says what is escaped: `&`, `<` and `>`,
without which `<!channel>` in a row of data would call everybody. Sections hold 3,000 characters.
"""

from __future__ import annotations

import json
from typing import Any

from infra.alerts.alert import Alert
from infra.alerts.post import post

_LONGEST = 2900
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


class SlackChannel:
    """Posts to one incoming webhook, whose URL is its secret."""

    def __init__(self, *, name: str, url: str, timeout: float) -> None:
        self.name = name
        self._url, self._timeout = url, timeout

    def send(self, alert: Alert) -> None:
        body = json.dumps(message(alert), allow_nan=False).encode()
        post(self._url, body, headers={"User-Agent": "evertrain"}, timeout=self._timeout)


def message(alert: Alert) -> dict[str, Any]:
    """What is posted: `text` is for notifications and for readers that know no blocks."""
    facts = "\n".join(f"*{escaped(name)}:* {escaped(value)}" for name, value in alert.facts())
    sections = [
        f"*{escaped(alert.title)}*",
        escaped("\n".join(alert.sentences())),
        facts,
    ]
    return {
        "text": escaped(f"{alert.title}. {alert.headline}"),
        "blocks": [
            {"type": "section", "text": {"type": "mrkdwn", "text": words, "verbatim": True}}
            for words in sections
            if words
        ],
    }


def escaped(text: str) -> str:
    """Escape a text, and cut it where it would grow too long: never inside an escape."""
    pieces: list[str] = []
    length = 0
    for character in text:
        piece = _ESCAPES.get(character, character)
        length += len(piece)
        if length > _LONGEST:
            return "".join(pieces) + "…"
        pieces.append(piece)
    return "".join(pieces)
