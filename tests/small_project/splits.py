"""The splits of the small project, as split_data leaves them."""

from __future__ import annotations

import json
from pathlib import Path

from components.common.layout import put_object
from components.common.project import open_project
from components.split_data.step import divide, seen_by_training
from infra.folder import FolderStore
from tests.small_project.make_data import month


def write_splits(project: Path) -> Path:
    """Divide the first month, put the parts into the project's store; return their manifest."""
    opened = open_project(project)
    store, rows = FolderStore(project / ".evertrain" / "store"), month(1)
    sides = divide(rows, opened.settings)
    parts, pieces = {}, {}
    for name in ("train", "validation", "holdout"):
        file = project / f"{name}.parquet"
        pieces[name] = rows[sides == name]
        pieces[name].to_parquet(file, index=False)
        parts[name] = {"sha256": put_object(store, file), "rows": len(pieces[name])}
    manifest = project / "splits.json"
    seen = seen_by_training(pieces, opened.settings)
    manifest.write_text(json.dumps({"parts": parts, "seen": seen}))
    return manifest
