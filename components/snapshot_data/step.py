"""Take a snapshot: list, hash what is new, and decide whether there is anything to do."""

from __future__ import annotations

import fnmatch
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
from pyarrow import ArrowException

from components.common.artifacts import write_json
from components.common.data_figures import DataObject, SnapshotFigures
from components.common.layout import digest_of, finished_key, sha256_of
from components.common.provenance import provenance
from components.common.records import StepContext, current_run, step
from infra.errors import ObjectMissing
from infra.store import ObjectInfo, ObjectStore, open_store
from training_core.errors import StoppedByGate

LATEST = "snapshots/latest.json"


class Outputs(NamedTuple):
    Output: str  # train or nothing_new
    data_digest: str
    run_key: str


def run(
    project: str, data: str, store: str, overrides: list[str], force: bool, snapshot: str
) -> Outputs:
    """See `component.py`."""
    with step(
        "snapshot_data", project=project, store=store, overrides=overrides, data=data
    ) as context:
        source = open_store(context.project.data_source)
        objects = take_snapshot(
            source,
            pattern=context.project.settings.data.pattern,
            newest=context.project.settings.data.newest,
            known=_known(context),
            cache=context.cache,
        )
        digest = digest_of([(o.key, o.sha256) for o in objects])
        manifest = {
            "format": "evertrain/snapshot/1",
            "digest": digest,
            "source": source.uri,
            "objects": [o.model_dump(exclude={"new"}) for o in objects],
        }
        context.store.create(f"snapshots/{digest}.json", json.dumps(manifest).encode())
        context.store.put(LATEST, json.dumps(manifest).encode())
        made_of = provenance(context.project)
        code = made_of.image_digest or made_of.code_digest
        run_key = digest_of([digest, code, made_of.config_digest])[:32]
        if force:
            run_key = digest_of([run_key, current_run()])[:32]
        finished_by = _finished_by(context.store, run_key)
        decision = "nothing_new" if finished_by else "train"
        context.record.run_key = run_key
        context.say(
            SnapshotFigures(
                digest=digest,
                source=source.uri,
                rows=sum(o.rows for o in objects),
                objects=objects,
                decision="nothing_new" if finished_by else "train",
                same_key_run=finished_by,
                provenance=made_of,
            )
        )
        write_json(snapshot, manifest)
        return Outputs(decision, digest, run_key)


def take_snapshot(
    source: ObjectStore,
    *,
    pattern: str,
    newest: int,
    known: dict[tuple[str, int, str], DataObject],
    cache: Path,
) -> list[DataObject]:
    """List the source and hash whatever is not known by key, size and version.

    Args:
        source: The data.
        pattern: Of the object's name (its last part).
        newest: Only the last N objects by key; 0: all.
        known: Objects of the snapshot before, by key, size and version.
        cache: Folder that receives what is read, under its hash.

    Raises:
        StoppedByGate: Nothing to read, no Parquet, the same content twice, or an object changed
            while it was read.
    """
    listing = [
        info
        for info in source.list()
        if fnmatch.fnmatch(info.key.rpartition("/")[2], pattern)
        and not any(part.startswith(".") for part in info.key.split("/"))
    ]
    if not listing:
        raise StoppedByGate(
            f"there is nothing to read: no object below {source.uri} matches {pattern!r}",
            hint="check data.source and data.pattern in evertrain.yaml, or --data",
        )
    listing = listing[-newest:] if newest else listing

    def describe(info: ObjectInfo) -> DataObject:
        seen = known.get((info.key, info.size, info.version))
        return seen.model_copy(update={"new": False}) if seen else _read(source, info, cache)

    with ThreadPoolExecutor(8) as pool:
        objects = list(pool.map(describe, listing))
    by_content: dict[str, str] = {}
    for o in objects:
        if o.sha256 in by_content:
            raise StoppedByGate(
                f"{o.key} has the very content of {by_content[o.sha256]}: its rows would count "
                "twice",
                hint="remove one of the two",
            )
        by_content[o.sha256] = o.key
    return objects


def _read(source: ObjectStore, info: ObjectInfo, cache: Path) -> DataObject:
    """Fetch an object into the cache, hash it and count its rows."""
    temporary = cache / f"reading-{os.getpid()}-{digest_of(info.key)[:16]}"
    try:
        try:
            source.get_file(info.key, temporary)
            now = source.info(info.key)
        except ObjectMissing:
            now = None
        if now is None or (now.size, now.version) != (info.size, info.version):
            raise StoppedByGate(
                f"{info.key} in {source.uri} changed while it was read",
                hint="wait until whoever writes it is done, then run the same command again",
            )
        try:
            rows = pq.ParquetFile(temporary).metadata.num_rows
        except (ArrowException, OSError) as error:
            raise StoppedByGate(
                f"{info.key} in {source.uri} is no readable Parquet file ({info.size} bytes): "
                f"{str(error).splitlines()[0]}",
                hint="it may be cut off or of another format; write it again or remove it",
            ) from error
        sha256 = sha256_of(temporary)
        target = cache / sha256[:2] / sha256
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return DataObject(
        key=info.key, size=info.size, version=info.version, sha256=sha256, rows=rows, new=True
    )


def _known(context: StepContext) -> dict[tuple[str, int, str], DataObject]:
    try:
        manifest = json.loads(context.store.get(LATEST))
    except (ObjectMissing, ValueError):
        return {}
    if manifest.get("source") != open_store(context.project.data_source).uri:
        return {}
    objects = [DataObject.model_validate(entry) for entry in manifest["objects"]]
    return {(o.key, o.size, o.version): o for o in objects}


def _finished_by(store: ObjectStore, run_key: str) -> str:
    """The run that finished with this key, or ""."""
    try:
        return str(json.loads(store.get(finished_key(run_key)))["run"])
    except ObjectMissing:
        return ""
