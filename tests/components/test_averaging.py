"""The mean of checkpoints' weights, and the statistics of normalising layers estimated anew."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from components.select_checkpoint.averaging import averaged
from training_core.averaging.statistics import estimate_statistics, has_statistics
from training_core.examples import Examples


class Normalised(nn.Module):
    """Dropout before a BatchNorm, and one that collects nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(3, momentum=0.25)
        self.plain = nn.BatchNorm1d(3, track_running_stats=False)

    def forward(self, numbers: Tensor) -> Tensor:
        outputs: Tensor = self.plain(self.norm(self.dropout(numbers)))
        return outputs


def test_weights_are_averaged_and_the_rest_is_of_the_first() -> None:
    states = [
        {
            "weight": torch.tensor([float(i), 1.0]),
            "double": torch.tensor([float(i)], dtype=torch.float64),
            "half": torch.full((2,), float(i), dtype=torch.bfloat16),
            "wave": torch.tensor([complex(i, -i)]),
            "count": torch.tensor(10 * i),
            "mask": torch.tensor([i == 1]),
            "grown": torch.ones(i),
            **({"late": torch.ones(1)} if i < 3 else {}),
        }
        for i in (1, 2, 3)
    ]
    mean = averaged(iter(states))
    assert list(mean) == list(states[0])
    assert mean["weight"].tolist() == [2.0, 1.0]
    assert (mean["half"].dtype, mean["half"].tolist()) == (torch.bfloat16, [2.0, 2.0])
    assert mean["wave"].tolist() == [2 - 2j]
    for name in ("count", "mask", "grown", "late"):
        assert torch.equal(mean[name], states[0][name])
    assert states[0]["double"].tolist() == [1.0], "what it was made of is left alone"


def test_the_mean_is_exact_where_single_precision_is_not() -> None:
    states = [{"weight": torch.tensor([value])} for value in (2.0**24, 1.0, 1.0)]
    assert averaged(states)["weight"].item() == torch.tensor((2.0**24 + 2) / 3).item()


def test_one_state_stays_what_it_is() -> None:
    state = nn.Linear(2, 2).state_dict()
    mean = averaged([state])
    assert all(torch.equal(mean[name], state[name]) for name in state)


@pytest.mark.parametrize("rows", [2, 257, 1000])
def test_statistics_are_those_of_the_examples_without_dropout(rows: int) -> None:
    network = Normalised()
    network(torch.randn(20, 3))  # leaves statistics behind, which must not count
    numbers = torch.randn(rows, 3, generator=torch.Generator().manual_seed(0)) * 3 + 5
    estimate_statistics(network, Examples({"numbers": numbers}, torch.zeros(rows)))
    mean, variance = network.norm.running_mean, network.norm.running_var
    assert mean is not None
    assert variance is not None
    torch.testing.assert_close(mean, numbers.mean(0), rtol=0.001, atol=0.001)
    # Of each batch around its own mean: with 250 rows that is off by little.
    torch.testing.assert_close(variance, numbers.var(0), rtol=0.02, atol=0.001)
    assert network.norm.momentum == 0.25
    assert not any(module.training for module in network.modules())


def test_only_layers_that_collect_statistics_need_them() -> None:
    assert has_statistics(nn.Sequential(nn.BatchNorm2d(3)))
    assert has_statistics(nn.InstanceNorm1d(3, track_running_stats=True))
    assert not has_statistics(nn.Sequential(nn.LayerNorm(3), nn.InstanceNorm1d(3)))
    assert not has_statistics(Normalised().plain)
