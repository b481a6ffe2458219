"""Take the lease, then a snapshot: list, hash what is new, and decide what there is to do."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from components.common.artifacts import write_json
from components.common.data_figures import MOST_OBJECTS, DataObject, SnapshotFigures
from components.common.deployed import check_deployed
from components.common.layout import digest_of, finished_key
from components.common.local import open_cache
from components.common.manifest import objects_of
from components.common.provenance import provenance
from components.common.records import StepContext, current_run, step
from components.common.sources import open_source
from components.common.training_start import keep_start, keep_teacher
from components.snapshot_data.starting_point import key_and_settled
from components.snapshot_data.taking import Taken, take_next_snapshot
from components.snapshot_data.turn import take_turn
from infra.errors import ObjectMissing
from infra.store import ObjectStore


class Outputs(NamedTuple):
    Output: str  # train, nothing_new or busy
    data_digest: str
    run_key: str


def run(
    project: str, data: str, store: str, overrides: list[str], force: bool, snapshot: str
) -> Outputs:
    """See `component.py`."""
    with step(
        "snapshot_data", project=project, store=store, overrides=overrides, data=data
    ) as context:
        check_deployed(context.project)
        if busy := take_turn(context):
            context.record.status, context.record.reason = "skipped", busy
            write_json(snapshot, {"skipped": busy})
            return Outputs("busy", "", "")
        taken = _take(context)
        manifest = taken.manifest
        digest = manifest.digest
        made_of = provenance(context.project)
        code = made_of.image_digest or made_of.code_digest
        run_key, settled = key_and_settled(context, [digest, code, made_of.config_digest])
        if force:
            run_key = digest_of([run_key, current_run()])[:32]
        if settled.start is not None:
            keep_start(context.store, run_key, settled.start)
        if settled.teacher is not None:
            keep_teacher(context.store, run_key, settled.teacher)
        finished_by = _finished_by(context.store, run_key)
        decision = "nothing_new" if finished_by else "train"
        context.record.run_key = run_key
        context.say(
            SnapshotFigures(
                digest=digest,
                source=manifest.source,
                rows=manifest.rows,
                object_count=manifest.object_count,
                new_count=int(taken.new.sum()),
                new_rows=taken.new_rows,
                size=manifest.size,
                objects=_shown_objects(taken),
                decision="nothing_new" if finished_by else "train",
                same_key_run=finished_by,
                start=settled.start.words if settled.start is not None else "",
                teacher=settled.teacher.words if settled.teacher is not None else "",
                provenance=made_of,
            )
        )
        write_json(
            snapshot,
            {
                "digest": digest, "source": manifest.source,
                "rows": manifest.rows, "objects": manifest.object_count,
            },
        )  # fmt: skip
        return Outputs(decision, digest, run_key)


def _take(context: StepContext) -> Taken:
    """Take the snapshot and keep its manifest."""
    settings = context.project.settings.data
    if settings.types:
        from components.common.conversion import check_types

        check_types(settings)
    source, cache = open_source(context.project.data_source), open_cache(context)
    taken = take_next_snapshot(source, settings=settings, store=context.store, cache=cache)
    cache.make_room()
    return taken


def _shown_objects(taken: Taken) -> list[DataObject]:
    """Some objects for the report, in key order: the last of the new ones, then the last others."""
    new, others = np.flatnonzero(taken.new), np.flatnonzero(~taken.new)
    new = new[-MOST_OBJECTS:]
    chosen = np.sort(np.concatenate([new, others[len(others) - (MOST_OBJECTS - len(new)) :]]))
    table = taken.manifest.table.take(pa.array(chosen))
    return list(objects_of(table.append_column("new", pa.array(taken.new[chosen]))))


def _finished_by(store: ObjectStore, run_key: str) -> str:
    """The run that finished with this key, or ""."""
    try:
        return str(json.loads(store.get(finished_key(run_key)))["run"])
    except ObjectMissing:
        return ""
