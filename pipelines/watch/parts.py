"""What a watcher is made of, and the contract of what makes a run due."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from components.common.data_settings import DataSettings
from components.common.sources import Source
from components.common.trigger_settings import WatchSettings
from infra.events.source import EventSource
from infra.store import ObjectStore
from pipelines.watch.advice import Advising
from pipelines.watch.cursor import Cursor, Cursors
from pipelines.watch.exporting import Figures
from pipelines.watch.schedules import Schedules
from pipelines.watch.starting import Starting
from pipelines.watch.telling import Teller


@dataclass(frozen=True)
class Parts:
    """What a watcher is made of.

    Attributes:
        name: Of the project.
        source, data: What is listed, and what of it is data.
        events: What tells that something came.
        busy: Says in words which run is under way; given a run's id, but for that one.
        advising: None: neither drift nor decay are triggers.
        now: Unix time: for schedules and figures, nothing else.
        calm: Entered while everything is listed, which may be broken off.
    """

    name: str
    settings: WatchSettings
    source: Source
    data: DataSettings
    events: EventSource
    store: ObjectStore
    cursors: Cursors
    starting: Starting
    schedules: Schedules
    busy: Callable[[str], str]
    advising: Advising | None
    figures: Figures
    teller: Teller
    now: Callable[[], float] = time.time
    calm: Callable[[], AbstractContextManager[None]] = nullcontext

    def time(self) -> datetime:
        """Now, in UTC."""
        return datetime.fromtimestamp(self.now(), UTC)


class Trigger(Protocol):
    """One thing that makes a run due; asked only while there is no order.

    Every method may raise `OutsideError`: called again, it goes on.
    """

    def prepare(self, cursor: Cursor) -> Cursor:
        """Note what is new, due or not; return what is known then."""

    def is_due(self, cursor: Cursor) -> bool:
        """Whether it is time to find out if a run is due."""

    def give_order(self, cursor: Cursor) -> Cursor:
        """Order the run, if it turns out to be due; return what is known then."""

    def seconds_left(self, cursor: Cursor) -> float:
        """Seconds until `is_due` may say so, if nothing else comes."""
