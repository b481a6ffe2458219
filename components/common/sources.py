"""Where the data comes from: a folder, a prefix of a bucket, or a list of these and single objects.

    source = open_source(project.data_source)
    for prefix, listing in source.places(): ...

Of one URI a key is what follows it. Of a list it is the whole URI of the object, so that two
folders may hold the same names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from infra.store import ObjectInfo, ObjectStore, open_store
from training_core.errors import ConfigurationError

# By its name a URI is a single object rather than a prefix; the store is asked then.
SUFFIXES = (".parquet", ".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")


@dataclass(frozen=True)
class Place:
    """One URI of a source.

    Attributes:
        prefix: What its keys begin with in the source: "", or its URI and a slash.
        store: Where its objects are.
        only: The key in the store, if the URI is that of a single object.
    """

    prefix: str
    store: ObjectStore
    only: str = ""

    @property
    def uri(self) -> str:
        return f"{self.store.uri}/{self.only}" if self.only else self.store.uri

    def list(self, *, after: str = "") -> Iterator[ObjectInfo]:
        """Yield its objects in key order, by their keys in the store; those behind `after`."""
        if not self.only:
            yield from self.store.list(after=after)
        elif self.only > after and (info := self.store.info(self.only)) is not None:
            yield info


class Source:
    """One or several places.

    Attributes:
        given: What it was opened with, to open it again.
        uri: The URIs in words.
    """

    def __init__(self, given: str | list[str], places: list[Place]) -> None:
        self.given = given
        self.uri = ", ".join(place.uri for place in places)
        # No prefix begins with another, so in this order the keys of all are in order as well.
        self.places = sorted(places, key=lambda place: place.prefix + place.only)

    def fetch(self, key: str, path: Path, *, version: str = "", version_id: str = "") -> str:
        """Copy one version of an object to a file; see `ObjectStore.fetch`."""
        place = next(p for p in self.places if key.startswith(p.prefix))
        inner = key.removeprefix(place.prefix)
        return place.store.fetch(inner, path, version=version, version_id=version_id)


def open_source(given: str | list[str]) -> Source:
    """Open the stores at one URI or at several.

    Raises:
        ConfigurationError: The list is empty, or one URI lies inside another.
        OutsideError: A store cannot be opened.
    """
    if isinstance(given, str):
        return Source(given, [_open(given, joined=False)])
    if not given:
        raise ConfigurationError("data.source is an empty list", hint="name a folder or a prefix")
    places = sorted((_open(uri, joined=True) for uri in given), key=lambda place: place.uri)
    for place, other in pairwise(places):
        if other.uri == place.uri or other.uri.startswith(place.uri.rstrip("/") + "/"):
            raise ConfigurationError(
                f"data.source names {other.uri} inside {place.uri}: its rows would count twice",
                hint="remove one of the two from data.source",
            )
    return Source(given, places)


def _open(uri: str, *, joined: bool) -> Place:
    parent, slash, name = uri.rstrip("/").rpartition("/")
    if slash and name.endswith(SUFFIXES) and not parent.endswith(":/"):
        store = open_store(parent or "/")
        # `x.parquet` may be a folder, too: Spark makes such
        if store.info(name) is not None:
            return Place(f"{store.uri.rstrip('/')}/" if joined else "", store, name)
    store = open_store(uri)
    return Place(f"{store.uri.rstrip('/')}/" if joined else "", store)
