"""Two real processes under torchrun (gloo) against one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from ranks_worker import COUNT
from training_samples import Sales, largest_difference, trainer, weights

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    environment |= {"PYTHONPATH": f"{HERE.parents[1]}:{HERE}", "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        [*command, str(HERE / "ranks_worker.py"), str(place)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=200,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return place


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    results: dict[str, Any] = torch.load(folder / "found.pt", weights_only=True)
    return results


@pytest.mark.parametrize("accumulation", [1, 3])
def test_two_ranks_train_the_weights_of_one_process(
    found: dict[str, Any], accumulation: int
) -> None:
    alone = trainer(count=COUNT)
    outcome = alone.fit()
    both = found[f"accumulation {accumulation}"]
    assert both["steps"] == outcome.steps
    assert largest_difference(weights(alone.model), both["weights"]) < 1e-5
    assert both["losses"] == pytest.approx([p.loss for p in outcome.curve], rel=1e-5)
    assert both["norms"] == pytest.approx([p.gradient_norm for p in outcome.curve], rel=1e-3)
    for (step, metrics), (other_step, other) in zip(
        outcome.evaluations, both["evaluations"], strict=True
    ):
        assert step == other_step
        assert other == pytest.approx(metrics, abs=1e-5)


def test_the_ranks_share_the_evaluation_and_count_each_row_once(found: dict[str, Any]) -> None:
    first, second = found["evaluated"]
    assert sorted([*first, *second]) == list(range(21))
    assert (len(first), len(second)) == (11, 10)


def test_all_ranks_stop_when_one_is_asked_to_and_go_on_to_the_very_same_weights(
    found: dict[str, Any],
) -> None:
    assert found["stopped"]["steps"] == found["resumed"]["resumed_from"] == 5
    whole = found["undisturbed"]
    assert largest_difference(whole["weights"], found["resumed"]["weights"]) == 0.0
    assert found["resumed"]["evaluations"] == whole["evaluations"]


def test_a_shard_damaged_for_one_rank_makes_all_ranks_use_the_checkpoint_before(
    found: dict[str, Any],
) -> None:
    assert found["damaged"]["resumed_from"] == 4
    words = found["damaged"]["damaged"]
    assert words[0] == []
    assert "run/000000005/rank-1.pt is damaged" in words[1][0]
    assert largest_difference(found["undisturbed"]["weights"], found["damaged"]["weights"]) == 0.0


def test_a_checkpoint_that_one_rank_could_not_write_fails_on_all_and_counts_for_none(
    found: dict[str, Any], folder: Path
) -> None:
    assert found["failing"] == ["TrainingFailed", "MemoryError"]
    assert not [path for path in (folder / "failing").rglob("*") if path.is_file()]


def test_one_process_goes_on_where_two_have_stopped(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "stopped", tmp_path / "run")
    outcome = trainer(tmp_path / "run", task=Sales(), count=COUNT, epochs=3).fit()
    assert (outcome.resumed_from, outcome.stop_reason, outcome.samples) == (12, "epochs", 3 * COUNT)
