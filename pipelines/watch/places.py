"""Where events come from: the places of the data, or a queue that their bucket notifies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from components.common.project import Project
from components.common.sources import Place, Source, open_source
from components.snapshot_data.listing import are_data
from components.snapshot_data.partitions import Pattern
from infra.events.polling import Polling
from infra.events.source import EventSource
from infra.events.sqs import SqsEvents
from infra.s3 import S3Store
from infra.store import ObjectInfo
from training_core.errors import ConfigurationError


class WatchedPlace:
    """One place of a source, and which of its objects are data."""

    def __init__(self, place: Place, pattern: Pattern) -> None:
        self._place, self._pattern = place, pattern

    @property
    def uri(self) -> str:
        return self._place.uri

    def list(self, *, after: str = "") -> Iterator[ObjectInfo]:
        """Yield what is there, data or not, in key order."""
        return self._place.list(after=after)

    def chosen(self, keys: Sequence[str]) -> Sequence[bool]:
        """Say of each key whether it is data; one that is no UTF-8 is: the run will say so."""
        try:
            array = pa.array(keys, pa.string())
        except UnicodeEncodeError:
            return [True] * len(keys)
        found: list[bool] = are_data(array, self._pattern, self._place).to_pylist()
        return found

    def has(self, bucket: str, key: str) -> bool:
        """Say whether an object of a bucket is data in this place."""
        store = self._place.store
        if not isinstance(store, S3Store) or store.bucket != bucket:
            return False
        root = f"{store.prefix}/" if store.prefix else ""
        return key.startswith(root) and self.chosen([key.removeprefix(root)])[0]


def open_events(
    project: Project,
    *,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> tuple[EventSource, Source]:
    """Open what tells of new data, and the data itself.

    Raises:
        ConfigurationError: A queue is named, and no data is in a bucket; or the pattern is wrong.
        OutsideError: A store or the queue cannot be opened.
    """
    source = open_source(project.data_source)
    settings = project.settings
    pattern = Pattern(settings.data.pattern)
    places = [WatchedPlace(place, pattern) for place in source.places]
    queue = settings.watch.queue
    if not queue:
        return Polling(places, every=settings.watch.poll, clock=clock, sleep=sleep), source
    if not any(isinstance(place.store, S3Store) for place in source.places):
        raise ConfigurationError(
            f"watch.queue names {queue}, but data.source, {source.uri}, is in no bucket",
            hint="leave watch.queue empty: folders are listed",
        )
    return SqsEvents(queue, chosen=lambda b, k: any(p.has(b, k) for p in places)), source
