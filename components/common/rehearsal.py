"""Before a package becomes champion, it is loaded afresh and scored on rows that were recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from components.common.champion import PromotionEntry
from components.common.champion_model import package_folder
from components.common.decision_figures import SmokeFigures
from components.common.layout import fetch_object
from infra.errors import ObjectDamaged, ObjectMissing
from infra.store import ObjectStore
from training_core.errors import StoppedByGate

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

_PREDICTION = "prediction"
Rehearsal = Callable[[PromotionEntry], SmokeFigures]


def rehearse(store: ObjectStore, entry: PromotionEntry, cache: Path) -> SmokeFigures:
    """Load an entry's package in a process of its own, and score its recorded rows, if any.

    What is missing or damaged in the store is a failed rehearsal.

    Raises:
        OutsideError: The store cannot be reached.
    """
    from components.common.smoke import smoke_test

    try:
        folder = package_folder(store, entry.package, cache)
        if not entry.rehearsal:
            return smoke_test(folder, None, None, measure=False)
        rows, expected = recorded(fetch_object(store, entry.rehearsal, cache))
    except (ObjectMissing, ObjectDamaged) as error:
        return SmokeFigures(outcome="fail", message=error.what)
    return smoke_test(folder, rows, expected, measure=False)


def recorded(path: Path) -> tuple[pd.DataFrame, npt.NDArray[np.float64]]:
    """Return raw rows and the predictions that were recorded for them, as the kind has them.

    Args:
        path: Parquet: the raw columns beside `prediction`, or `prediction.0`, `prediction.1`, …
    """
    import pandas as pd

    from components.common.predictions import from_columns

    frame = pd.read_parquet(path)
    names = [n for n in map(str, frame) if n == _PREDICTION or n.startswith(f"{_PREDICTION}.")]
    return frame.drop(columns=names), from_columns(frame[names])[_PREDICTION]


def require_rehearsed(entry: PromotionEntry, seen: SmokeFigures, consequence: str) -> None:
    """Stop if a package does not work.

    Raises:
        StoppedByGate: It does not; nothing was written.
    """
    if seen.outcome != "pass":
        raise StoppedByGate(
            f"version {entry.version} failed its rehearsal: {seen.message}",
            hint=f"{consequence}; evertrain history PROJECT shows the other versions",
        )
