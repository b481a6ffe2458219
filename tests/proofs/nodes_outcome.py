"""What a training of two hosts has come to, from what it left."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from components.common.layout import checkpoint_prefix
from components.train_distributed.results import result_key
from infra.store import ObjectStore
from tests.proofs.storm import steps_seen

SAMPLES, EPOCHS, BATCH = 1003, 4, 32  # the last batch of an epoch has 11


def final_of(store: ObjectStore, key: str) -> dict[str, Any]:
    """Return the weights, by their hash, the curve and the evaluations of a training."""
    from training_core.checkpoints.catalogue import Checkpoints

    outcome = json.loads(store.get(result_key(key)))["result"]["outcome"]
    checkpoints = Checkpoints(store, checkpoint_prefix(key))
    state = checkpoints.model_state(checkpoints.manifests()[-1])
    assert state is not None
    weights = hashlib.sha256()
    for name, value in sorted(state.items()):
        weights.update(name.encode() + value.numpy().tobytes())
    return {
        "weights": weights.hexdigest(),
        "steps": outcome["steps"],
        "curve": [[point["step"], point["loss"]] for point in outcome["curve"]],
        "evaluations": outcome["evaluations"],
    }


def rounds_of(folder: Path) -> list[list[Path]]:
    """Return the notes of ranks, those together that trained together, in their order in time."""
    rounds: dict[str, list[Path]] = {}
    for file in sorted(folder.iterdir()):
        rounds.setdefault(file.name.split("-")[1], []).append(file)
    return list(rounds.values())


def lost_and_repeated(folder: Path) -> tuple[int, int]:
    """Count samples lost and repeated over the epochs, in the steps that count in the end.

    A round begins at its checkpoint: what earlier ones did from that step on has gone.
    """
    counted: dict[int, list[int]] = {}
    for files in rounds_of(folder):
        notes = [note for file in files for note in steps_seen(file)]
        first = min((step for step, _ in notes), default=None)
        if first is not None:
            counted = {step: seen for step, seen in counted.items() if step < first}
        for step, seen in notes:
            counted.setdefault(step, []).extend(seen)
    a_step = -(-SAMPLES // BATCH)
    lost = repeated = 0
    for epoch in range(EPOCHS):
        steps = range(epoch * a_step, (epoch + 1) * a_step)
        rows = Counter(row for step in steps for row in counted.get(step, []))
        lost += SAMPLES - len(rows)
        repeated += sum(count - 1 for count in rows.values())
    return lost, repeated
