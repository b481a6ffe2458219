"""Who has a project's lease, and how to free it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from components.common.champion import PromotionLog, newest_fence
from components.common.holding import this_holder
from components.common.layout import project_store
from components.common.project import Project
from infra.errors import ObjectDamaged
from infra.lease import Lease
from infra.lease_record import Seen, named


@dataclass(frozen=True)
class LeaseState:
    """The lease as it is.

    Attributes:
        seen: None: nobody ever took it, or it is damaged.
        damage: What is wrong with it; empty: nothing.
    """

    seen: Seen | None
    damage: str = ""

    @property
    def free(self) -> bool:
        """Whether the next run gets it."""
        return not self.damage and (self.seen is None or self.seen.free)

    @property
    def words(self) -> str:
        """In one sentence."""
        if self.damage:
            return self.damage
        if self.seen is None:
            return "free: no run ever took it"
        holder = named(self.seen.record.holder)
        if not self.seen.record.held:
            how = (
                f", until {self.seen.record.broken} took it away" if self.seen.record.broken else ""
            )
            return f"free: {holder} had it last{how}"
        if self.seen.free:
            return f"free: {holder} gave no sign of life for {self.seen.age:.0f} s"
        return self.seen.words

    def as_data(self) -> dict[str, Any]:
        """All of it as JSON has it; what is not known is null."""
        record = self.seen.record if self.seen else None
        return {
            "free": self.free,
            "words": self.words,
            "held": record.held if record else None,
            "holder": record.holder.model_dump() if record else None,
            "token": record.token if record else None,
            "since": record.since.isoformat() if record else None,
            "seen_alive": round(self.seen.age, 1) if self.seen else None,
            "expires_in": round(self.seen.expires_in, 1) if self.seen else None,
        }


def look(project: Project) -> LeaseState:
    """Return the lease as it is.

    Raises:
        OutsideError: The store cannot be reached.
    """
    try:
        return LeaseState(Lease(project_store(project)).look())
    except ObjectDamaged as error:
        return LeaseState(None, error.what)


def free(project: Project, state: LeaseState, *, who: str) -> bool:
    """Free the lease as it was seen; False: it changed meanwhile, and was left as it is.

    Args:
        project: Whose.
        state: What the person was shown.
        who: The person.

    Raises:
        OutsideError: The store cannot be reached, or the promotion log is damaged.
    """
    store = project_store(project)
    lease = Lease(store)
    if state.damage:
        floor = newest_fence(PromotionLog(store).entries())
        return lease.reset(this_holder("unknown"), floor=floor)
    if state.seen is None or not state.seen.record.held:
        return False
    run = state.seen.record.holder.run
    return lease.release(run, fence=f"{who} took the lease away from run {run}", broken=who)
