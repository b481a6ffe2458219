"""What the watcher's figures say of the project besides: its champion, its last runs, its lease."""

from __future__ import annotations

from components.common.champion import PromotionLog, champion_entry
from components.common.ends import read_ends
from infra.lease import Lease
from infra.metrics import STATUSES
from infra.store import ObjectStore
from pipelines.watch.exporting import Figures


class Observer:
    """Reads a few small objects of the store.

    Args:
        store: The project's.
        figures: Receives what they say.
    """

    def __init__(self, store: ObjectStore, figures: Figures) -> None:
        self._figures = figures
        self._log, self._lease, self._store = PromotionLog(store), Lease(store), store

    def look(self, now: float) -> None:
        """Set the figures as they are now, Unix time.

        Raises:
            OutsideError: The store cannot be reached, or what is there is damaged.
        """
        champion = champion_entry(self._log.entries())
        version = champion.version if champion else "0"
        promoted = champion.when.timestamp() if champion else 0.0
        numbered = float(version) if version.isdecimal() else 0.0
        self._figures.set("evertrain_champion_version", numbered)
        self._figures.set("evertrain_champion_promoted_timestamp_seconds", promoted)
        ends = read_ends(self._store)
        for status in STATUSES:
            end = ends.by_outcome.get(status)
            self._figures.set(
                "evertrain_last_run_timestamp_seconds", end.at if end else 0.0, status=status
            )
            self._figures.set(
                "evertrain_last_run_status", float(status == ends.last), status=status
            )
        seen = self._lease.look()
        held = seen is not None and not seen.free
        since = seen.record.since.timestamp() if seen is not None and held else now
        self._figures.set("evertrain_lease_held", float(held))
        self._figures.set("evertrain_lease_age_seconds", max(0.0, now - since))


def who_is_busy(store: ObjectStore, but: str) -> str:
    """Say in words which run holds the lease; empty: none does, or only the run `but`.

    Raises:
        OutsideError: The store cannot be reached, or the lease is damaged.
    """
    seen = Lease(store).look()
    if seen is None or seen.free or seen.record.holder.run == but:
        return ""
    return seen.words
