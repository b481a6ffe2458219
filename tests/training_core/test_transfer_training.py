"""What of a network moves and how fast: frozen parts, stages, rates by depth, thawing, adapters."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from ranks_models import blocks
from torch import Tensor, nn
from training_samples import CPU, largest_difference, trainer, weights
from transfer_samples import after, begun, moved, run_of

from training_core.errors import ConfigurationError
from training_core.optim.flat_adamw import FlatAdamW
from training_core.parallel.single import SingleProcess
from training_core.parallel.statistics import hold_statistics
from training_core.transfer.stages import Stages

OPTIMISERS = ["adamw", "adam", "sgd", "nadam", "adafactor", "muon"]
THAWING = {"unfreeze": [0.3, 0.6], "lr_decay": 0.5, "freeze": ["blocks.0.*"]}
BY_DEPTH = {"unfreeze": [0.25, 0.5], "lr_decay": 0.5}


# ---- frozen ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("optimiser", "deterministic"),
    [*((each, "ranks") for each in OPTIMISERS), ("adamw", "topology"), ("sgd", "topology")],
)
def test_what_is_frozen_stays_as_it_is_bit_for_bit(optimiser: str, deterministic: str) -> None:
    run = run_of(
        {"freeze": ["first.*", "blocks.0.*"]},
        optimiser={"name": optimiser, "lr": 0.01, "weight_decay": 0.5},
        deterministic=deterministic,
    )
    run.fit()
    names = moved(begun(), weights(run.model))
    assert names
    assert all(name.startswith(("blocks.1.", "head.")) for name in names)
    assert {"blocks.1.1.running_mean", "head.weight"} <= names
    frozen = [p for p in run.module.parameters() if not p.requires_grad]
    assert len(frozen) == 6
    assert all(p.grad is None for p in frozen)
    assert all(p not in o.state for o in run.update.optimisers for p in frozen)


def test_a_frozen_layer_normalises_by_the_statistics_that_it_has() -> None:
    run = run_of({"freeze": ["blocks.0.*"]})
    inputs = torch.randn(8, 16) * 7 + 3
    layer = copy.deepcopy(run.module).blocks[0][1]  # type: ignore[union-attr, index]
    run.module.train()
    assert not layer.train().training
    assert run.module.blocks[1][1].training  # type: ignore[union-attr, index]
    assert torch.allclose(layer(inputs), inputs, atol=1e-3)  # means 0, variances 1


def test_a_frozen_models_step_is_that_of_plain_code_with_the_same_parameters_left_out() -> None:
    run = run_of({"freeze": ["first.*"]}, schedule={"shape": "constant", "warmup": 0})
    plain = blocks(norm=True, dropout=0.1)
    plain.first.requires_grad_(False)
    other = trainer(model=plain, epochs=3, log_every=1, schedule={"shape": "constant", "warmup": 0})
    assert largest_difference(after(run, 5), after(other, 5)) == 0


# ---- stages and rates ------------------------------------------------------------------------


def test_stages_are_the_layers_from_the_input_to_the_output() -> None:
    stages = Stages(blocks(norm=True))
    assert stages.count == 4
    names = ["first.weight", "blocks.0.1.bias", "blocks.1.0.weight", "head.bias"]
    assert [stages.of(name) for name in names] == [0, 1, 2, 3]


class Tables(nn.Module):
    """As a tabular network, or a small transformer, is written."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.zeros(4))
        self.embeddings = nn.ModuleList(nn.Embedding(3, 2) for _ in range(2))
        self.position = nn.Embedding(5, 2)
        self.body = nn.Sequential(
            nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 4), nn.LayerNorm(4)
        )
        self.head = nn.Linear(4, 1)


def test_norms_join_what_is_before_them_and_embeddings_each_other() -> None:
    stages = Stages(Tables())
    names = [
        "token", "embeddings.0.weight", "embeddings.1.weight", "position.weight",
        "body.0.bias", "body.1.weight", "body.1.running_mean", "body.3.weight", "body.4.bias",
        "head.weight",
    ]  # fmt: skip
    assert [stages.of(name) for name in names] == [0, 0, 0, 0, 1, 1, 1, 2, 2, 3]


def test_stages_can_be_said() -> None:
    stages = Stages(Tables(), ["token", "*embeddings.*", "p*", "body.*", "head.*"])
    assert [stages.of(n) for n in ("token", "position.weight", "body.4.bias")] == [0, 2, 3]
    with pytest.raises(ConfigurationError, match=r"no stage for head\.weight, head\.bias"):
        Stages(Tables(), ["[!h]*"])
    with pytest.raises(ConfigurationError, match="'rear' means none"):
        Stages(Tables(), ["*", "rear"])


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_each_stage_has_its_rate_exactly(optimiser: str) -> None:
    """Plain SGD moves a weight by rate times gradient; the others are asked for their groups."""
    run = run_of({"lr_decay": 0.5}, optimiser={"name": optimiser, "lr": 0.08})
    stages = Stages(run.module)
    by_parameter = {p: n for n, p in run.module.named_parameters()}
    after(run, 3)
    rate = run.schedule.at(2).lr
    seen = set()
    for optimiser_ in run.update.optimisers:
        for group in optimiser_.param_groups:
            for parameter in group["params"]:
                stage = stages.of(by_parameter[parameter])
                assert group["lr"] == rate * 0.5 ** (3 - stage)
                seen.add(stage)
    assert seen == {0, 1, 2, 3}


