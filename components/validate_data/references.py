"""What a snapshot is compared with: the champion's data, and the snapshot validated last."""

from __future__ import annotations

import json
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from components.common.champion import PromotionLog, champion_entry
from components.common.layout import fetch_object, put_object
from components.common.local import open_cache
from components.common.manifest import read_manifest
from components.common.records import StepContext
from components.validate_data.profile import Profile
from infra.errors import ObjectMissing

LAST = "profiles/last.json"


@dataclass(frozen=True)
class Reference:
    """Data that was validated before.

    Attributes:
        words: What it is.
        profile: What it looked like.
        sample: Some of its rows.
        contents: The hashes of its objects.
    """

    words: str
    profile: Profile
    sample: pa.Table
    contents: Set[str]


def profile_key(run_key: str) -> str:
    """Where it is written which profile, sample and snapshot belong to a run's key."""
    return f"profiles/{run_key}.json"


def keep_profile(
    context: StepContext, run_key: str, *, digest: str, profile: Profile, sample: pa.Table
) -> None:
    """Store what later snapshots are compared with, should this one's model become champion."""
    scratch = context.home / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    file = scratch / f"{run_key}-profile"
    try:
        file.write_text(profile.to_json())
        profile_hash = put_object(context.store, file)
        pq.write_table(sample, file, compression="zstd")
        sample_hash = put_object(context.store, file)
    finally:
        file.unlink(missing_ok=True)
    kept = {
        "format": "evertrain/validated/1", "digest": digest,
        "profile": profile_hash, "sample": sample_hash,
    }  # fmt: skip
    context.store.put(profile_key(run_key), json.dumps(kept).encode())


def remember_as_last(context: StepContext, run_key: str) -> None:
    """Note that this snapshot passed, so that the next one is compared with it, too."""
    context.store.put(LAST, json.dumps({"run_key": run_key}).encode())


def references(context: StepContext, *, digest: str) -> list[Reference]:
    """Return the champion's data and the data validated last, each once and none of them this.

    Raises:
        OutsideError: What was kept of one cannot be read.
    """
    found: dict[str, str] = {}
    champion = champion_entry(PromotionLog(context.store).entries())
    if champion is not None:
        found[champion.run_key] = f"the data of champion {champion.version}"
    try:
        last = str(json.loads(context.store.get(LAST))["run_key"])
    except ObjectMissing:
        last = ""
    if last:
        found.setdefault(last, "the snapshot validated last")
    read = {key: _read(context, key) for key in found}
    kept = {key: one for key, one in read.items() if one is not None and one["digest"] != digest}
    if len(kept) == 2 and len({one["digest"] for one in kept.values()}) == 1:
        kept.pop(last)
    return [_opened(context, found[key], one) for key, one in kept.items()]


def _read(context: StepContext, run_key: str) -> dict[str, str] | None:
    try:
        kept: dict[str, str] = json.loads(context.store.get(profile_key(run_key)))
    except ObjectMissing:
        return None
    return kept


def _opened(context: StepContext, words: str, kept: dict[str, str]) -> Reference:
    def local(sha256: str) -> Path:
        return fetch_object(context.store, sha256, context.cache)

    manifest = read_manifest(context.store, kept["digest"], open_cache(context))
    return Reference(
        words=words,
        profile=Profile.from_json(local(kept["profile"]).read_bytes()),
        sample=pq.read_table(local(kept["sample"])),
        contents={content for _, content in manifest.keys_and_hashes()},
    )
