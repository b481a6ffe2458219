"""Inputs against none: healthy tasks win, few rows are doubted, labels of other rows are found."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from check_loss_samples import (
    NUMBERS,
    Bars,
    Changed,
    FarValue,
    Three,
    Two,
    Value,
    Words,
    YesNo,
    found,
    make,
    pictures,
    rows_of,
    sentences,
    subject_of,
    table,
)
from torch import Tensor, nn

from training_core.checks.loss.inputs_help import InputsHelp
from training_core.checks.subject import Subject
from training_core.task import Preprocessor, Task


@pytest.mark.parametrize("task", [YesNo, Three, Two, Value, Bars, Words])
def test_a_healthy_task_passes(task: type[Task]) -> None:
    finding = found(InputsHelp, task(), checks={"input_steps": 80})
    assert finding.verdict == "pass", finding.message
    assert finding.measured is not None
    assert finding.limit is not None
    assert finding.measured > finding.limit


def test_a_target_of_any_scale_is_at_most_a_warning() -> None:
    finding = found(InputsHelp, FarValue(), checks={"input_steps": 80})
    assert finding.verdict == "warn"
    assert "standardise" in finding.advice


@pytest.mark.parametrize("seed", range(3))
def test_few_rows_with_noisy_labels_never_fail(seed: int) -> None:
    rows = table(60, seed=seed)
    flipped = np.random.default_rng(seed).random(60) < 0.3
    rows["yes"] = (rows["yes"] != flipped).astype(float)
    assert found(InputsHelp, YesNo(), rows=rows).verdict in ("pass", "warn")


def test_few_rows_of_a_rare_class_never_fail() -> None:
    rows = table(1500)
    rows = rows[(rows["yes"] == 0) | (rows.index % 40 == 0)]
    assert rows["yes"].sum() < 25
    assert found(InputsHelp, YesNo(), rows=rows).verdict in ("pass", "warn")


def test_many_columns_on_few_rows_never_fail() -> None:
    rows = table(300)
    noise = np.random.default_rng(0).normal(size=(300, 300))
    names = [f"noise{i}" for i in range(300)]
    rows = pd.concat([rows, pd.DataFrame(noise, columns=names)], axis=1)

    class Wide(YesNo):
        def preprocessor(self):  # type: ignore[no-untyped-def]
            from check_loss_samples import Columns

            return Columns(numbers=[*NUMBERS, *names])

        def build_model(self, preprocessor: Preprocessor) -> nn.Module:
            class Body(nn.Module):
                def __init__(self) -> None:
                    super().__init__()
                    self.layers = nn.Sequential(
                        nn.Linear(306, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0)
                    )

                def forward(self, numbers: Tensor) -> Tensor:
                    said: Tensor = self.layers(numbers)
                    return said

            return Body()

    assert found(InputsHelp, Wide(), rows=rows).verdict in ("pass", "warn")


@pytest.mark.parametrize("task", [YesNo, Three, Value, Bars, Words])
def test_labels_that_do_not_belong_to_their_rows_are_found(task: type[Task]) -> None:
    made = task()
    rows = rows_of(made, 1500)
    mixed = np.random.default_rng(5).permutation(len(rows))
    if task is Words:  # the rest of each sentence is another's

        class Mixed(Words):
            def target(self, frame):  # type: ignore[no-untyped-def]
                mixed = np.random.default_rng(0).permutation(len(frame))
                return super().target(frame)[mixed]

        made = Mixed()
        rows = sentences(500)
    else:
        rows[made.label] = rows[made.label].to_numpy()[mixed]
    finding = found(InputsHelp, made, rows=rows, checks={"input_steps": 60})
    assert finding.verdict == "fail", finding.message
    assert "joined by the right key" in finding.advice


class _Blind(Three):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Changed(
            super().build_model(preprocessor), lambda outputs: outputs.mean(0).expand_as(outputs)
        )


class _PartedByAugmentation(Bars):
    def augment(
        self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
    ) -> tuple[dict[str, Tensor], Tensor]:
        return arrays, target[torch.randperm(len(target), generator=generator)]


@pytest.mark.parametrize("task", [_Blind, _PartedByAugmentation])
def test_what_a_simple_model_learns_and_the_network_does_not_is_found(task: type[Task]) -> None:
    rows = pictures(600) if task is _PartedByAugmentation else None
    finding = found(InputsHelp, task(), rows=rows, checks={"input_steps": 60})
    assert finding.verdict == "fail", finding.message
    assert "the inputs tell" in finding.message


class _Knows(YesNo):
    """Its label is among the inputs, and added to the logit after all that is trained."""

    def preprocessor(self):  # type: ignore[no-untyped-def]
        from check_loss_samples import Columns

        return Columns(numbers=NUMBERS, label=["yes"])

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        inner = super().build_model(preprocessor)

        class Adds(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner = inner

            def forward(self, numbers: Tensor, label: Tensor) -> Tensor:
                said: Tensor = self.inner(numbers) + 4 * (label[:, 0] - 0.5)
                return said

        return Adds()


@pytest.mark.parametrize("seed", range(2))
def test_held_back_labels_of_another_rate_are_no_labels_that_leaked(seed: int) -> None:
    """Months later fewer flights are late: whatever says less is better, of any row."""
    random, rows = np.random.default_rng(seed), table(4000, seed=seed)
    yes = rows[NUMBERS[0]] + random.normal(0, 3, 4000) > np.where(rows.index < 3000, 0.0, 3.0)
    rows["yes"] = yes.astype(float)
    known = subject_of(YesNo(), rows=rows.iloc[:3000], checks={"input_steps": 100})
    later = Subject(
        known.task, rows.iloc[:3000], validation=rows.iloc[3000:].reset_index(drop=True),
        training=known.training, settings=known.settings,
    )  # fmt: skip
    finding = make(InputsHelp(), later)
    assert "labels of other rows" not in finding.message
    assert finding.verdict in ("pass", "warn")


def test_what_holds_for_held_back_rows_cannot_be_learned_from_labels_of_other_rows() -> None:
    finding = found(InputsHelp, _Knows(), checks={"input_steps": 60})
    assert finding.verdict == "fail", finding.message
    assert "labels of other rows" in finding.message