def test_rates_by_depth_move_weights_by_that_much_less() -> None:
    plain, decayed = (
        run_of(
            start,
            optimiser={"name": "sgd", "lr": 2, "momentum": 0, "weight_decay": 0, "clip_norm": 0},
        )
        for start in ({}, {"lr_decay": 0.25})
    )
    start = begun()
    one, other = after(plain, 1), after(decayed, 1)
    for name, factor in (("first.weight", 1 / 64), ("blocks.1.0.weight", 1 / 4), ("head.bias", 1)):
        assert torch.allclose(
            other[name] - start[name], factor * (one[name] - start[name]), atol=2e-7
        )


class Scattered(SingleProcess):
    """Leaves weights where they are, and, like several processes, computes what it then drops."""

    flat = False


def test_rates_on_one_buffer_are_those_of_adamw_on_many_tensors() -> None:
    flat, plain = (
        run_of(BY_DEPTH, optimiser={"lr": 0.01, "clip_norm": 0}, strategy=strategy)
        for strategy in (SingleProcess(CPU), Scattered(CPU))
    )
    assert isinstance(flat.update.optimisers[0], FlatAdamW)
    assert not isinstance(plain.update.optimisers[0], FlatAdamW)
    assert largest_difference(after(flat, 15), after(plain, 15)) == 0


# ---- thawing ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("optimiser", "deterministic"),
    [*((each, "ranks") for each in OPTIMISERS), ("adamw", "topology"), ("sgd", "topology")],
)
def test_stages_thaw_from_the_top_down(optimiser: str, deterministic: str, tmp_path: Path) -> None:
    def state(step: int) -> dict[str, Tensor]:
        run = run_of(
            {"unfreeze": [0.25, 0.5]},
            optimiser={"name": optimiser, "lr": 0.01, "weight_decay": 0.5},
            deterministic=deterministic,
        )
        assert run.total_steps == 18
        return after(run, step)

    start, early, later, end = begun(), state(4), state(9), state(18)
    assert {name.split(".")[0] for name in moved(start, early)} == {"head"}
    assert {name[:8] for name in moved(early, later)} == {"head.wei", "head.bia", "blocks.1"}
    assert "blocks.1.1.running_var" in moved(early, later)
    # the last share thaws all that is left
    assert {"first.weight", "blocks.0.0.weight", "blocks.0.1.running_mean"} <= moved(later, end)


def test_what_has_not_thawed_counts_in_no_norm_and_is_not_computed() -> None:
    run = run_of({"unfreeze": [0.5]})
    norms: list[float] = []
    run.on_point = lambda point: norms.append(point.gradient_norm)
    after(run, 1)
    only_head = blocks(norm=True, dropout=0.1)
    for part in (only_head.first, only_head.blocks):
        part.requires_grad_(False)
        part.eval()
    for layer in (only_head.blocks[0][1], only_head.blocks[1][1]):  # type: ignore[index]
        hold_statistics(layer)
    other = trainer(model=only_head, epochs=3, log_every=1)
    expected: list[float] = []
    other.on_point = lambda point: expected.append(point.gradient_norm)
    after(other, 1)
    assert norms == expected
    assert not run.module.first.weight.requires_grad  # type: ignore[union-attr]


def test_adam_begins_its_count_of_steps_where_a_stage_thaws() -> None:
    run = run_of({"unfreeze": [0.25, 0.5]}, optimiser={"lr": 0.01})
    after(run, 12)
    steps = {
        name: float(state["step"])
        for name, parameter in run.module.named_parameters()
        for state in [run.update.optimisers[0].state[parameter]]
    }
    assert steps["head.bias"] == 12
    assert steps["blocks.1.0.weight"] == 12 - 4
    assert steps["first.weight"] == steps["blocks.0.0.weight"] == 12 - 9


def test_more_shares_than_stages_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="has 4 shares, and the model has 3 stages"):
        run_of({"unfreeze": [0.1, 0.2, 0.3, 0.4]})


@pytest.mark.parametrize(
    ("stop", "optimiser", "deterministic"),
    [
        (3, "adamw", "ranks"),  # before the first thaw
        (6, "adamw", "ranks"),  # right after it
        (7, "adamw", "topology"),
        (7, "muon", "ranks"),
        (13, "sgd", "topology"),  # after the last one
    ],
)
@pytest.mark.parametrize("start", [THAWING, {"lora": {"rank": 2, "dropout": 0.2}}])
def test_it_goes_on_bit_for_bit(
    tmp_path: Path, start: dict[str, Any], stop: int, optimiser: str, deterministic: str
) -> None:
    changes: dict[str, Any] = {
        "optimiser": {"name": optimiser, "lr": 0.02}, "deterministic": deterministic
    }  # fmt: skip
    whole = run_of(start, tmp_path / "whole", **changes)
    whole.fit()
    after(run_of(start, tmp_path / "run", **changes), stop)
    again = run_of(start, tmp_path / "run", **changes)
    assert again.fit().resumed_from == stop
    assert largest_difference(weights(whole.model), weights(again.model)) == 0
    assert again.outcome.evaluations == whole.outcome.evaluations
    assert [p.gradient_norm for p in again.outcome.curve] == [
        p.gradient_norm for p in whole.outcome.curve
    ]


def test_a_rollback_freezes_again_what_had_thawed(tmp_path: Path) -> None:
    run = run_of({"unfreeze": [0.5]}, tmp_path)
    (technique,) = run.techniques
    technique.before_step(12)
    assert run.module.first.weight.requires_grad  # type: ignore[union-attr]
    technique.before_step(3)
    assert not run.module.first.weight.requires_grad  # type: ignore[union-attr]
    run.module.train()
    assert not run.module.blocks[1][1].training  # type: ignore[union-attr, index]
    technique.before_step(12)
    assert run.module.blocks[1][1].training  # type: ignore[union-attr, index]
