"""Whether a model can have seen rows that it, or what was made of it, is to be judged on."""

from __future__ import annotations

import pandas as pd

from components.common.rows import times_of
from components.common.settings import ProjectSettings


def why_seen(
    seen: dict[str, str],
    rows: pd.DataFrame,
    seen_now: dict[str, str],
    settings: ProjectSettings,
    *,
    who: str = "the champion",
) -> str | None:
    """None if a model has not seen these rows; otherwise why that is not sure.

    Args:
        seen: What the model's training and selection have seen.
        rows: Of the holdout; the time column is enough.
        seen_now: The same of this run's splits.
        settings: Of the project.
        who: The model, in words.
    """
    if seen.get("by") == "time" and settings.data.time_column:
        first = times_of(rows, settings.data.time_column).min()
        if first > pd.Timestamp(seen["until"]):
            return None
        return (
            f"{who} was trained on data up to {seen['until']}, and the holdout begins "
            f"{first.isoformat()}: it has seen some of these rows"
        )
    if seen.get("by") == "hash" and seen == seen_now:
        return None  # the same rule keeps the same rows held out, whatever was added
    return f"the splits are made by another rule than {who}'s: it may have seen these rows"


def seen_together(one: dict[str, str], other: dict[str, str]) -> dict[str, str]:
    """Return what a model has seen that began with another one's weights.

    Where the two cannot be put into one rule, no holdout counts as unseen by it.
    """
    if one == other:
        return one
    if one.get("by") == other.get("by") == "time":
        return {"by": "time", "until": max(one["until"], other["until"], key=pd.Timestamp)}
    return {"by": "several rules"}
