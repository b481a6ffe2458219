"""The promotion log: the truth about which model is champion, and why.

Numbered entries, each created only if none has its number: a linear history without lost updates.
`promote`, `approve` and `rollback` move the champion: the last of them names it. `propose` and
`reject` do not, and neither does `fence`, by which a run that took over the lease of another, which
may still be writing, makes its number known. `promotion.py` says under which conditions each may be
written. The registry's aliases are a projection of the log and are repaired from it.
"""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from infra.errors import ObjectMissing, OutsideError
from infra.store import ObjectInfo, ObjectStore

_PREFIX = "promotions/"
MOVES = ("promote", "approve", "rollback")
State = Literal["open", "approved", "rejected", "superseded", "overtaken"]


class PromotionEntry(BaseModel):
    """One thing that happened to the champion, or to what is proposed to follow it.

    Attributes:
        number: 1 for the first; one more each time.
        version: In the model registry.
        run, run_key: The run that trained it.
        package: sha256 of each of the package's files in the object store.
        seen: What training and selection have seen: the newest time, or the rule of the split.
        who: Who or what made the entry.
        token: Tells the writer's own entry from another's after a lost reply.
        rehearsal: sha256 of some raw rows with the predictions that were recorded for them, in the
            object store; empty: there are none.
        of: Number of the proposal that was approved or rejected.
        compared: Number of the entry that had made the champion which this one was held against; 0:
            there was none, or the entry is older than this field.
        fence: Number of the lease (`infra/lease.py`) under which the run worked; 0: under none.
        refit_of: sha256 of each file of the package that was judged, where `package` is what was
            trained again on all rows after that; empty: `package` itself was judged.
    """

    model_config = ConfigDict(extra="forbid")

    format: Literal["evertrain/promotion/1"] = "evertrain/promotion/1"
    number: int
    action: Literal["promote", "propose", "approve", "reject", "rollback", "fence"]
    version: str
    run: str
    run_key: str
    package: dict[str, str]
    seen: dict[str, str]
    reason: str
    who: str
    when: datetime = Field(default_factory=lambda: datetime.now(UTC))
    token: str = Field(default_factory=lambda: uuid.uuid4().hex)
    rehearsal: str = ""
    of: int = 0
    compared: int = 0
    fence: int = 0
    refit_of: dict[str, str] = {}


class PromotionLog:
    """The entries in a project's object store."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self._read: dict[ObjectInfo, PromotionEntry] = {}  # entries never change, their number does

    def entries(self) -> list[PromotionEntry]:
        """Return all entries, oldest first.

        Raises:
            OutsideError: An entry is damaged, or a number is missing: nothing may be decided then.
        """
        found: dict[str, PromotionEntry] = {}
        for info in self.store.list(_PREFIX):
            if info not in self._read:
                self._read[info] = self._entry(info.key)
            found[info.key] = self._read[info]
        # a listing is no snapshot: of two entries made meanwhile it may show the second alone
        last = max((entry.number for entry in found.values()), default=0)
        for number in range(1, last + 1):
            if _key(number) not in found:
                try:
                    found[_key(number)] = self._entry(_key(number))
                except ObjectMissing:
                    break
        entries = [found[key] for key in sorted(found)]
        numbers = [entry.number for entry in entries]
        if numbers != list(range(1, len(entries) + 1)):
            raise OutsideError(
                f"the promotion log in {self.store.uri} is not whole: its numbers are {numbers}",
                hint="restore the missing objects from a backup",
            )
        return entries

    def append(self, entry: PromotionEntry) -> bool:
        """Write an entry under its number; False if another one has it already."""
        key = _key(entry.number)
        if self.store.create(key, entry.model_dump_json(indent=1).encode()):
            return True
        return bool(json.loads(self.store.get(key)).get("token") == entry.token)

    def _entry(self, key: str) -> PromotionEntry:
        try:
            return PromotionEntry.model_validate_json(self.store.get(key))
        except ValidationError as error:
            raise OutsideError(
                f"{key} in {self.store.uri} is no promotion entry ({error.error_count()} faults)",
                hint="restore the object from a backup; the champion is unknown until then",
            ) from error


def champion_entry(entries: list[PromotionEntry]) -> PromotionEntry | None:
    """Return the entry that made the champion; None: there is none yet."""
    return next((e for e in reversed(entries) if e.action in MOVES), None)


def newest_fence(entries: list[PromotionEntry]) -> int:
    """Return the highest number of a lease that the log knows; a lower one came too late."""
    return max((entry.fence for entry in entries), default=0)


def champion_and_previous(entries: list[PromotionEntry]) -> tuple[str | None, str | None]:
    """Return the champion's version and that of the champion before it."""
    versions = [entry.version for entry in reversed(entries) if entry.action in MOVES]
    if not versions:
        return None, None
    return versions[0], next((v for v in versions if v != versions[0]), None)


def champion_to_beat(log: PromotionLog, run_key: str) -> PromotionEntry | None:
    """Return the entry of the champion that a run is compared with; None: there is none.

    A run that was killed right after its promotion decides again, against the champion it had.
    """
    entries = log.entries()
    champion = champion_entry(entries)
    if champion is not None and is_own(champion, run_key):
        return champion_entry(entries[: champion.number - 1])
    return champion


def is_own(entry: PromotionEntry, run_key: str) -> bool:
    """Whether a run's own decision made this entry; a later return to its model did not."""
    return entry.run_key == run_key and entry.action in ("promote", "propose", "approve")


def proposals(entries: list[PromotionEntry]) -> list[PromotionEntry]:
    """All proposals, the newest first."""
    return [entry for entry in reversed(entries) if entry.action == "propose"]


def decision_on(entries: list[PromotionEntry], proposal: PromotionEntry) -> PromotionEntry | None:
    """The entry that approved or rejected a proposal."""
    decided = (e for e in entries if e.action in ("approve", "reject"))
    return next((e for e in decided if e.of == proposal.number), None)


def state_of(entries: list[PromotionEntry], proposal: PromotionEntry) -> State:
    """What has become of a proposal; only an open one can be decided.

    `superseded`: there is a newer one. `overtaken`: the champion is no longer the one that it was
    compared with.
    """
    decision = decision_on(entries, proposal)
    if decision is not None:
        return "approved" if decision.action == "approve" else "rejected"
    if proposal.number not in [each.number for each in proposals(entries)[:1]]:
        return "superseded"
    champion = champion_entry(entries)
    return "open" if proposal.compared == (champion.number if champion else 0) else "overtaken"


def open_proposal(entries: list[PromotionEntry]) -> PromotionEntry | None:
    """The proposal that waits for a decision, if there is one."""
    newest = proposals(entries)[:1]
    return newest[0] if newest and state_of(entries, newest[0]) == "open" else None


def _key(number: int) -> str:
    return f"{_PREFIX}{number:08d}.json"
