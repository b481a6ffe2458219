"""The one look of a search at the holdout: winner against the settings as they are, paired."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from components.common.champion import PromotionLog, champion_entry
from components.common.layout import checkpoint_prefix, digest_of, fetch_object, home
from components.common.project import open_project
from components.common.resampling import Draws, Floats, Noise
from components.common.rows import clusters_of
from components.common.tune_figures import HoldoutFigures
from components.common.tune_settings import Value
from components.evaluate_model.questions import Ledger, row_keys
from components.tune.search import Place

if TYPE_CHECKING:
    from components.tune.comparison import Repeats

_ROWS = 8192  # turned into examples at once


def look_once(
    place: Place,
    repeats: Repeats,
    *,
    present: Mapping[str, Value],
    winner: Mapping[str, Value],
    name: str,
) -> HoldoutFigures:
    """Compare by the task's loss on the holdout, and write down that it was asked.

    Each side's loss of a row is the mean over its seeds. The interval draws whole clusters, and
    adds what the mean over so few seeds may be off by.

    Args:
        place: Of the search.
        repeats: Whose trainings are there.
        present, winner: Settings by path.
        name: Of the winner's trainings.
    """
    project, settings = place.project, place.project.settings
    path = fetch_object(
        place.store, place.splits["parts"]["holdout"]["sha256"], home(project) / "cache"
    )
    rows = pd.read_parquet(path)
    champion = champion_entry(PromotionLog(place.store).entries())
    asked = Ledger(place.store).ask(
        row_keys(rows, settings.data.row_key),
        run=f"tune {place.name}",
        run_key=f"tune-{place.name}-{digest_of(dict(winner))[:8]}",
        champion=champion.number if champion else 0,
        confidence=settings.decision.confidence,
    )
    losses: dict[str, list[Floats]] = {"present": [], name: []}
    units: Floats = np.ones(len(rows))
    for side, values in (("present", present), (name, winner)):
        for seed in repeats.seeds:
            key = repeats.key(side, seed)
            told = place.training(key, values, f"training.seed={seed}")["overrides"]
            found, units = _losses(
                place, told, key, step=repeats.steps[key], state=repeats.preprocessor[key],
                rows=rows,
            )  # fmt: skip
            losses[side].append(found)
    total = units.sum()
    by_seed = [
        float((a - b).sum() / total) for a, b in zip(losses["present"], losses[name], strict=True)
    ]
    sides = {side: np.mean(found, axis=0) for side, found in losses.items()}
    difference = sides["present"] - sides[name]
    draws = Draws.of(clusters_of(rows, settings), resamples=settings.decision.resamples)
    drawn = draws.drawn(draws.totals(np.stack([difference, units], axis=1)))
    error = statistics.stdev(by_seed) / len(by_seed) ** 0.5
    interval = draws.interval(
        float(difference.sum() / total), drawn[:, 0] / drawn[:, 1],
        confidence=asked.confidence, noise=Noise(error, len(by_seed) - 1),
    )  # fmt: skip
    return HoldoutFigures(
        mean=interval.mean, low=interval.low, high=interval.high, confidence=asked.confidence,
        clusters=interval.clusters, rows=len(rows),
        present=float(sides["present"].sum() / total), winner=float(sides[name].sum() / total),
        question=asked.number, uses=asked.uses,
    )  # fmt: skip


def _losses(
    place: Place, overrides: list[str], key: str, *, step: int, state: Any, rows: pd.DataFrame
) -> tuple[Floats, Floats]:
    """Loss and units of each row by one training's checkpoint, float64 [N] both."""
    import torch

    from training_core.checkpoints.catalogue import Checkpoints
    from training_core.errors import TrainingFailed
    from training_core.examples import Examples

    task = open_project(place.project.folder, overrides=overrides).task()
    preprocessor = type(task.preprocessor()).from_state_dict(state)
    checkpoints = Checkpoints(place.store, checkpoint_prefix(key))
    manifest = next(each for each in checkpoints.manifests() if each.step == step)
    weights = checkpoints.model_state(manifest)
    if weights is None:
        raise TrainingFailed(
            f"the checkpoint of step {step} of {key} cannot be read: {checkpoints.damaged}",
            hint="run the same command again: that training is repeated",
        )
    network = task.build_model(preprocessor)
    network.load_state_dict(weights)
    network.eval()
    losses, units = [], []
    with torch.no_grad():
        for start in range(0, len(rows), _ROWS):
            piece = Examples.from_frame(task, preprocessor, rows.iloc[start : start + _ROWS])
            outputs = network(**piece.arrays).float()
            losses.append(task.loss(outputs, piece.target).double().numpy())
            ones = torch.ones(len(piece)) if piece.units is None else piece.units
            units.append(ones.double().numpy())
    return np.concatenate(losses), np.concatenate(units)
