"""A source that remembers what was read of it, and a snapshot of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from components.common.cache import Cache
from components.common.data_settings import DataSettings
from components.common.manifest import Manifest
from components.common.sources import Place, Source
from components.snapshot_data.taking import Taken, take_snapshot
from infra.folder import FolderStore


class CountingStore(FolderStore):
    """A folder that remembers which objects were read, and may be written to meanwhile."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.read: list[str] = []
        self.meanwhile: Any = lambda key: None

    def fetch(self, key: str, path: Path, *, version: str = "", version_id: str = "") -> str:
        self.read.append(key)
        self.meanwhile(key)
        return super().fetch(key, path, version=version, version_id=version_id)


def settings(**given: Any) -> DataSettings:
    return DataSettings.model_validate({"source": "data", "row_key": ["x"], **given})


def snapshot(store: CountingStore, before: Manifest | None = None, **given: Any) -> Taken:
    """Take a snapshot of a folder, its cache beside it."""
    store.read.clear()
    source = Source(str(store.root), [Place("", store)])
    cache = Cache(store.root.parent / "cache")
    return take_snapshot(source, settings=settings(**given), before=before, cache=cache)


def write(store: FolderStore, key: str, *values: int) -> None:
    """Write a Parquet object of one column."""
    path = store.root / key
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"x": list(values)}), path)


def keys(taken: Taken) -> list[str]:
    return [key for key, _ in taken.manifest.keys_and_hashes()]
