"""An alert as one line on stderr: what a pod's log keeps."""

from __future__ import annotations

import sys

from infra.alerts.alert import Alert


class LogChannel:
    """One line, whatever the alert holds."""

    def __init__(self, *, name: str) -> None:
        self.name = name

    def send(self, alert: Alert) -> None:
        facts = "; ".join(f"{name.lower()} {value}" for name, value in alert.facts())
        line = f"alert: {alert.title}. {' '.join(alert.sentences())} ({facts})"
        print(line, file=sys.stderr, flush=True)
