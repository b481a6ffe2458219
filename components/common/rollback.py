"""Back to an earlier champion: rehearsed first, then one entry, then the aliases."""

from __future__ import annotations

from components.common.aliases import ModelRegistry, follow
from components.common.champion import (
    PromotionEntry,
    PromotionLog,
    champion_and_previous,
    champion_entry,
)
from components.common.promotion import add, following
from components.common.rehearsal import Rehearsal, require_rehearsed
from training_core.errors import ConfigurationError, StoppedByGate


def version_to_return_to(entries: list[PromotionEntry], to: str) -> PromotionEntry:
    """The entry that made a version champion; of the champion before this one, if none is named.

    Raises:
        ConfigurationError: There is no such version, or it is champion already.
    """
    champion, previous = champion_and_previous(entries)
    target = to or previous or ""
    moves = [entry for entry in entries if entry.action in ("promote", "approve")]
    known = ", ".join(dict.fromkeys(entry.version for entry in moves)) or "none"
    past = next((entry for entry in reversed(moves) if entry.version == target), None)
    if past is None:
        raise ConfigurationError(
            f"there is no version {target!r} to go back to"
            if target
            else "there is no earlier champion to go back to",
            hint=f"versions that were champion: {known}",
        )
    if target == champion:
        raise ConfigurationError(
            f"version {target} is champion already", hint="evertrain history PROJECT shows why"
        )
    return past


def roll_back(
    log: PromotionLog,
    registry: ModelRegistry,
    model: str,
    *,
    to: str,
    reason: str,
    who: str,
    rehearse: Rehearsal,
) -> PromotionEntry:
    """Make an earlier version champion, once its package has been tried out.

    Args:
        log: The promotion log.
        registry: The model registry.
        model: Its name there.
        to: The version; empty: the champion before this one.
        reason: Kept in the log.
        who: Who wants it.
        rehearse: Tries the package out.

    Raises:
        ConfigurationError: There is no such version to go back to.
        StoppedByGate: Its package does not work, or the champion moved meanwhile.
    """
    entries = log.entries()
    past = version_to_return_to(entries, to)
    champion = champion_entry(entries)
    assert champion is not None  # there is a past
    require_rehearsed(past, rehearse(past), f"the champion stays version {champion.version}")
    written = add(
        log,
        following(
            past,
            action="rollback",
            compared=champion.number,
            reason=reason or f"rolled back from version {champion.version}",
            who=who,
        ),
        check=lambda entries: _refuse_other_champion(entries, champion),
    )
    return follow(log, registry, model, written)


def _refuse_other_champion(entries: list[PromotionEntry], champion: PromotionEntry) -> None:
    now = champion_entry(entries)
    if now is None or now.number != champion.number:
        raise StoppedByGate(
            f"the champion moved meanwhile: it was version {champion.version}, and is now version "
            f"{now.version if now else 'none'}",
            hint="look at evertrain history PROJECT, then decide again",
        )
