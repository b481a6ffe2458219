"""The promotion log: the truth about which model is champion.

Numbered entries, each created only if none has its number: a linear history without lost updates.
A rollback is one more entry. The registry's aliases are a projection of the last entry and are
repaired from it.
"""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from infra.errors import OutsideError
from infra.store import ObjectStore

if TYPE_CHECKING:
    from infra.registry import Registry

_PREFIX = "promotions/"


class PromotionEntry(BaseModel):
    """One change of champion.

    Attributes:
        number: 1 for the first; one more each time.
        version: In the model registry.
        run, run_key: The run that trained it.
        package: sha256 of each of the package's files in the object store.
        seen: What training and selection have seen: the newest time, or the rule of the split.
        who: Who or what made the entry.
        token: Tells the writer's own entry from another's after a lost reply.
    """

    model_config = ConfigDict(extra="forbid")

    format: Literal["evertrain/promotion/1"] = "evertrain/promotion/1"
    number: int
    action: Literal["promote", "rollback"]
    version: str
    run: str
    run_key: str
    package: dict[str, str]
    seen: dict[str, str]
    reason: str
    who: str
    when: datetime = Field(default_factory=lambda: datetime.now(UTC))
    token: str = Field(default_factory=lambda: uuid.uuid4().hex)


class PromotionLog:
    """The entries in a project's object store."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

    def entries(self) -> list[PromotionEntry]:
        """Return all entries, oldest first.

        Raises:
            OutsideError: An entry is damaged, or a number is missing: nothing may be decided then.
        """
        found: list[PromotionEntry] = []
        for info in self.store.list(_PREFIX):
            try:
                found.append(PromotionEntry.model_validate_json(self.store.get(info.key)))
            except ValidationError as error:
                raise OutsideError(
                    f"{info.key} in {self.store.uri} is no promotion entry "
                    f"({error.error_count()} faults)",
                    hint="restore the object from a backup; the champion is unknown until then",
                ) from error
        numbers = [entry.number for entry in found]
        if numbers != list(range(1, len(found) + 1)):
            raise OutsideError(
                f"the promotion log in {self.store.uri} is not whole: its numbers are {numbers}",
                hint="restore the missing objects from a backup",
            )
        return found

    def head(self) -> PromotionEntry | None:
        """Return the last entry: it names the champion. None: there is no champion yet."""
        entries = self.entries()
        return entries[-1] if entries else None

    def append(self, entry: PromotionEntry) -> bool:
        """Write an entry under its number; False if another one has it already."""
        key = f"{_PREFIX}{entry.number:08d}.json"
        if self.store.create(key, entry.model_dump_json(indent=1).encode()):
            return True
        return bool(json.loads(self.store.get(key)).get("token") == entry.token)


def champion_and_previous(entries: list[PromotionEntry]) -> tuple[str | None, str | None]:
    """Return the champion's version and that of the champion before it."""
    if not entries:
        return None, None
    champion = entries[-1].version
    before = next((e.version for e in reversed(entries[:-1]) if e.version != champion), None)
    return champion, before


def repair_aliases(log: PromotionLog, registry: Registry, model: str) -> dict[str, Any]:
    """Make the registry's aliases say what the log says; return what was changed."""
    champion, previous = champion_and_previous(log.entries())
    wanted = {"champion": champion, "previous": previous}
    present = registry.aliases(model)
    changes = {a: v for a, v in wanted.items() if present.get(a) != v}
    if changes:
        registry.set_aliases(model, changes)
    return changes
