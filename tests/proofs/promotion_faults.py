"""What is wrong with a promotion log: read from the raw objects, by rules of its own."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from infra.store import ObjectStore
from tests.proofs.promoters import Promoter

_MOVES = ("promote", "approve", "rollback")
Entry = dict[str, Any]


def raw_entries(store: ObjectStore) -> list[Entry]:
    """The objects of the log in the order of their keys, each with its key."""
    keys = sorted(info.key for info in store.list("promotions/"))
    return [{**json.loads(store.get(key)), "key": key} for key in keys]


def lost(entries: list[Entry], promoters: Sequence[Promoter]) -> list[str]:
    """Holes, lost updates, and champions that were replaced by what was never held against them.

    Args:
        entries: As `raw_entries` has them.
        promoters: All that took part, whatever became of them.
    """
    faults = [
        f"{entry['key']} has number {entry['number']}"
        for place, entry in enumerate(entries, start=1)
        if entry["key"] != f"promotions/{place:08d}.json" or entry["number"] != place
    ]
    written = Counter((e["token"], e["number"], e["action"]) for e in entries)
    for promoter in promoters:
        for told in promoter.told:
            if written[told.token, told.number, told.action] != 1:
                faults.append(f"{promoter.run_key} was told of entry {told.number}, not there")
    compared = {promoter.run_key: promoter.compared for promoter in promoters}
    told_tokens = {told.token for promoter in promoters for told in promoter.told}
    silent = {p.run_key for p in promoters if p.end in ("crashed", "failed") or p.died}
    for place, entry in enumerate(entries):
        before = entries[:place]
        faults += _out_of_turn(entry, before)
        who, action, number = entry["who"], entry["action"], entry["number"]
        if who not in compared:
            continue
        if action in ("promote", "propose") and entry["compared"] not in compared[who]:
            faults.append(f"entry {number} names a comparison that was never made")
        if entry["token"] not in told_tokens and who not in silent:
            faults.append(f"entry {number} is of one who was told that it failed")
    # a run that was killed may come again, but not against the champion that it met before
    own = Counter((e["who"], e["action"], e["compared"]) for e in entries if e["who"] in compared)
    faults += [f"{who} has {n} entries {what}" for (who, what, _), n in own.items() if n > 1]
    return faults


def wanted_aliases(entries: list[Entry]) -> dict[str, str]:
    """What the aliases have to be after such a log."""
    moves = [e for e in entries if e["action"] in _MOVES]
    found = {}
    if moves:
        found["champion"] = moves[-1]["version"]
        others = [e["version"] for e in moves if e["version"] != found["champion"]]
        if others:
            found["previous"] = others[-1]
    last = next((e for e in reversed(entries) if e["action"] == "propose"), None)
    if last is not None and not any(
        e["action"] in _MOVES or e["of"] == last["number"] for e in entries[last["number"] :]
    ):
        found["challenger"] = last["version"]
    return found


def _out_of_turn(entry: Entry, before: list[Entry]) -> list[str]:
    """Faults of one entry, given those before it."""
    number, faults = entry["number"], []
    champion = next((e["number"] for e in reversed(before) if e["action"] in _MOVES), 0)
    if entry["action"] in (*_MOVES, "propose") and entry["compared"] != champion:
        faults.append(f"entry {number} was held against {entry['compared']}, not {champion}")
    if entry["action"] in ("approve", "reject"):
        proposals = [e for e in before if e["action"] == "propose"]
        if not proposals or proposals[-1]["number"] != entry["of"]:
            faults.append(f"entry {number} decides on {entry['of']}, not the newest proposal")
        elif (entry["version"], entry["run_key"]) != tuple(
            proposals[-1][name] for name in ("version", "run_key")
        ):
            faults.append(f"entry {number} is about another version than its proposal")
        if any(e["of"] == entry["of"] for e in before):
            faults.append(f"entry {number} decides on {entry['of']} once more")
        if champion > entry["of"]:
            faults.append(f"entry {number} decides on a proposal that entry {champion} overtook")
    if entry["action"] == "rollback" and entry["version"] not in {
        e["version"] for e in before if e["action"] in _MOVES
    }:
        faults.append(f"entry {number} goes back to what was never champion")
    return faults
