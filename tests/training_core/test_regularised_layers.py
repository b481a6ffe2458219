"""Ghost and synchronised BatchNorm, stochastic depth, dropout: what they compute, what stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from ranks import run_ranks
from ranks_models import blocks
from ranks_techniques_worker import JOINED, synchronised
from torch import Tensor, nn
from training_samples import CPU, Sales, largest_difference, settings, trainer, weights

from training_core.errors import ConfigurationError
from training_core.parallel.single import SingleProcess
from training_core.regularisation.batch_norm import GhostBatchNorm1d, GhostBatchNorm2d
from training_core.regularisation.layers import regularise
from training_core.regularisation.settings import RegularisationSettings
from training_core.regularisation.stochastic_depth import StochasticDepth


def regularised(model: nn.Module, **changes: Any) -> nn.Module:
    regularise(model, RegularisationSettings.model_validate(changes), SingleProcess(CPU))
    return model


# ---- ghost BatchNorm ---------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(70, 3), (70, 3, 4, 4)])
def test_each_ghost_batch_is_normalised_by_itself(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    inputs = torch.randn(shape)
    ghost = GhostBatchNorm1d(3) if len(shape) == 2 else GhostBatchNorm2d(3)
    ghost.rows = 16
    plain = nn.BatchNorm1d(3) if len(shape) == 2 else nn.BatchNorm2d(3)
    expected = torch.cat([plain(part) for part in inputs.tensor_split(4)])  # 18, 18, 17, 17
    assert torch.equal(ghost(inputs), expected)
    assert torch.equal(ghost.running_var, plain.running_var)  # type: ignore[arg-type]
    small = inputs[:20]  # of one ghost batch
    assert torch.equal(ghost(small), plain(small))
    assert torch.equal(ghost.eval()(inputs), plain.eval()(inputs))


def test_a_network_with_ghosts_has_the_names_and_answers_of_the_one_without() -> None:
    plain, ghost = blocks(norm=True), regularised(blocks(norm=True), batch_norm="ghost")
    assert isinstance(ghost.blocks[0][1], GhostBatchNorm1d)  # type: ignore[index]
    assert largest_difference(weights(plain), weights(ghost)) == 0.0
    plain.load_state_dict(ghost.state_dict())
    numbers = torch.randn(70, 2)
    assert torch.equal(plain.eval()(numbers, numbers), ghost.eval()(numbers, numbers))
    assert not torch.equal(plain.train()(numbers, numbers), ghost.train()(numbers, numbers))


def test_a_layer_that_is_used_twice_stays_one() -> None:
    norm = nn.BatchNorm1d(2)
    model = regularised(nn.Sequential(norm, nn.ReLU(), norm), batch_norm="ghost")
    assert model[0] is model[2]  # type: ignore[index]


# ---- stochastic depth, dropout -----------------------------------------------------------------


class Residual(nn.Module):
    """Four residual branches that can be left out."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first, self.head = nn.Linear(2, 8), nn.Linear(8, 1)
        self.branches = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))
        self.drops = nn.ModuleList(StochasticDepth() for _ in range(4))
        self.dropout = nn.Dropout(0.0)

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        hidden = self.first(numbers)
        for branch, drop in zip(self.branches, self.drops, strict=True):
            hidden = hidden + drop(branch(hidden).relu())
        outputs: Tensor = self.head(self.dropout(hidden))
        return outputs.squeeze(1)


def test_a_branch_is_left_out_for_whole_examples_and_its_mean_is_kept() -> None:
    torch.manual_seed(0)
    drop = StochasticDepth(0.25)
    found = drop(torch.ones(20_000, 3))
    assert set(found.unique().tolist()) == {0.0, torch.tensor(1 / 0.75).item()}
    assert torch.equal(found.amin(1), found.amax(1))
    assert float(found.mean()) == pytest.approx(1.0, abs=0.02)
    assert torch.equal(drop.eval()(found), found)


def test_probabilities_rise_linearly_with_depth() -> None:
    model = regularised(Residual(), stochastic_depth=0.4, dropout=0.3)
    found = [m.probability for m in model.modules() if isinstance(m, StochasticDepth)]
    assert found == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert model.dropout.p == 0.3  # type: ignore[union-attr]


def test_a_network_with_stochastic_depth_is_exported_without_it() -> None:
    inputs = (torch.zeros(2, 1), torch.randn(2, 2))
    model = regularised(Residual(), stochastic_depth=0.4).eval()
    exported = torch.export.export(model, inputs).module()
    assert torch.equal(exported(*inputs), model(*inputs))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dropout": 0.1}, r"nn\.Dropout"),
        ({"stochastic_depth": 0.1}, "StochasticDepth"),
        ({"batch_norm": "ghost"}, "BatchNorm"),
    ],
)
def test_a_setting_about_layers_that_are_not_there_is_refused(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"no {words} layer"):
        regularised(nn.Sequential(nn.Linear(2, 2)), **changes)


@pytest.mark.parametrize("stop", [8, 9])  # at an evaluation, and between two
@pytest.mark.parametrize("kind", ["ghost", "depth"])
def test_it_goes_on_as_if_nothing_had_happened(tmp_path: Path, kind: str, stop: int) -> None:
    by = {"stochastic_depth": 0.5} if kind == "depth" else {"batch_norm": "ghost", "ghost_rows": 3}

    def run_in(place: str) -> Any:
        model = Residual() if kind == "depth" else blocks(norm=True, dropout=0.1)
        return trainer(tmp_path / place, task=Sales(), model=model, regularisation=by)

    whole, first = run_in("whole"), run_in("run")
    whole.fit()
    first.should_stop = lambda: first.outcome.steps == stop
    first.fit()
    second = run_in("run")
    assert second.fit().resumed_from == stop
    assert largest_difference(weights(whole.model), weights(second.model)) == 0.0
    assert second.outcome.evaluations == whole.outcome.evaluations


# ---- synchronised BatchNorm --------------------------------------------------------------------


def test_synchronised_statistics_are_refused_where_microbatches_know_no_others() -> None:
    with pytest.raises(ValidationError, match="synchronised"):
        settings(deterministic="topology", regularisation={"batch_norm": "synchronised"})


@pytest.mark.smoke
@pytest.mark.slow
def test_ranks_normalise_as_one_process_does_with_all_rows_and_go_on_exactly(
    tmp_path: Path,
) -> None:
    found = run_ranks(4, synchronised, tmp_path)
    alone = trainer(model=blocks(norm=True), **JOINED)
    alone.fit()
    for kind in ("ddp", "fsdp"):
        whole, resumed = found[f"{kind} whole"], found[f"{kind} run"]
        assert largest_difference(weights(alone.module), whole["weights"]) < 1e-5, kind
        losses = [point.loss for point in alone.outcome.curve]
        assert whole["losses"] == pytest.approx(losses, abs=1e-5), kind
        assert resumed["resumed_from"] == 9
        assert largest_difference(resumed["weights"], whole["weights"]) == 0.0, kind
        assert resumed["evaluations"] == whole["evaluations"], kind
