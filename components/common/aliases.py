"""The registry's aliases say what the promotion log says: `champion`, `previous`, `challenger`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from components.common.champion import (
    PromotionEntry,
    PromotionLog,
    champion_and_previous,
    open_proposal,
)
from infra.errors import OutsideError

_ROUNDS = 5


class ModelRegistry(Protocol):
    """What a promotion needs of the registry (`infra/registry.py`)."""

    def find_version(self, model: str, *, tag: str, value: str) -> str | None: ...

    def aliases(self, model: str) -> dict[str, str]: ...

    def set_aliases(self, model: str, aliases: Mapping[str, str | None]) -> None: ...


def aliases_of(entries: list[PromotionEntry]) -> dict[str, str | None]:
    """What the aliases have to be; None: there is to be no such alias."""
    champion, previous = champion_and_previous(entries)
    proposal = open_proposal(entries)
    return {
        "champion": champion,
        "previous": previous,
        "challenger": proposal.version if proposal else None,
    }


def repair_aliases(log: PromotionLog, registry: ModelRegistry, model: str) -> dict[str, str | None]:
    """Make the registry's aliases say what the log says; return what was changed.

    The log is read again after each change: whoever writes last has seen the newest entry, so a
    promotion that comes at the same moment cannot leave the aliases behind the log.

    Raises:
        OutsideError: The registry cannot be reached, or others keep moving the aliases.
    """
    changed: dict[str, str | None] = {}
    entries = log.entries()
    for last in (*[False] * (_ROUNDS - 1), True):
        if not entries:
            return changed
        present = registry.aliases(model)
        changes = {a: v for a, v in aliases_of(entries).items() if present.get(a) != v}
        if not changes:
            return changed
        try:
            registry.set_aliases(model, changes)
        except OutsideError:  # among others: they did not stick, for another writer moved them
            if last:
                raise
        changed |= changes
        entries = log.entries()
    return changed


def follow(
    log: PromotionLog, registry: ModelRegistry, model: str, entry: PromotionEntry
) -> PromotionEntry:
    """Make the aliases follow an entry that was just written; return it.

    Raises:
        OutsideError: They do not; the entry stands all the same, and the message says so.
    """
    try:
        repair_aliases(log, registry, model)
    except OutsideError as error:
        raise OutsideError(
            f"entry {entry.number} ({entry.action} version {entry.version}) is in the promotion "
            f"log, but the registry's aliases do not follow it yet: {error.what}",
            hint="evertrain champion PROJECT sets them from the log",
        ) from error
    return entry
