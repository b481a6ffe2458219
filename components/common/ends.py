"""How runs ended of late, as one small object: what a watcher reads at each turn.

ends.json    by outcome, the last run that ended so; and which outcome came last
"""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from components.common.run_record import RunRecord
from infra.errors import ObjectMissing, OutsideError
from infra.store import ObjectStore

KEY = "ends.json"
_ATTEMPTS = 5


class End(BaseModel):
    """One run's end.

    Attributes:
        at: When, Unix time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: str
    at: float


class Ends(BaseModel):
    """The object's content.

    Attributes:
        by_outcome: The last end of each kind that there was.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["evertrain/ends/1"] = "evertrain/ends/1"
    by_outcome: dict[str, End] = Field(default_factory=dict)

    @property
    def last(self) -> str:
        """The outcome of the run that ended last; empty: none has."""
        return max(self.by_outcome, key=lambda name: self.by_outcome[name].at, default="")


def outcome_of(record: RunRecord) -> str:
    """What became of a run, in one word; a model that waits for approval is held until then."""
    if record.status != "finished":
        return record.status
    if record.decision == "promoted":
        return "promoted"
    return "inconclusive" if record.verdict == "inconclusive" else "held"


def note_end(store: ObjectStore, record: RunRecord) -> None:
    """Note a run's end, unless a later one of its kind is noted; that it cannot be is no harm.

    A skipped run is none: it looked at nothing, and another one was under way.
    """
    if record.started is None or record.status == "skipped":
        return
    outcome = outcome_of(record)
    at = (record.started + timedelta(seconds=record.seconds)).timestamp()
    with contextlib.suppress(OutsideError):
        for _ in range(_ATTEMPTS):
            ends, version = _read(store)
            known = ends.by_outcome.get(outcome)
            if known is not None and known.at >= at:
                return
            by_outcome = {**ends.by_outcome, outcome: End(run=record.run, at=at)}
            content = Ends(by_outcome=by_outcome).model_dump_json(indent=1).encode()
            if not version:
                if store.create(KEY, content):
                    return
            elif store.replace(KEY, content, version=version) is not None:
                return


def read_ends(store: ObjectStore) -> Ends:
    """Return how runs ended of late.

    Raises:
        OutsideError: The store cannot be reached.
    """
    return _read(store)[0]


def _read(store: ObjectStore) -> tuple[Ends, str]:
    try:
        read = store.read(KEY)
    except ObjectMissing:
        return Ends(), ""
    try:
        return Ends.model_validate_json(read.data), read.version
    except ValidationError:
        return Ends(), read.version  # begun anew
