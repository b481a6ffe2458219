"""Which weights a run's training begins with, and who teaches it: settled once, and kept.

They are part of the run's key, as `training.start` and `training.distillation` ask for them: a run
that begins with another champion, or with another file, is another run. snapshot_data settles them;
they lie at `keys/<run key>/start.json` and `teacher.json`, so that a training that goes on days
later, or on another machine, has the very same.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from components.common.layout import digest_of, start_key, teacher_key
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
    without: ClassVar[str] = "as initialised, for there was no champion yet"

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
        return self.without

    @property
    def is_there(self) -> bool:
        """False where it should be the champion's, and there was none yet."""
        return bool(self.version or self.sha256)


class TrainingTeacher(TrainingStart):
    """Whose predictions a training learns from; attributes as of a start."""

    without: ClassVar[str] = "nobody, for there was no champion yet"


def keep_start(store: ObjectStore, run_key: str, start: TrainingStart) -> None:
    """Keep what a run's training begins with."""
    store.put(start_key(run_key), start.model_dump_json(indent=1).encode())


def keep_teacher(store: ObjectStore, run_key: str, teacher: TrainingTeacher) -> None:
    """Keep whom a run's training learns from."""
    store.put(teacher_key(run_key), teacher.model_dump_json(indent=1).encode())


def kept_teacher(store: ObjectStore, run_key: str) -> TrainingTeacher | None:
    """Return whom a run's training learns from; None: nobody was settled."""
    try:
        return TrainingTeacher.model_validate_json(store.get(teacher_key(run_key)))
    except ObjectMissing:
        return None


def kept_start(store: ObjectStore, run_key: str) -> TrainingStart | None:
    """Return what a run's training begins with; None: nothing was settled."""
    try:
        return TrainingStart.model_validate_json(store.get(start_key(run_key)))
    except ObjectMissing:
        return None
