from __future__ import annotations

import pytest
from check_graph_samples import HEALTHY

from training_core.checks.graph import CHECKS
from training_core.checks.runner import make
from training_core.checks.subject import Subject
from training_core.settings import CheckSettings, TrainingSettings

TRAINING = {"batch_size": 32, "epochs": 20, "optimiser": {"lr": 3e-3}}


@pytest.mark.smoke
@pytest.mark.parametrize("name", HEALTHY)
def test_no_check_of_the_graph_complains_about_a_healthy_task(name: str) -> None:
    task, rows = HEALTHY[name]
    subject = Subject(
        task(),
        rows(),
        training=TrainingSettings.model_validate(TRAINING),
        settings=CheckSettings(input_steps=20),
    )
    findings = [make(kind(), subject) for kind in CHECKS]
    told = {f.name: f.message for f in findings if f.verdict not in ("pass", "not_applicable")}
    assert not told
    asked = {f.name for f in findings if f.verdict == "pass"}
    assert ("future_does_not_reach_past" in asked) == (name == "language")
    assert len(asked) >= len(CHECKS) - 1
