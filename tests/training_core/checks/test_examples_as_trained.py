"""What regularisation makes of examples is shown, and settings that do not fit are found early."""

from __future__ import annotations

from typing import Any

import pytest
from check_data_samples import Houses, Prices, Shapes, images, table

from training_core.checks.contract import Finding
from training_core.checks.data import InputsBeforeNetwork
from training_core.checks.machinery import (
    CheckpointEqualsItself,
    SamplesInOrder,
    StepsEqualPlainCode,
)
from training_core.checks.subject import Subject
from training_core.settings import TrainingSettings
from training_core.task import Task


def look(task: Task, rows: Any, **regularisation: Any) -> Finding:
    settings = TrainingSettings.model_validate({"regularisation": regularisation})
    return InputsBeforeNetwork().look(Subject(task, rows, training=settings))


def test_images_that_are_cut_are_shown_with_both_labels_and_their_shares() -> None:
    finding = look(Shapes(), images(), cutmix=1.0)
    assert finding.verdict == "pass"
    for sample in finding.samples:
        (name,) = [n for n in sample.images if n.endswith(", as trained")]
        assert sample.network["target, as trained"]
        assert len(sample.images[name]) == len(sample.images[name.removesuffix(", as trained")])
    changed = [s for s in finding.samples if "%" in s.network["target, as trained"]]
    assert changed
    for sample in changed:
        (name,) = [n for n in sample.images if n.endswith(", as trained")]
        assert sample.images[name] != sample.images[name.removesuffix(", as trained")]


def test_noise_on_a_table_is_shown_and_without_any_nothing_is_added() -> None:
    for sample in look(Houses(), table(), gaussian_noise=0.5).samples:
        assert sample.network["numbers, as trained"] != sample.network["numbers"]
        assert sample.network["target, as trained"] == sample.network["target"]
    for sample in look(Houses(), table()).samples:
        assert not any("as trained" in name for name in sample.network)


@pytest.mark.parametrize(
    ("task", "by", "words"),
    [
        (Prices(), {"label_smoothing": 0.1}, "a regression task"),
        (Houses(), {"mixup": 0.2}, "there is nothing between two of its values"),
    ],
)
def test_settings_that_do_not_fit_the_task_fail_before_the_training(
    task: Task, by: dict[str, Any], words: str
) -> None:
    finding = look(task, table(), **by)
    assert finding.verdict == "fail"
    assert words in finding.message
    assert finding.advice


def test_checks_that_compare_with_plain_code_do_so_without_techniques() -> None:
    settings = TrainingSettings.model_validate(
        {
            "regularisation": {"label_smoothing": 0.2, "gaussian_noise": 0.1},
            "averaging": {"kind": "ema"},
            "sampling": {"class_balance": 1.0},
            "batch_size": 32,
        }
    )
    subject = Subject(Houses(), table(), training=settings)
    for check in (StepsEqualPlainCode, SamplesInOrder, CheckpointEqualsItself):
        assert check().look(subject).verdict == "pass", check.name
