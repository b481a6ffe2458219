"""The champion's predictions of a holdout that it has not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from components.common.champion import PromotionEntry
from components.common.champion_model import load_entry
from components.common.decision_figures import Gate
from components.common.metrics import Floats
from components.common.unseen import why_seen
from components.evaluate_model.gates import champion_skipped
from infra.errors import OutsideError
from training_core.errors import TrainingFailed

if TYPE_CHECKING:
    from components.common.records import StepContext


def score_champion(
    context: StepContext,
    champion: PromotionEntry,
    rows: pd.DataFrame,
    seen_now: dict[str, str],
    task: Any,
) -> tuple[Floats | None, Gate | None]:
    """Score the champion on rows that it has not seen; a gate says why where that cannot be."""
    seen = why_seen(champion.seen, rows, seen_now, context.project.settings)
    if seen is not None:
        return None, champion_skipped(seen)
    name = f"champion {champion.version}"
    try:
        scored = load_entry(context.store, champion, task, context.cache).predict(rows)
    except (TrainingFailed, KeyError, OutsideError) as error:
        words = error.args[0] if error.args else type(error).__name__
        return None, champion_skipped(f"{name} cannot score these rows: {words}")
    if not np.isfinite(scored).all():
        return None, champion_skipped(f"{name} gives predictions not finite")
    return scored, None
