"""The champion's package, fetched from the object store and loaded without running its code."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from components.common.champion import PromotionEntry
from components.common.layout import fetch_object
from infra.store import ObjectStore

if TYPE_CHECKING:
    from training_core.package import Package
    from training_core.task import Task


def package_folder(store: ObjectStore, files: dict[str, str], cache: Path) -> Path:
    """Return a folder with a package's files, each checked against its hash.

    Raises:
        OutsideError: A file is missing or damaged.
    """
    folder = cache / "packages" / files["package.json"]
    folder.mkdir(parents=True, exist_ok=True)
    for name, sha256 in files.items():
        shutil.copyfile(fetch_object(store, sha256, cache), folder / name)
    return folder


def load_entry(store: ObjectStore, entry: PromotionEntry, task: Task, cache: Path) -> Package:
    """Load the model that a promotion entry names.

    Raises:
        TrainingFailed: It cannot be loaded with the installed code.
    """
    from training_core.package import Package

    return Package(package_folder(store, entry.package, cache), type(task.preprocessor()))
