"""Promoters that race, and die between any two of their writes."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from components.common.approval import approve, reject
from components.common.champion import (
    PromotionEntry,
    PromotionLog,
    champion_to_beat,
    open_proposal,
)
from components.common.decision_figures import SmokeFigures
from components.common.promotion import TAG, enter
from components.common.rollback import roll_back
from infra.errors import OutsideError
from infra.registry import Registry
from infra.store import ObjectStore
from training_core.errors import EvertrainError

ACTIONS = ("promote", "approve", "reject", "rollback")


class Crash(BaseException):
    """The promoter is gone: nothing that it meant to do afterwards happens."""


class Fate:
    """Counts a promoter's writes and ends it at one of them, before or after it is made."""

    def __init__(self, chance: random.Random, *, die_at: int = 0, after: bool = False) -> None:
        self.chance, self.die_at, self.after = chance, die_at, after
        self.writes, self.dead = 0, False

    def pause(self) -> None:
        """Let others come in between; the dead do nothing any more."""
        if self.dead:
            raise Crash
        time.sleep(self.chance.random() * 0.002)

    def write(self, make: Callable[[], Any]) -> Any:
        """Make a write, unless this is the one to die at."""
        self.pause()
        self.writes += 1
        if self.writes != self.die_at:
            return make()
        self.dead = True
        if self.after:
            make()
        raise Crash


class MortalStore:
    """A store whose user may die at any write."""

    def __init__(self, store: ObjectStore, fate: Fate) -> None:
        self._store, self._fate = store, fate

    def create(self, key: str, data: bytes) -> bool:
        return bool(self._fate.write(lambda: self._store.create(key, data)))

    def __getattr__(self, name: str) -> Any:
        self._fate.pause()
        return getattr(self._store, name)


class Memory:
    """What a registry in memory holds: versions by number, aliases."""

    def __init__(self) -> None:
        self.versions: dict[str, dict[str, str]] = {}
        self.aliases: dict[str, str] = {}
        self.lock = threading.Lock()


class MemoryRegistry:
    """The registry's interface over memory: no compare-and-swap, one write for each alias."""

    model = "in memory"

    def __init__(self, memory: Memory, fate: Fate) -> None:
        self._memory, self._fate = memory, fate

    def find_version(self, model: str, *, tag: str, value: str) -> str | None:
        self._fate.pause()
        with self._memory.lock:
            found = [v for v, tags in self._memory.versions.items() if tags.get(tag) == value]
        return min(found, key=int, default=None)

    def register(self, run_key: str) -> str:
        def make() -> str:
            with self._memory.lock:
                version = str(len(self._memory.versions) + 1)
                self._memory.versions[version] = {TAG: run_key}
            return version

        return str(self._fate.write(make))

    def aliases(self, model: str) -> dict[str, str]:
        self._fate.pause()
        with self._memory.lock:
            return dict(self._memory.aliases)

    def set_aliases(self, model: str, aliases: Mapping[str, str | None]) -> None:
        for alias, version in aliases.items():
            self._fate.write(lambda alias=alias, version=version: self._set(alias, version))
        after = self.aliases(model)
        if any(after.get(alias) != version for alias, version in aliases.items()):
            raise OutsideError("the aliases did not stick")

    def run_keys(self) -> list[str]:
        """The run key of each version."""
        return [tags[TAG] for tags in self._memory.versions.values()]

    def _set(self, alias: str, version: str | None) -> None:
        with self._memory.lock:
            if version is None:
                self._memory.aliases.pop(alias, None)
            else:
                self._memory.aliases[alias] = version


class _MortalClient:
    """An MLflow client whose user may die at any write."""

    def __init__(self, client: Any, fate: Fate) -> None:
        self._client, self._fate = client, fate

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if not name.startswith(("set_", "delete_", "create_")):
            return method
        return lambda *words, **options: self._fate.write(lambda: method(*words, **options))


class MlflowRegistry(Registry):
    """The real registry on SQLite; a version is made without the files of a model."""

    def __init__(self, uri: str, client: Any, model: str, fate: Fate) -> None:
        super().__init__(uri=uri, experiment=model)
        self.model = model
        self._connection = _MortalClient(client, fate)

    def register(self, run_key: str) -> str:  # type: ignore[override]
        made = self._client.create_model_version(self.model, source="/nowhere", tags={TAG: run_key})
        return str(made.version)

    def run_keys(self) -> list[str]:
        """The run key of each version."""
        return [each["tags"][TAG] for each in self.versions(self.model)]


@dataclass
class Promoter:
    """One command: what it does, with what, and what it was told.

    Attributes:
        told: Entries that it was told are written.
        compared: Numbers of the champion's entries that it compared its model with.
        end: `done`, `refused`, `failed` or `crashed`.
        died: It crashed, and gave the same command again.
    """

    action: str
    run_key: str
    told: list[PromotionEntry] = field(default_factory=list)
    compared: set[int] = field(default_factory=set)
    end: str = ""
    died: bool = False

    def run(self, store: ObjectStore, registry: Any) -> None:
        """Do what this promoter is for, to whatever end."""
        log = PromotionLog(store)
        try:
            getattr(self, f"_{self.action}")(log, registry)
            self.end = "done"
        except EvertrainError:
            self.end = "refused"
        except OutsideError:
            self.end = "failed"
        except Crash:
            self.end = "crashed"

    def _promote(self, log: PromotionLog, registry: Any) -> PromotionEntry:
        return self._enter(log, registry, "promote")

    def _approve(self, log: PromotionLog, registry: Any) -> None:
        proposal = self._enter(log, registry, "propose")
        if proposal.action == "propose":  # otherwise it was approved before this one died
            self.told.append(
                approve(
                    log,
                    registry,
                    registry.model,
                    proposal,
                    reason="",
                    who=self.run_key,
                    rehearse=_works,
                )
            )

    def _reject(self, log: PromotionLog, registry: Any) -> None:
        proposal = open_proposal(log.entries()) or self._enter(log, registry, "propose")
        self.told.append(
            reject(log, registry, registry.model, proposal, reason="no", who=self.run_key)
        )

    def _rollback(self, log: PromotionLog, registry: Any) -> None:
        self.told.append(
            roll_back(
                log, registry, registry.model, to="", reason="", who=self.run_key, rehearse=_works
            )
        )

    def _enter(self, log: PromotionLog, registry: Any, action: Any) -> PromotionEntry:
        champion = champion_to_beat(log, self.run_key)
        compared = champion.number if champion else 0
        self.compared.add(compared)
        entry = PromotionEntry(
            number=0, action=action, version="", run=self.run_key, run_key=self.run_key,
            package={}, seen={}, reason="", who=self.run_key, compared=compared,
        )  # fmt: skip
        written = enter(
            log, registry, registry.model, entry, register=lambda: registry.register(self.run_key)
        )
        self.told.append(written)
        return written


def _works(entry: PromotionEntry) -> SmokeFigures:
    return SmokeFigures(outcome="pass", message="")
