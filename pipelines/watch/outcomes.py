"""How a run ended, from its starter's word and from its record: whether it may be tried again."""

from __future__ import annotations

from pydantic import ValidationError

from components.common.run_record import RunRecord, run_record_key
from infra.errors import ObjectMissing
from infra.store import ObjectStore
from pipelines.watch.starter import Ended
from pipelines.watch.starting import Outcome, Start

_WORLD_FAILED = (3, 130)  # 130 without anybody's wish: a pod was evicted, a machine switched off


def outcome_of(store: ObjectStore, start: Start, ended: Ended) -> Outcome:
    """Say how a run ended.

    A run that found another one under way is tried again when that has ended. One that a gate
    stopped is not, nor one with wrong settings or one that somebody cancelled: the same would come
    of it.

    Raises:
        OutsideError: The store cannot be reached.
    """
    record = run_record(store, start.run)
    if record is not None and record.status == "skipped":
        return Outcome(0, record.reasons[0] if record.reasons else "", again=True, counts=False)
    if record is None:
        code = ended.exit_code
        words = ended.words or "it ended without a record"
    else:
        code = record.exit_code
        reason = record.reasons[0] if record.reasons else ended.words
        words = f"{record.decision or record.status.replace('_', ' ')}: {reason}"
    if ended.cancelled:
        return Outcome(code, "somebody stopped it", again=False)
    return Outcome(code, words, again=code is None or code in _WORLD_FAILED)


def run_record(store: ObjectStore, run: str) -> RunRecord | None:
    """Return a run's record; None: there is none that can be read."""
    try:
        return RunRecord.model_validate_json(store.get(run_record_key(run)))
    except (ObjectMissing, ValidationError):
        return None
