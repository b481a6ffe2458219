"""What the watcher says: one plain line an event, or one JSON object a line."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import TextIO


class Teller:
    """Writes lines.

    Args:
        as_json: One JSON object a line.
        file: To write to; None: stdout, for it is what the command has to say.
    """

    def __init__(self, *, as_json: bool, file: TextIO | None = None) -> None:
        self._as_json, self._file = as_json, file
        self._states: dict[str, str] = {}

    def say(self, event: str, words: str, **facts: str | float | None) -> None:
        """Say that something happened.

        Args:
            event: Its kind, one word.
            words: A sentence.
            facts: Figures and names, for programs.
        """
        now = datetime.now(UTC)
        if self._as_json:
            known = {name: fact for name, fact in facts.items() if fact is not None}
            stamp = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            line = json.dumps({"time": stamp, "event": event, "message": words} | known)
        else:
            line = f"{now:%Y-%m-%d %H:%M:%S} UTC  {event:<9} {' '.join(words.split())}"
        print(line, file=self._file or sys.stdout, flush=True)

    def state(self, event: str, words: str, **facts: str | float | None) -> None:
        """Say something that stays so, once: again only after something else was so."""
        if self._states.get(event) != words:
            self._states[event] = words
            self.say(event, words, **facts)

    def over(self, event: str) -> bool:
        """Say no more that this is so; return whether it was."""
        return self._states.pop(event, None) is not None
