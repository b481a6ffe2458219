"""Being asked to stop: by SIGTERM, by Ctrl-C, or by a notice that this machine goes away."""

from __future__ import annotations

import json
import os
import signal
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from infra.store import ObjectStore

NOTICE = "EVERTRAIN_STOP_FILE"
"""A file whose appearance is a spot notice; whoever watches the provider's metadata writes it."""


class StopRequest:
    """Asks the loop to save and end; a second signal ends at once."""

    def __init__(self) -> None:
        self.asked = False
        notice = os.environ.get(NOTICE, "")
        self._notice = Path(notice) if notice else None
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask)

    def _ask(self, signum: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __call__(self) -> bool:
        if self._notice is not None and not self.asked:
            self.asked = self._notice.exists()
        return self.asked


class Marker:
    """`stopped.json` beside the checkpoints: training was stopped in good order, and can go on.

    torchrun's exit code is 1 even then, so this is what tells a stop from a failure.

    Args:
        store: Of the checkpoints.
        prefix: Of the training's checkpoints.
    """

    def __init__(self, store: ObjectStore, prefix: str) -> None:
        self._store, self._key = store, f"{prefix}/stopped.json"

    def leave(self, *, step: int, samples: int) -> None:
        """Say where training will go on."""
        said = {"step": step, "samples": samples, "at": datetime.now(UTC).isoformat()}
        self._store.put(self._key, json.dumps(said).encode())

    def remove(self) -> None:
        """Training has come to its end."""
        self._store.delete(self._key)
