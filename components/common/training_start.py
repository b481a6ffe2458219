"""Which weights a run's training begins with: settled once, by snapshot_data, and kept.

They are part of the run's key, as `training.start` asks for them: a run that begins with another
champion, or with another file, is another run. It lies at `keys/<run key>/start.json`, so that a
training that goes on days later, or on another machine, begins with the very same.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from components.common.layout import digest_of, start_key
from infra.errors import ObjectMissing
from infra.store import ObjectStore


class TrainingStart(BaseModel):
    """What a training begins with.

    Attributes:
        weights: As in `training.start.weights`.
        version: The champion's, in the model registry; empty: there was none yet.
        package: sha256 of each of its package's files.
        seen: What it has seen, as in its promotion entry.
        file: As in `training.start.file`.
        sha256: Of the file, which lies under it in the object store.
    """

    model_config = ConfigDict(extra="forbid")

    format: Literal["evertrain/start/1"] = "evertrain/start/1"
    weights: Literal["champion", "file"]
    version: str = ""
    package: dict[str, str] = {}
    seen: dict[str, str] = {}
    file: str = ""
    sha256: str = ""

    @property
    def digest(self) -> str:
        """Hash of what makes one start another than the next: contents, not names."""
        return digest_of([self.weights, self.version, self.package, self.sha256])

    @property
    def words(self) -> str:
        """It in words."""
        if self.weights == "file":
            return f"{self.file} (sha256 {self.sha256[:12]}…)"
        if self.version:
            return f"champion {self.version}"
        return "as initialised, for there was no champion yet"


def keep_start(store: ObjectStore, run_key: str, start: TrainingStart) -> None:
    """Keep what a run's training begins with."""
    store.put(start_key(run_key), start.model_dump_json(indent=1).encode())


def kept_start(store: ObjectStore, run_key: str) -> TrainingStart | None:
    """Return what a run's training begins with; None: nothing was settled."""
    try:
        return TrainingStart.model_validate_json(store.get(start_key(run_key)))
    except ObjectMissing:
        return None
