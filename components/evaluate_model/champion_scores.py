"""The champion's predictions of a holdout that it has not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from components.common.champion import PromotionEntry
from components.common.champion_model import load_entry
from components.common.decision_figures import Gate
from components.common.metrics import Floats
from components.common.rows import times_of
from components.evaluate_model.gates import champion_skipped
from infra.errors import OutsideError
from training_core.errors import TrainingFailed

if TYPE_CHECKING:
    from components.common.records import StepContext
    from components.common.settings import ProjectSettings


def score_champion(
    context: StepContext,
    champion: PromotionEntry,
    rows: pd.DataFrame,
    seen_now: dict[str, str],
    task: Any,
) -> tuple[Floats | None, Gate | None]:
    """Score the champion on rows that it has not seen; a gate says why where that cannot be."""
    unseen = _is_unseen(champion.seen, rows, seen_now, context.project.settings)
    if unseen is not None:
        return None, champion_skipped(unseen)
    name = f"champion {champion.version}"
    try:
        scored = load_entry(context.store, champion, task, context.cache).predict(rows)
    except (TrainingFailed, KeyError, OutsideError) as error:
        words = error.args[0] if error.args else type(error).__name__
        return None, champion_skipped(f"{name} cannot score these rows: {words}")
    if not np.isfinite(scored).all():
        return None, champion_skipped(f"{name} gives predictions not finite")
    return scored, None


def _is_unseen(
    seen: dict[str, str], rows: pd.DataFrame, seen_now: dict[str, str], settings: ProjectSettings
) -> str | None:
    """None if the champion has not seen these rows; otherwise why that is not sure."""
    if seen.get("by") == "time" and settings.data.time_column:
        first = times_of(rows, settings.data.time_column).min()
        if first > pd.Timestamp(seen["until"]):
            return None
        return (
            f"the champion was trained on data up to {seen['until']}, and the holdout begins "
            f"{first.isoformat()}: it has seen some of these rows"
        )
    if seen.get("by") == "hash" and seen == seen_now:
        return None  # the same rule keeps the same rows held out, whatever was added
    return "the splits are made by another rule than the champion's: it may have seen these rows"
