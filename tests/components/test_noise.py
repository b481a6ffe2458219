"""Retraining noise: measured with replicas, pooled over runs, and trained no more than needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.common.decision_settings import DecisionSettings
from components.evaluate_model.noise import (
    ENOUGH,
    Replicas,
    pooled,
    retraining_noise,
    settings_digest,
    train_replicas,
)
from infra.errors import OutsideError
from infra.folder import FolderStore
from tests.small_project.make_data import month
from tests.small_project.task import SmallTask
from training_core.settings import TrainingSettings

MEASURE = DecisionSettings()


def replicas(run: str, values: list[float]) -> Replicas:
    return Replicas(run=run, rows=10, metrics={"log_loss": values})


def noise(store: Any, run: str, train: Any, **settings: Any) -> Any:
    rule = MEASURE.model_copy(update=settings)
    return retraining_noise(store, run=run, run_key=run, digest="d", settings=rule, train=train)


def never() -> Replicas:
    raise AssertionError("no replicas were to be trained")


def test_what_the_settings_say_is_taken_and_nothing_is_trained(tmp_path: Path) -> None:
    found = noise(FolderStore(tmp_path), "a", never, retraining_noise=0.01)
    assert (found.deviation, found.source, found.freedom) == (0.01, "settings", None)


def test_a_difference_of_two_trainings_has_the_variance_of_both() -> None:
    random = np.random.default_rng(0)
    known = [replicas(str(i), list(random.normal(0.5 + i, 0.01, 4))) for i in range(200)]
    found = pooled(known, "log_loss")
    assert found.freedom == 600
    assert found.deviation == pytest.approx(0.01 * np.sqrt(2), rel=0.1)


def test_runs_add_their_replicas_until_there_are_enough(tmp_path: Path) -> None:
    store, trained = FolderStore(tmp_path), []

    def train(run: str) -> Any:
        def made() -> Replicas:
            trained.append(run)
            return replicas(run, [0.1, 0.2, 0.15, 0.12])

        return made

    freedoms = [noise(store, run, train(run)).freedom for run in "abcde"]
    assert trained == ["a", "b", "c"]
    assert freedoms == [3, 6, 9, 9, 9]
    assert freedoms[2] >= ENOUGH


def test_a_run_that_was_killed_after_its_replicas_does_not_train_them_again(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    first = noise(store, "a", lambda: replicas("a", [0.1, 0.2]))
    assert noise(store, "a", never) == first


def test_what_cannot_be_read_decides_nothing(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put("noise/d/old.json", b"{}")
    with pytest.raises(OutsideError, match="holds no replicas' scores"):
        noise(store, "a", never)
    with pytest.raises(OutsideError, match="retraining noise is not known"):
        pooled([replicas("a", [0.1])], "log_loss")


def test_other_training_settings_have_noise_of_their_own() -> None:
    digest = settings_digest(TrainingSettings(), MEASURE, SmallTask())
    assert digest == settings_digest(TrainingSettings(seed=7), MEASURE, SmallTask())
    assert digest != settings_digest(TrainingSettings(epochs=9), MEASURE, SmallTask())


def test_replicas_are_real_trainings_with_seeds_of_their_own() -> None:
    rows = month(1)
    settings = DecisionSettings(noise_replicas=3, noise_share=0.5)
    training = TrainingSettings(epochs=1, batch_size=64, threads=1)
    found = train_replicas(
        SmallTask(), rows, month(2), training=training, settings=settings, run="r"
    )
    losses = found.metrics["log_loss"]
    assert len(set(losses)) == 3
    assert all(0.2 < loss < 1.0 for loss in losses)
    assert found.rows == round(len(rows) / 2)
    again = train_replicas(
        SmallTask(), rows, month(2), training=training, settings=settings, run="r"
    )
    assert again.metrics == found.metrics
