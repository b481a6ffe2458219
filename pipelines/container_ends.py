"""How a step's container ended, where the step itself could not say."""

from __future__ import annotations

from datetime import UTC, datetime

from components.common.layout import record_key
from components.common.records import StepRecord
from infra.engine import Ended
from infra.errors import ObjectMissing
from infra.store import ObjectStore

_UNFINISHED = ("running", "stopped", "failed", "interrupted")
_SAYS = (1, 2, 3)  # exit codes of a step, as on the design page
_SIGNALS = {134: "SIGABRT", 137: "SIGKILL", 139: "SIGSEGV", 143: "SIGTERM"}


def settle(store: ObjectStore, *, run: str, step: str, run_key: str, ended: Ended) -> bool:
    """Whether a step is done: its container ended with 0, and its record says so too.

    A step that was killed has left a record that says `running`, or none: it gets one that says
    what became of its container, so that the report does.
    """
    record = _recorded(store, run, step)
    if record is not None and ended.code == 0 and record.status not in _UNFINISHED:
        return True
    if record is None or record.status not in _UNFINISHED[1:]:
        record = record or StepRecord(step=step, run=run, run_key=run_key)
        record.status = "failed"
        record.exit_code, record.reason, record.hint = _words(step, ended)
        if not record.seconds:
            record.seconds = round((datetime.now(UTC) - record.started).total_seconds(), 3)
        store.put(record_key(run, step), record.model_dump_json(indent=1).encode())
        print(f"{step}: {record.reason}\nhint: {record.hint}")
    return False


def _recorded(store: ObjectStore, run: str, step: str) -> StepRecord | None:
    try:
        return StepRecord.model_validate_json(store.get(record_key(run, step)))
    except (ObjectMissing, ValueError):
        return None


def _words(step: str, ended: Ended) -> tuple[int, str, str]:
    """Exit code, reason and hint."""
    where = f"the container of {step}"
    log = "what it printed last is in the run's log"
    if ended.code < 0:
        reason, _, hint = ended.error.partition("\n\nhint: ")
        return 3, f"{where} could not be run: {reason}", hint
    if ended.out_of_memory:
        return (
            3,
            f"{where} was killed: out of memory",
            "give it more memory, or ask for less: training.batch_size, data.memory",
        )
    if ended.code == 0:
        return 3, f"{where} ended with 0, but the step had not finished", log
    if ended.code in _SAYS:
        return ended.code, f"{where} ended with {ended.code} before the step could say why", log
    if ended.code in (126, 127):
        return 2, f"{where} could not start its program", "is the image one of evertrain?"
    killed = f" ({_SIGNALS[ended.code]})" if ended.code in _SIGNALS else ""
    hint = "this machine may be short of memory; " if ended.code == 137 else ""
    return 3, f"{where} ended with {ended.code}{killed}", hint + log
