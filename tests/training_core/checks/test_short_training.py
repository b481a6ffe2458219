"""Short trainings: the input-independent baseline learns the label's rate and nothing else."""

from __future__ import annotations

import pytest
import torch
from check_loss_samples import YesNo, subject_of

from training_core.checks.short_training import input_independent, without_information
from training_core.evaluation import outputs_of
from training_core.settings import TrainingSettings


def test_the_input_independent_baseline_learns_the_labels_rate_and_nothing_else() -> None:
    subject = subject_of(YesNo(), 400)
    task, examples, model = subject.task, subject.examples, subject.build()
    before = [parameter.clone() for parameter in model.parameters()]
    training = TrainingSettings.model_validate({"batch_size": 128, "optimiser": {"lr": 0.02}})
    blind = input_independent(task, model, examples, steps=100, training=training)
    outputs = outputs_of(blind, without_information(examples), device=subject.device)
    assert float(outputs.std()) < 1e-5
    rate = float(examples.target.mean())
    assert float(task.predict(outputs)[0]) == pytest.approx(rate, abs=0.05)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
