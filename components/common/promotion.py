"""Promote or propose: plain functions over log, registry and entry.

`enter` here, `approve`, `reject` and `roll_back` in files of their own make their writes in one
order: version, entry, aliases. Whoever crashes between any two leaves nothing to be undone: a
version without an entry is found again by its run's key, and aliases that lag behind the log are
what every command mends first.

An entry is written only if what was decided still holds of the log that it is added to: the
champion is the one that was compared with (compare-and-swap), the proposal is open, and no run with
a later lease has written (fencing). An entry of another that changes none of these is no obstacle:
the next number is tried.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable
from typing import Any

from components.common.aliases import ModelRegistry, follow
from components.common.champion import (
    PromotionEntry,
    PromotionLog,
    champion_entry,
    is_own,
    newest_fence,
    proposals,
    state_of,
)
from infra.errors import LeaseLost, OutsideError
from training_core.errors import StoppedByGate

TAG = "evertrain.run_key"
_OF_RUNS = ("promote", "propose", "fence")  # persons need no lease
_ATTEMPTS = 50  # each lost one is a number that another writer took: history went on meanwhile
Check = Callable[[list[PromotionEntry]], None]


def add(log: PromotionLog, entry: PromotionEntry, *, check: Check) -> PromotionEntry:
    """Write an entry under the next number; return it as it was written.

    Args:
        log: The promotion log.
        entry: Its number is set here.
        check: Raises if the entry must not follow these entries; asked before each attempt.

    Raises:
        LeaseLost: A run that took the lease later has written already.
        OutsideError: The store cannot be reached, or others took each number that was tried.
    """
    for _ in range(_ATTEMPTS):
        entries = log.entries()
        check(entries)
        if entry.action in _OF_RUNS:
            refuse_earlier_lease(entries, entry)
        entry = entry.model_copy(update={"number": len(entries) + 1})
        try:
            if log.append(entry):
                return entry
        except OutsideError:
            # The reply may be lost and not the entry; a rollback given again would go back again.
            if any(each.token == entry.token for each in log.entries()):
                return entry
            raise
    raise OutsideError(
        f"others took each of the {_ATTEMPTS} numbers of the promotion log that were tried",
        hint="look at evertrain history PROJECT, then decide again",
    )


def enter(
    log: PromotionLog,
    registry: ModelRegistry,
    model: str,
    entry: PromotionEntry,
    *,
    register: Callable[[], str],
    anew: bool = False,
    confirm: Callable[[], None] = lambda: None,
) -> PromotionEntry:
    """Promote or propose a run's model, or find that this run has done so already.

    Args:
        log: The promotion log.
        registry: The model registry.
        model: Its name there.
        entry: `promote` or `propose`; number and version are set here.
        register: Makes the version, if there is none of this run yet; returns its number.
        anew: What became of an earlier proposal of this run does not matter: propose again.
        confirm: Raises if the run has not the lease at this moment; asked before each write.

    Raises:
        StoppedByGate: The champion is not `entry.compared` any more.
        LeaseLost: Another run has the lease, or has written since.
    """

    def check(entries: list[PromotionEntry]) -> None:
        refuse_moved_champion(entries, entry.compared)
        confirm()

    own = own_entry(log.entries(), entry.run_key, entry.compared, anew=anew)
    if own is None:
        confirm()
        refuse_moved_champion(log.entries(), entry.compared)
        version = registry.find_version(model, tag=TAG, value=tag_of(entry)) or register()
        own = add(
            log,
            entry.model_copy(update={"version": version}),
            check=check,
        )
    return follow(log, registry, model, own)


def tag_of(entry: PromotionEntry) -> str:
    """What a run's version is found by again: its key and, of a refit, which weights these are.

    A run may be killed after it registered its refit, and come to promote the judged model then.
    """
    refit = entry.package["package.json"] if entry.refit_of else ""
    return f"{entry.run_key} refit {refit}" if refit else entry.run_key


def own_entry(
    entries: list[PromotionEntry], run_key: str, compared: int, *, anew: bool = False
) -> PromotionEntry | None:
    """The entry that a run wrote before it was killed: its promotion, or else its proposal.

    Args:
        entries: Of the log.
        run_key: Of the run.
        compared: What the proposal must have been compared with.
        anew: Leave out proposals that are not open.
    """
    champion = champion_entry(entries)
    if champion is not None and is_own(champion, run_key):
        return champion
    made = (e for e in proposals(entries) if (e.run_key, e.compared) == (run_key, compared))
    return next((e for e in made if not anew or state_of(entries, e) == "open"), None)


def refuse_moved_champion(entries: list[PromotionEntry], compared: int) -> None:
    """Stop if the champion is not the one that was compared against.

    Raises:
        StoppedByGate: It moved since.
    """
    champion = champion_entry(entries)
    now = champion.number if champion else 0
    if now != compared:
        raise StoppedByGate(
            f"the champion moved since the comparison: promotion {now} came after {compared}",
            hint="run the same command again: it compares with the champion of now",
        )


def refuse_earlier_lease(entries: list[PromotionEntry], entry: PromotionEntry) -> None:
    """Stop if a run with a later lease than this entry's has written.

    Raises:
        LeaseLost: It has.
    """
    newest = newest_fence(entries)
    if entry.fence < newest:
        by = next(each for each in reversed(entries) if each.fence == newest)
        raise LeaseLost(
            f"run {entry.run} has lost the lease: its number {entry.fence or 'is missing'} is "
            f"older than {newest}, with which run {by.run} wrote entry {by.number}",
            hint="start a new run: what this one has may be out of date",
        )


def user_name() -> str:
    """Who gives this command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user need not have a name
        return "unknown user"


def following(entry: PromotionEntry, **changes: Any) -> PromotionEntry:
    """An entry about the model of an earlier one, with a time and a token of its own."""
    kept = entry.model_dump(exclude={"when", "token", "of"})
    return PromotionEntry.model_validate({**kept, **changes})
