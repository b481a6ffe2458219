"""Several real processes (gloo) against one: replicated, sharded, reproducible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import ranks_worker
from ranks import run_ranks
from ranks_models import blocks
from ranks_worker import COUNT, TOPOLOGY, strategy_of, topology_trainer, whole
from training_samples import largest_difference, trainer

from training_core.errors import ConfigurationError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def agreement(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_ranks(2, ranks_worker.agreement, tmp_path_factory.mktemp("agreement"))


@pytest.mark.parametrize("accumulation", [1, 3])
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_two_ranks_train_the_weights_of_one_process(
    agreement: dict[str, Any], kind: str, accumulation: int
) -> None:
    alone = trainer(model=blocks(), count=COUNT)
    outcome = alone.fit()
    both = agreement[f"{kind} {accumulation}"]
    assert both["steps"] == outcome.steps
    assert largest_difference(whole(alone), both["weights"]) < 1e-5
    assert both["losses"] == pytest.approx([p.loss for p in outcome.curve], rel=1e-5)
    assert both["norms"] == pytest.approx([p.gradient_norm for p in outcome.curve], rel=1e-3)
    assert both["updates"][:-1] == pytest.approx(
        [p.update_norm for p in outcome.curve][:-1], rel=1e-2
    )
    for (step, metrics), (other_step, other) in zip(
        outcome.evaluations, both["evaluations"], strict=True
    ):
        assert step == other_step
        assert other == pytest.approx(metrics, abs=1e-5)


@pytest.mark.parametrize("optimiser", ["sgd", "nadam", "muon"])
def test_other_optimisers_train_sharded_weights_as_whole_ones(
    agreement: dict[str, Any], optimiser: str
) -> None:
    alone = trainer(model=blocks(), count=COUNT, optimiser={"name": optimiser, "lr": 0.01})
    alone.fit()
    # Muon's Newton-Schulz iteration computes in bf16, which magnifies what the last bit was
    tolerance = 1e-2 if optimiser == "muon" else 1e-5
    assert largest_difference(whole(alone), agreement[f"fsdp {optimiser}"]["weights"]) < tolerance


def test_recomputing_activations_changes_nothing(agreement: dict[str, Any]) -> None:
    plain, again = agreement["fsdp 1"], agreement["fsdp recomputed"]
    assert largest_difference(plain["weights"], again["weights"]) == 0.0


def test_a_static_graph_changes_nothing(agreement: dict[str, Any]) -> None:
    plain, static = agreement["ddp 1"], agreement["ddp static"]
    assert largest_difference(plain["weights"], static["weights"]) < 1e-6


def test_each_of_two_ranks_holds_half_of_weights_and_moments(agreement: dict[str, Any]) -> None:
    for weights, moments in agreement["own numbers"]:
        assert weights <= 0.55 * agreement["all numbers"]
        assert moments <= 0.55 * 2 * agreement["all numbers"]


# ---- the same weights on any number of ranks -------------------------------------------------


@pytest.fixture(scope="module")
def elastic(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One process to step 2, two to step 4, four to step 9, one to the end."""
    folder = tmp_path_factory.mktemp("elastic")
    first = topology_trainer(folder / "elastic", strategy_of(**TOPOLOGY))
    first.should_stop = lambda: first.outcome.steps >= 2
    first.fit()
    two = run_ranks(2, ranks_worker.topology, folder)
    four = run_ranks(4, ranks_worker.hybrid, folder)
    last = topology_trainer(folder / "elastic", strategy_of(**TOPOLOGY))
    last.fit()
    alone = topology_trainer(None, strategy_of(**TOPOLOGY))
    alone.fit()
    return {"alone": alone, "two": two, "four": four, "last": last}


@pytest.mark.parametrize("ranks", ["two", "four"])
def test_the_weights_are_the_same_bit_for_bit_on_one_two_and_four_ranks(
    elastic: dict[str, Any], ranks: str
) -> None:
    alone, others = elastic["alone"], elastic[ranks]["undisturbed"]
    assert largest_difference(whole(alone), others["weights"]) == 0.0
    assert others["losses"] == [point.loss for point in alone.outcome.curve]
    assert others["evaluations"] == alone.outcome.evaluations


def test_they_stay_the_same_when_the_number_of_ranks_changes_at_each_restart(
    elastic: dict[str, Any],
) -> None:
    assert elastic["two"]["elastic"]["resumed_from"] == 2
    assert elastic["four"]["elastic"]["resumed_from"] == elastic["two"]["elastic"]["steps"] >= 4
    last, alone = elastic["last"], elastic["alone"]
    assert last.outcome.resumed_from == elastic["four"]["elastic"]["steps"] >= 9
    assert largest_difference(whole(last), whole(alone)) == 0.0
    assert [p.loss for p in last.outcome.curve] == [p.loss for p in alone.outcome.curve]
    assert last.outcome.evaluations == alone.outcome.evaluations


def test_two_groups_that_each_hold_the_model_train_the_weights_of_one_process(
    elastic: dict[str, Any],
) -> None:
    alone = trainer(model=blocks(), count=COUNT)
    alone.fit()
    assert largest_difference(whole(alone), elastic["four"]["hybrid"]["weights"]) < 1e-5


# ---- what cannot be --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "processes", "words"),
    [
        ({"parallel": {"strategy": "fsdp"}}, 1, "needs more than one process"),
        ({"parallel": {"strategy": "single"}}, 2, "2 processes were started"),
        ({"parallel": {"strategy": "fsdp", "cpu_offload": True}}, 2, "training runs on the CPU"),
    ],
)
def test_what_does_not_fit_the_processes_is_refused_with_a_hint(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], processes: int, words: str
) -> None:
    monkeypatch.setenv("WORLD_SIZE", str(processes))
    with pytest.raises(ConfigurationError, match=words) as raised:
        strategy_of(**changes)
    assert "hint: " in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"processes": 3}, "cannot be shared equally"),
        ({"accumulation": 2}, "accumulation must be 1"),
        ({"parallel": {"strategy": "fsdp"}}, "needs whole gradients"),
    ],
)
def test_what_topology_cannot_promise_is_refused(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=words):
        strategy_of(deterministic="topology", **changes)


def test_a_static_graph_is_refused_where_torch_cannot_accumulate_with_it() -> None:
    with pytest.raises(ValueError, match=r"static_graph needs training\.accumulation 1"):
        strategy_of(accumulation=2, parallel={"static_graph": True})
