"""A run's turn: take the lease, or wait for it, or find that another run is under way."""

from __future__ import annotations

import sys
import time

from components.common.champion import PromotionEntry, PromotionLog, newest_fence
from components.common.promotion import add, user_name
from components.common.records import StepContext
from infra.lease_record import Seen

_POLL = 5.0  # seconds between two looks at a lease that is waited for


def take_turn(context: StepContext) -> str:
    """Take the lease for the run, by the policy of `lease.busy`.

    Returns:
        Empty: the run has it. Else who has it, and since when.

    Raises:
        OutsideError: The store cannot be reached, or the lease or the promotion log is damaged.
    """
    settings = context.project.settings.lease
    patience = settings.patience if settings.busy == "queue" else 0.0
    log = PromotionLog(context.store)
    began, waited_for = time.monotonic(), ""
    said = float("-inf")
    while (seen := context.holding.take(floor=newest_fence(log.entries()))) is not None:
        waited = time.monotonic() - began
        if waited >= patience:
            tail = f"; this one waited {waited:.0f} s" if waited_for else ""
            return seen.words + tail
        now = time.monotonic()
        if seen.words != waited_for or now - said > settings.seconds / 3:
            said, changed = now, seen.words != waited_for
            waited_for = seen.words
            _show(context, seen, patience=patience - waited, aloud=changed)
        time.sleep(min(_POLL, settings.seconds / 3, patience - waited))
    if waited_for:
        context.record.reason = f"waited {time.monotonic() - began:.0f} s for its turn"
        context.save()
    if context.holding.fence:
        _fence(context, log)
    return ""


def _show(context: StepContext, seen: Seen, *, patience: float, aloud: bool) -> None:
    """Say that the run waits: in its record, which is a sign of life too, and in the log."""
    words = f"waits for its turn: {seen.words}"
    context.record.reason = words
    context.save()
    if aloud:
        print(f"lease: {words}; patience for {patience:.0f} s", file=sys.stderr, flush=True)


def _fence(context: StepContext, log: PromotionLog) -> None:
    """Let the promotion log know this run's number, so that it takes no lower one any more.

    A process of the run before that still believes to have the lease, or that was paused just
    before its write, finds its place in the log taken, looks, and is refused.
    """
    holding, run = context.holding, context.record.run
    if newest_fence(log.entries()) < holding.token:
        entry = PromotionEntry(
            number=0,
            action="fence",
            version="",
            run=run,
            run_key="",
            package={},
            seen={},
            reason=f"run {run} took over: {holding.fence}",
            who=f"evertrain run ({user_name()})",
            fence=holding.token,
        )
        add(log, entry, check=lambda entries: holding.confirm())
    holding.fenced()
