"""Two real processes (gloo): evaluation, stops, damage, overflow."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from ranks import run_ranks
from ranks_models import blocks
from ranks_worker import COUNT, NORMS, faults, going_on
from training_samples import Sales, largest_difference, trainer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ranks")


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    return run_ranks(2, faults, folder)


def test_the_ranks_share_the_evaluation_and_count_each_row_once(found: dict[str, Any]) -> None:
    first, second = found["evaluated"]
    assert set(first) | set(second) == set(range(21))
    assert len(first) > 6 < len(second)
    both = set(first) & set(second)  # pieces of three rows: the seventh needs company
    assert both == {0, 1, 2}


def test_running_statistics_are_pooled_over_ranks(found: dict[str, Any]) -> None:
    mean, variance = found["statistics"]  # means 0 and 1, variances 2
    assert set(mean.tolist()) == {0.5}
    assert set(variance.tolist()) == {2.25}


@pytest.mark.parametrize("model", ["dropout", "norms"])
def test_all_ranks_stop_when_one_is_asked_to_and_go_on_to_the_very_same_weights(
    found: dict[str, Any], model: str
) -> None:
    stopped, resumed = found[f"{model} stopped"], found[f"{model} resumed"]
    assert 12 > stopped["steps"] == resumed["resumed_from"] >= 5
    undisturbed = found[f"{model} undisturbed"]
    assert largest_difference(undisturbed["weights"], resumed["weights"]) == 0.0
    assert resumed["evaluations"] == undisturbed["evaluations"]
    assert resumed["losses"] == undisturbed["losses"]


def test_four_ranks_go_on_to_the_very_same_weights_though_ddp_lays_out_its_buckets_anew(
    tmp_path: Path,
) -> None:
    found = run_ranks(4, going_on, tmp_path)
    assert 0 < found["stopped"]["steps"] == found["resumed"]["resumed_from"] < 12
    weights = found["undisturbed"]["weights"], found["resumed"]["weights"]
    assert largest_difference(*weights) == 0.0
    assert found["resumed"]["losses"] == found["undisturbed"]["losses"]


def test_buffers_that_differ_between_ranks_are_kept_for_each_of_them(
    found: dict[str, Any],
) -> None:
    for undisturbed, stopped, resumed in found["own buffers"]:
        assert resumed == undisturbed != stopped
    assert found["own buffers"][0][0][0] != found["own buffers"][1][0][0]


def test_ranks_that_begin_with_other_weights_train_those_of_the_first(
    found: dict[str, Any],
) -> None:
    assert found["first sums"][0] == found["first sums"][1]


def test_normalisation_layers_of_sharded_models_train_in_sixteen_bits(
    found: dict[str, Any],
) -> None:
    losses = found["bf16 norms"]
    assert losses[-1] < losses[0] < 2


def test_fewer_ranks_go_on_with_the_pooled_statistics(
    found: dict[str, Any], folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder / "norms" / "resumed", tmp_path / "run")
    alone = trainer(
        tmp_path / "run", model=blocks(norm=True, dropout=0.1), task=Sales(), count=COUNT, **NORMS
    )
    alone.state.begin()
    statistics = {n: v for n, v in alone.module.state_dict().items() if "running" in n}
    assert statistics
    for name, value in statistics.items():
        assert torch.equal(value, found["norms resumed"]["weights"][name]), name


def test_a_shard_damaged_for_one_rank_makes_all_ranks_use_the_checkpoint_before(
    found: dict[str, Any],
) -> None:
    assert found["damaged"]["resumed_from"] == 4
    assert any("/shard-1." in w for words in found["damaged"]["damaged"] for w in words)
    undisturbed = found["dropout undisturbed"]
    assert largest_difference(undisturbed["weights"], found["damaged"]["weights"]) == 0.0


def test_a_checkpoint_that_one_rank_could_not_write_fails_on_all_and_counts_for_none(
    found: dict[str, Any], folder: Path
) -> None:
    assert found["failing"] == ["PeerFailed", "MemoryError"]
    assert not list((folder / "failing").rglob("manifest.json"))


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_an_infinity_on_one_rank_makes_all_ranks_skip_the_step_and_lower_the_loss_scale(
    found: dict[str, Any], kind: str
) -> None:
    run, usual = found[f"fp16 {kind}"], found[f"fp16 {kind} finite"]  # the first scale overflows
    assert run["skipped"] == [usual["skipped"][0] + 1] * 2
    assert run["scales"] == [usual["scales"][0] / 2] * 2
    assert run["finite"]
    assert run["sums"][0] == run["sums"][1]


def test_one_process_goes_on_where_two_have_stopped(
    found: dict[str, Any], folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder / "dropout" / "resumed", tmp_path / "run")
    outcome = trainer(tmp_path / "run", task=Sales(), count=COUNT, epochs=3).fit()
    assert (outcome.resumed_from, outcome.stop_reason, outcome.samples) == (12, "epochs", 3 * COUNT)
