"""Divide rows into train, validation and holdout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from components.common.artifacts import MetricsArtifact, log_metrics, read_json, write_json
from components.common.data_figures import Part, SplitFigures
from components.common.data_settings import SplitSettings
from components.common.layout import digest_of
from components.common.manifest import read_manifest
from components.common.records import step
from components.common.rows import PARTS, broken_rules, read_snapshot, times_of, write_frame
from components.common.settings import ProjectSettings
from training_core.errors import StoppedByGate


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
        settings = context.project.settings
        task = context.project.task()
        manifest = read_manifest(context.store, read_json(validated)["digest"])
        rows = read_snapshot(context, manifest)
        rows = rows[broken_rules(rows, settings.validation.row_rules) == ""]
        labelled = rows[~np.isnan(task.target(rows))].reset_index(drop=True)
        if labelled.empty:
            raise StoppedByGate(
                f"none of the {len(rows)} rows has a label in {task.label!r}",
                hint="has the feed that brings the labels stopped?",
            )
        sides = divide(labelled, settings)
        parts = {part: labelled[sides == part].reset_index(drop=True) for part in PARTS}
        proof = prove_apart(parts, settings)
        described = {}
        for name, part in parts.items():
            target = task.target(part)
            if len(np.unique(target)) < 2:
                raise StoppedByGate(
                    f"the {name} part has labels of one class only ({len(part)} rows)",
                    hint="check the label, or make the parts larger (split.holdout, "
                    "split.validation)",
                )
            start, end = _extent(part, settings.data.time_column)
            described[name] = Part(
                rows=len(part), start=start, end=end, positive_rate=float(target.mean())
            )
        scratch = context.home / "scratch" / f"{run_key}-split"
        stored = {name: write_frame(context.store, part, scratch) for name, part in parts.items()}
        write_json(
            splits,
            {
                "format": "evertrain/splits/1",
                "parts": {n: {"sha256": h, "rows": len(parts[n])} for n, h in stored.items()},
                "seen": seen_by_training(parts, settings),
            },
        )
        context.say(
            SplitFigures(
                parts=described,
                unlabelled=len(rows) - len(labelled),
                rule=_words(settings.split),
                proof=proof,
            )
        )
        log_metrics(metrics, {f"{name}_rows": len(part) for name, part in parts.items()})


def divide(rows: pd.DataFrame, settings: ProjectSettings) -> pd.Series[Any]:
    """Return the part of each row.

    By time: the newest days are the holdout, the days before them validation. By hash: a row's
    side follows from its key alone, so it stays there when rows are added.

    Raises:
        StoppedByGate: A part is empty.
    """
    split = settings.split
    if split.by == "time":
        assert settings.data.time_column is not None
        days = times_of(rows, settings.data.time_column).dt.floor("D")
        holdout_from = days.max() - pd.Timedelta(days=split.holdout - 1)
        validation_from = holdout_from - pd.Timedelta(days=split.validation)
        sides = pd.Series("train", index=rows.index)
        sides[days >= validation_from] = "validation"
        sides[days >= holdout_from] = "holdout"
    else:
        keys = rows[settings.data.row_key].astype("string")
        hashed = pd.util.hash_pandas_object(keys, index=False).to_numpy()
        place = hashed / 2.0**64
        sides = pd.Series("train", index=rows.index)
        sides[place < split.holdout + split.validation] = "validation"
        sides[place < split.holdout] = "holdout"
    for part in PARTS:
        if not (sides == part).any():
            raise StoppedByGate(
                f"the {part} part is empty: {len(rows)} labelled rows, {_words(split)}",
                hint="bring more data, or make the other parts smaller (split.holdout, "
                "split.validation)",
            )
    return sides


def prove_apart(parts: dict[str, pd.DataFrame], settings: ProjectSettings) -> list[str]:
    """Check that no row is in two parts, and by time that the parts follow one another.

    Returns:
        What was checked, in sentences.

    Raises:
        StoppedByGate: Two parts overlap.
    """
    proof = []
    key = settings.data.row_key
    for earlier, later in (
        ("train", "validation"),
        ("train", "holdout"),
        ("validation", "holdout"),
    ):
        shared = parts[earlier][key].merge(parts[later][key], on=key)
        if len(shared):
            raise StoppedByGate(
                f"{len(shared)} rows are in {earlier} and in {later}, the first with "
                f"{dict(shared.iloc[0])}",
                hint=f"is {key} (data.row_key) really unique? are rows there twice?",
            )
        proof.append(f"no row of {earlier} is in {later} (by {', '.join(key)})")
        if settings.split.by == "time":
            assert settings.data.time_column is not None
            last = times_of(parts[earlier], settings.data.time_column).max()
            first = times_of(parts[later], settings.data.time_column).min()
            if last >= first:
                raise StoppedByGate(f"{earlier} ends at {last}, after {later} begins at {first}")
            proof.append(f"{earlier} ends before {later} begins ({last:%Y-%m-%d %H:%M} UTC)")
    return proof


def seen_by_training(parts: dict[str, pd.DataFrame], settings: ProjectSettings) -> dict[str, str]:
    """Say what training and selection see, so that a later holdout can be known to be unseen."""
    if settings.split.by == "time":
        assert settings.data.time_column is not None
        until = times_of(parts["validation"], settings.data.time_column).max()
        return {"by": "time", "until": until.isoformat()}
    rule = digest_of([settings.split.model_dump(), settings.data.row_key])
    return {"by": "hash", "rule": rule}


def _extent(part: pd.DataFrame, column: str | None) -> tuple[str, str]:
    if column is None:
        return "", ""
    times = times_of(part, column)
    return times.min().isoformat(), times.max().isoformat()


def _words(split: SplitSettings) -> str:
    if split.by == "time":
        return (
            f"by time: the newest {split.holdout:g} days held out, the {split.validation:g} days "
            "before them for validation"
        )
    return f"by hash: {split.holdout:.0%} held out, {split.validation:.0%} for validation"
