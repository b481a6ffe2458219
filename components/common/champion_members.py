"""Champions as members of an ensemble: of each the model that its own run trained.

A champion may itself be an ensemble. Were it taken whole, ensembles of ensembles would grow with
each promotion; so it stands for its first member, the one that its run trained.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.common.champion import MOVES, PromotionEntry, PromotionLog, champion_to_beat
from components.common.layout import fetch_object
from infra.store import ObjectStore


@dataclass(frozen=True)
class OwnModel:
    """The model that a champion's run trained.

    Attributes:
        version: The champion's, in the model registry.
        package: sha256 of each of its files.
        seen: What it has seen, by itself.
    """

    version: str
    package: dict[str, str]
    seen: dict[str, str]


def recent_champions(log: PromotionLog, run_key: str) -> list[PromotionEntry]:
    """Return what made each champion that a run finds, the newest first; each version once.

    A run that was killed right after its promotion finds those that it found before.
    """
    newest = champion_to_beat(log, run_key)
    if newest is None:
        return []
    found: dict[str, PromotionEntry] = {}
    for entry in reversed(log.entries()[: newest.number]):
        if entry.action in MOVES:
            found.setdefault(entry.version, entry)
    return list(found.values())


def own_model(store: ObjectStore, entry: PromotionEntry, cache: Path) -> OwnModel:
    """Return the model that a champion's run trained: of an ensemble its first member.

    Raises:
        OutsideError: The package's manifest is missing or damaged.
    """
    files, seen = own_files(store, entry.package, entry.seen, cache)
    return OwnModel(entry.version, files, seen)


def own_files(
    store: ObjectStore, files: dict[str, str], seen: dict[str, str], cache: Path
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the files of the model that a package's run trained, and what that has seen."""
    manifest: dict[str, Any] = json.loads(
        fetch_object(store, files["package.json"], cache).read_text()
    )
    members = manifest.get("facts", {}).get("ensemble", {}).get("members", [])
    return (members[0]["package"], members[0]["seen"]) if members else (files, seen)
