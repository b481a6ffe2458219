"""What became of a run's refit, kept in the object store: decided once, however often it is run.

A refit that is killed goes on from its checkpoints. One whose process dies again and again without
getting any further (too little memory, say) is given up: the run must come to its decision.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from components.common.layout import checkpoint_prefix, refit_key
from components.common.refit_figures import RefitFigures
from infra.errors import ObjectMissing
from infra.store import ObjectStore

MOST_DEATHS = 3


class Kept(BaseModel):
    """One run's refit.

    Attributes:
        key: Of what is refitted and how; another one is another refit.
        begun: Attempts since its checkpoints last got further.
        objects: Of its checkpoints, when it was last begun.
        figures: What it came to; None: it has not come to its end.
    """

    model_config = ConfigDict(extra="forbid")

    format: Literal["evertrain/refit/1"] = "evertrain/refit/1"
    key: str
    begun: int = 0
    objects: list[str] = []
    figures: RefitFigures | None = None


def read_kept(store: ObjectStore, run_key: str, *, key: str) -> Kept:
    """Return what is kept of a refit; of another one, or of none: a new one."""
    try:
        kept = Kept.model_validate_json(store.get(refit_key(run_key)))
    except (ObjectMissing, ValidationError):
        return Kept(key=key)
    return kept if kept.key == key else Kept(key=key)


def keep(store: ObjectStore, run_key: str, kept: Kept) -> None:
    """Keep it."""
    store.put(refit_key(run_key), kept.model_dump_json(indent=1).encode())


def begun(store: ObjectStore, run_key: str, kept: Kept) -> Kept:
    """Count one more attempt, from the first if the one before got further than it had begun."""
    objects = sorted(info.key for info in store.list(f"{checkpoint_prefix(kept.key)}/"))
    further = objects != kept.objects
    counted = kept.model_copy(
        update={"begun": 1 if further else kept.begun + 1, "objects": objects}
    )
    keep(store, run_key, counted)
    return counted


def not_counted(store: ObjectStore, run_key: str, kept: Kept) -> None:
    """Take an attempt back that was asked to stop: it did not die."""
    keep(store, run_key, kept.model_copy(update={"begun": kept.begun - 1}))


def clean(store: ObjectStore, kept: Kept) -> None:
    """Remove the checkpoints of a refit that has come to its end; its package is an object."""
    for info in list(store.list(f"{checkpoint_prefix(kept.key)}/")):
        store.delete(info.key)
