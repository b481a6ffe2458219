"""Which checkpoints stay is the union of the policies, and never nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from checkpoint_samples import Training, files_of, steps_of
from hypothesis import given
from hypothesis import strategies as st

from training_core.checkpoints.retention import kept_steps
from training_core.checkpoints.settings import CheckpointSettings


@dataclass
class Saved:
    step: int
    metrics: dict[str, float] = field(default_factory=dict)


def kept(losses: dict[int, float | None], **policies: Any) -> list[int]:
    found = [Saved(step, {} if loss is None else {"loss": loss}) for step, loss in losses.items()]
    settings = CheckpointSettings(**{"keep_last": 1, "keep_best": 0, **policies})
    return sorted(kept_steps(found, settings))


LOSSES: dict[int, float | None] = {1: 0.9, 2: 0.1, 3: 0.5, 4: 0.2, 5: 0.8, 6: 0.7}


@pytest.mark.parametrize(
    ("policies", "steps"),
    [
        ({"keep_last": 2}, [5, 6]),
        ({"keep_last": 9}, [1, 2, 3, 4, 5, 6]),
        ({"keep_best": 2}, [2, 4, 6]),
        ({"keep_every": 3}, [3, 6]),
        ({"keep_every": 4, "keep_best": 1, "keep_last": 2}, [2, 4, 5, 6]),
        ({"keep_exponential": True}, [1, 3, 5, 6]),
    ],
)
def test_each_policy_keeps_its_own_and_together_they_keep_all_of_these(
    policies: dict[str, Any], steps: list[int]
) -> None:
    assert kept(LOSSES, **policies) == steps


def test_the_best_are_those_by_the_metric_that_is_named() -> None:
    found = [Saved(1, {"loss": 1.0, "brier": 3.0}), Saved(2, {"loss": 2.0, "brier": 2.0})]
    found += [Saved(3, {"loss": 3.0})]
    settings = CheckpointSettings(keep_last=1, keep_best=1, metric="brier")
    assert kept_steps(found, settings) == {2, 3}


def test_what_is_no_number_is_no_score_and_of_equals_the_earlier_stays() -> None:
    assert kept({1: 0.5, 2: math.nan, 3: 0.5, 4: -math.inf, 5: None}, keep_best=1) == [1, 5]


def test_one_without_metrics_is_kept_only_as_one_of_the_last() -> None:
    assert kept({1: None}, keep_best=1) == [1]
    assert kept({1: None, 2: 0.5}, keep_best=3) == [2]


def test_the_start_stays_until_there_is_anything_later() -> None:
    assert kept({0: None}, keep_every=10) == [0]
    everything = {"keep_last": 9, "keep_every": 10, "keep_exponential": True}
    assert kept({0: None, 3: None}, **everything) == [3]


def test_none_at_all_is_no_error() -> None:
    assert kept({}, keep_best=3, keep_exponential=True) == []


@pytest.mark.parametrize("every", [1, 7, 50])
def test_spaced_exponentially_there_is_one_of_every_age_at_any_time(every: int) -> None:
    left: list[int] = []
    settings = CheckpointSettings(keep_last=1, keep_best=0, keep_exponential=True)
    for number in range(1, 500):
        left = sorted(kept_steps([*map(Saved, left), Saved(number * every)], settings))
        ages = [number - step // every for step in left]
        for age in (2**power for power in range(number.bit_length() - 1)):
            assert any(age <= each <= 4 * age for each in ages), (number, age, ages)
        assert len(left) <= number.bit_length() + 4


@given(
    losses=st.dictionaries(
        st.integers(0, 500), st.none() | st.floats(allow_nan=True), min_size=1, max_size=40
    ),
    last=st.integers(1, 5),
    best=st.integers(0, 5),
    every=st.integers(0, 50),
    exponential=st.booleans(),
)
def test_the_newest_always_stays_and_what_was_let_go_never_matters(
    losses: dict[int, float | None], last: int, best: int, every: int, exponential: bool
) -> None:
    policies = {"keep_last": last, "keep_best": best, "keep_every": every}
    policies |= {"keep_exponential": exponential}
    steps = kept(losses, **policies)
    assert max(losses) in steps
    assert kept({step: losses[step] for step in steps}, **policies) == steps


def test_only_what_the_settings_keep_is_left_in_the_store(tmp_path: Path) -> None:
    run = Training(tmp_path, keep_last=2, keep_best=2)
    for loss in (0.9, 0.1, 0.5, 0.2, 0.8, 0.7):
        run.train()
        run.save(metrics={"loss": loss})
    assert steps_of(run.checkpoints) == [2, 4, 5, 6]
    assert {name.split("/")[1] for name in files_of(tmp_path)} == {
        f"{step:09d}" for step in (2, 4, 5, 6)
    }


def test_other_trainings_in_the_same_store_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run-2/000000001").mkdir(parents=True)
    (tmp_path / "run-2/000000001/shard-0.bin").write_bytes(b"")
    run = Training(tmp_path, keep_last=1)
    for _ in range(2):
        run.train()
        run.save()
    assert steps_of(run.checkpoints) == [2]
    assert files_of(tmp_path / "run-2") == {"000000001/shard-0.bin"}


def test_the_newest_one_before_things_may_have_gone_wrong_stays() -> None:
    found = [Saved(step) for step in (0, 4, 8, 12)]
    settings = CheckpointSettings(keep_last=1, keep_best=0)
    assert kept_steps(found, settings, clean=9) == {8, 12}
    assert kept_steps(found, settings, clean=3) == {0, 12}
    assert kept_steps(found, settings, clean=12) == {12}
    assert kept_steps(found[1:], settings, clean=3) == {12}
