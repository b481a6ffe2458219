"""Which model is champion, and going back to an earlier one."""

from __future__ import annotations

import getpass

from components.common.champion import (
    PromotionEntry,
    PromotionLog,
    champion_and_previous,
    repair_aliases,
)
from components.common.champion_model import load_entry
from components.common.layout import home, project_store, tracking_uri
from components.common.project import Project
from infra.errors import OutsideError
from infra.registry import Registry
from training_core.errors import ConfigurationError


def open_log(project: Project) -> PromotionLog:
    """The project's promotion log."""
    return PromotionLog(project_store(project))


def repair(project: Project, log: PromotionLog) -> None:
    """Make the registry's aliases follow the log, if there is anything in it."""
    if log.head() is not None:
        settings = project.settings
        registry = Registry(
            uri=tracking_uri(project), experiment=settings.tracking.experiment or settings.name
        )
        repair_aliases(log, registry, settings.name)


def roll_back(project: Project, *, to: str, reason: str) -> PromotionEntry:
    """Make an earlier version champion: load it first, then one log entry, then the aliases.

    Args:
        project: The project.
        to: The version; empty: the champion before this one.
        reason: Kept in the log.

    Raises:
        ConfigurationError: There is no such version to go back to.
        TrainingFailed: It cannot be loaded; the champion stays.
        OutsideError: Another promotion came at the same time.
    """
    log = open_log(project)
    entries = log.entries()
    champion, previous = champion_and_previous(entries)
    target = to or previous or ""
    known = list(dict.fromkeys(entry.version for entry in entries))
    if not target or target not in known:
        raise ConfigurationError(
            f"there is no version {target!r} to go back to"
            if target
            else "there is no earlier champion to go back to",
            hint=f"versions that were champion: {', '.join(known) or 'none'}",
        )
    if target == champion:
        raise ConfigurationError(
            f"version {target} is champion already", hint="evertrain history PROJECT shows why"
        )
    past = next(e for e in reversed(entries) if e.version == target and e.action == "promote")
    load_entry(log.store, past, project.task(), home(project) / "cache")
    entry = PromotionEntry(
        number=entries[-1].number + 1,
        action="rollback",
        version=target,
        run=past.run,
        run_key=past.run_key,
        package=past.package,
        seen=past.seen,
        reason=reason or f"rolled back from version {champion}",
        who=getpass.getuser(),
    )
    if not log.append(entry):
        raise OutsideError(
            f"another promotion took number {entry.number} at the same time",
            hint="look at evertrain history PROJECT, then decide again",
        )
    repair(project, log)
    return entry
