"""A person decides on what was proposed: the newest proposal, against the champion it met."""

from __future__ import annotations

from components.common.aliases import ModelRegistry, follow
from components.common.champion import (
    PromotionEntry,
    PromotionLog,
    champion_entry,
    decision_on,
    proposals,
    state_of,
)
from components.common.promotion import add, following
from components.common.rehearsal import Rehearsal, require_rehearsed
from infra.errors import OutsideError
from training_core.errors import ConfigurationError, StoppedByGate


def approve(
    log: PromotionLog,
    registry: ModelRegistry,
    model: str,
    proposal: PromotionEntry,
    *,
    reason: str,
    who: str,
    rehearse: Rehearsal,
) -> PromotionEntry:
    """Make what was proposed champion, once its package has been tried out.

    Raises:
        StoppedByGate: The proposal cannot be approved any more, or its package does not work.
    """
    refuse_decided(log.entries(), proposal)
    require_rehearsed(proposal, rehearse(proposal), "the champion stays; reject the proposal")
    written = add(
        log,
        following(proposal, action="approve", of=proposal.number, reason=reason, who=who),
        check=lambda entries: refuse_decided(entries, proposal),
    )
    return follow(log, registry, model, written)


def reject(
    log: PromotionLog,
    registry: ModelRegistry,
    model: str,
    proposal: PromotionEntry,
    *,
    reason: str,
    who: str,
) -> PromotionEntry:
    """Close a proposal; the champion stays.

    Raises:
        StoppedByGate: There is nothing to decide on it any more.
    """
    written = add(
        log,
        following(proposal, action="reject", of=proposal.number, reason=reason, who=who),
        check=lambda entries: refuse_decided(entries, proposal),
    )
    return follow(log, registry, model, written)


def refuse_decided(entries: list[PromotionEntry], proposal: PromotionEntry) -> None:
    """Stop if a proposal is not open.

    Raises:
        StoppedByGate: It was decided or superseded, or the champion moved since its comparison.
        OutsideError: The log has lost it.
    """
    words = f"proposal {proposal.number} (version {proposal.version})"
    if proposal.number not in [each.number for each in proposals(entries)]:
        raise OutsideError(
            f"{words} is in the promotion log no more: its entries were overwritten",
            hint="restore the objects below promotions/ from a backup before anything is decided",
        )
    decision = decision_on(entries, proposal)
    if decision is not None:
        why = f": {decision.reason}" if decision.reason else ""
        raise StoppedByGate(
            f"{words} was decided already: {decision.action} by {decision.who}, "
            f"{decision.when:%Y-%m-%d %H:%M} UTC{why}",
            hint="evertrain history PROJECT shows what came after it",
        )
    state = state_of(entries, proposal)
    if state == "superseded":
        newest = proposals(entries)[0]
        raise StoppedByGate(
            f"{words} is superseded by proposal {newest.number} (version {newest.version})",
            hint=f"decide on the newest: evertrain approve PROJECT --version {newest.version}",
        )
    if state == "overtaken":
        champion = champion_entry(entries)
        now = f"{champion.version}, by entry {champion.number}" if champion else "none"
        raise StoppedByGate(
            f"{words} was compared with the champion of entry {proposal.compared}, and the "
            f"champion moved since: it is now version {now}",
            hint="evertrain run PROJECT --force compares the model with the champion of now",
        )


def proposal_to_decide(entries: list[PromotionEntry], version: str) -> PromotionEntry:
    """The newest proposal, or the newest one of a version; whether it is open is not looked at.

    Raises:
        ConfigurationError: There is none.
    """
    made = proposals(entries)
    found = next((e for e in made if version in ("", e.version)), None)
    if found is None:
        raise ConfigurationError(
            f"version {version!r} was never proposed" if version else "nothing was ever proposed",
            hint=f"versions that were: {', '.join(dict.fromkeys(e.version for e in made))}"
            if made
            else "a run proposes what it would promote if decision.approval is true",
        )
    return found
