"""The newest data, validated outside of any run: nothing is stopped, and no record is left."""

from __future__ import annotations

from components.common.data_figures import ValidateFigures
from components.common.layout import home
from components.common.local import fetch_snapshot, open_cache, refuse_mixed_schemas
from components.common.manifest import latest_manifest
from components.common.project import Project
from components.common.records import StepContext, StepRecord
from components.common.sources import open_source
from components.common.tables import add_view, naming_damage, open_tables
from components.snapshot_data.taking import take_snapshot
from infra.store import ObjectStore


def examine_newest(project: Project, store: ObjectStore) -> ValidateFigures:
    """Hold what the source has now against the suite, the champion's data and the last snapshot.

    As `validate_data` does, and with its findings; rows that break a row rule are kept in the
    object store as there.

    Raises:
        StoppedByGate: The data cannot be read.
        OutsideError: The data or the store is out of reach.
    """
    # great_expectations takes three seconds to import
    from components.validate_data.examination import examine
    from components.validate_data.references import references

    record = StepRecord(step="validate_data", run="", run_key="")
    context = StepContext(project, store, home(project), record)
    settings, cache = project.settings.data, open_cache(context)
    source = open_source(project.data_source)
    before = latest_manifest(store, source.given)
    manifest = take_snapshot(source, settings=settings, before=before, cache=cache).manifest
    objects = fetch_snapshot(context, manifest)
    refuse_mixed_schemas(objects)
    scratch = context.home / "scratch"
    with (
        open_tables(settings, readable=[context.cache], scratch=scratch) as connection,
        naming_damage(connection, objects),
    ):
        add_view(connection, "rows", objects)
        return examine(
            connection,
            context,
            objects=objects,
            contents=dict(manifest.keys_and_hashes()),
            known=references(context, digest=manifest.digest),
        ).figures
