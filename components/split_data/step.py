"""Divide rows into train, validation and holdout."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from components.common.artifacts import MetricsArtifact, log_metrics, read_json, write_json
from components.common.data_figures import SplitFigures
from components.common.labels import Label
from components.common.layout import put_object, splits_key
from components.common.local import fetch_snapshot, open_cache
from components.common.manifest import read_manifest
from components.common.records import step
from components.common.row_rules import cut
from components.common.tables import add_view, open_tables
from components.common.targets import lost_words
from components.split_data.parts import write_parts
from components.split_data.proof import prove_apart
from components.split_data.sides import Division, divide, seen_by_training, words


def run(
    project: str,
    store: str,
    overrides: list[str],
    run_key: str,
    validated: str,
    splits: str,
    metrics: MetricsArtifact,
) -> None:
    """See `component.py`."""
    with step(
        "split_data", project=project, store=store, overrides=overrides, run_key=run_key
    ) as context:
        settings, label = context.project.settings, Label.of(context.project.task())
        digest = read_json(validated)["digest"]
        manifest = read_manifest(context.store, digest, open_cache(context))
        objects = fetch_snapshot(context, manifest)
        scratch = context.home / "scratch"
        scratch.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(prefix="split-", dir=scratch) as made,
            open_tables(
                settings.data, readable=[context.cache, Path(made)], scratch=scratch
            ) as connection,
        ):
            add_view(connection, "rows", objects)
            cut(connection, "rows", settings.validation.row_rules)
            division = divide(connection, settings=settings, label=label)
            files = write_parts(connection, division, settings=settings, folder=Path(made))
            for name, file in files.items():
                add_view(connection, name, [file])
            proof = prove_apart(connection, settings=settings, parts=division.parts, label=label)
            stored = {name: put_object(context.store, file.path) for name, file in files.items()}
        rows = {name: part.rows for name, part in division.parts.items()}
        manifest_of_parts = {
            "format": "evertrain/splits/1",
            "parts": {name: {"sha256": stored[name], "rows": rows[name]} for name in stored},
            "seen": seen_by_training(division.parts, settings),
            "proof": [each.model_dump() for each in proof],
            "lost_labels": division.lost,
        }
        write_json(splits, manifest_of_parts)
        # The artifact is the orchestrator's; commands that train without a run find the parts here.
        context.store.put(splits_key(run_key), json.dumps(manifest_of_parts).encode())
        context.say(
            SplitFigures(
                parts=division.parts,
                unlabelled=division.unlabelled,
                rule=words(settings.split),
                proof=proof,
                kind=label.kind,
                notes=[*_lost(division, label), *division.rare],
            )
        )
        log_metrics(metrics, {f"{name}_rows": count for name, count in rows.items()})


def _lost(division: Division, label: Label) -> list[str]:
    share = sum(each.share for each in division.lost)
    said = lost_words(division.lost, label)
    return [f"{share:.2%} of the rows are left out, for {said}"] if said else []
