"""FLOPs of a model are those counted by hand, and peaks of devices those that are published."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from training_core.examples import Examples
from training_core.telemetry.flops import (
    flops_per_example,
    peak_flops,
    published_peak,
    utilisation,
)

CPU = torch.device("cpu")


class Yes:
    """The loss of a task whose answer is always yes."""

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        return nn.functional.binary_cross_entropy_with_logits(outputs, target, reduction="none")

    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        return {}


class Plain(nn.Module):
    """54 → 128 → 1, with everything that counting must not touch."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(54, 128)
        self.normal = nn.BatchNorm1d(128)
        self.dropout = nn.Dropout(0.5)
        self.outer = nn.Linear(128, 1)
        self.scale = torch.full((128,), 2.0)  # neither parameter nor buffer

    def forward(self, numbers: Tensor) -> Tensor:
        hidden = self.dropout(self.normal(self.inner(numbers))).relu() * self.scale
        return self.outer(hidden).squeeze(1)


class Looking(Plain):
    def forward(self, numbers: Tensor) -> Tensor:
        return super().forward(numbers if numbers.mean() > 0 else -numbers)


def plain_examples(count: int = 7) -> Examples:
    return Examples({"numbers": torch.ones(count, 54)}, torch.ones(count))


def test_flops_of_a_small_network_are_those_counted_by_hand() -> None:
    # forward, gradients of the weights, and, but for the first layer, of the inputs: 2 FLOPs each
    by_hand = 2 * (54 * 128 * 2 + 128 * 1 * 3)
    assert flops_per_example(Plain(), Yes(), plain_examples()) == by_hand
    assert flops_per_example(Plain(), Yes(), plain_examples(64)) == by_hand


def test_counting_leaves_no_trace() -> None:
    model = Plain()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    assert flops_per_example(model, Yes(), plain_examples())
    assert torch.equal(state, torch.get_rng_state())
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert model(plain_examples().arrays["numbers"]).shape == (7,)


def test_attention_counts_and_a_look_into_a_table_does_not() -> None:
    class Attending(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(10, 54)
            self.inner = nn.Linear(54, 54)

        def forward(self, words: Tensor) -> Tensor:
            heads = self.inner(self.table(words)).view(-1, 1, 9, 6)
            return nn.functional.scaled_dot_product_attention(heads, heads, heads).sum((1, 2, 3))

    examples = Examples({"words": torch.zeros(5, dtype=torch.int64)}, torch.ones(5))
    linear, attention = 2 * 54 * 54, 2 * 9 * 9 * 6
    # backward: two products for each of forward, of which attention has two
    by_hand = 3 * linear + 3 * 2 * attention
    assert flops_per_example(Attending(), Yes(), examples) == by_hand


def test_what_cannot_be_counted_is_not_known() -> None:
    assert flops_per_example(Looking(), Yes(), plain_examples()) is None

    class Adding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.offset = nn.Parameter(torch.zeros(()))

        def forward(self, numbers: Tensor) -> Tensor:
            return numbers.sum(1) + self.offset

    assert flops_per_example(Adding(), Yes(), plain_examples()) is None


@pytest.mark.parametrize(
    ("name", "precision", "teraflops"),
    [
        ("NVIDIA A100-SXM4-80GB", "bf16", 312),
        ("NVIDIA H100 80GB HBM3", "fp16", 989.5),
        ("NVIDIA H100 PCIe", "tf32", 378),
        ("NVIDIA H200", "fp32", 67),
        ("NVIDIA L40S", "bf16", 362),
        ("NVIDIA L4", "bf16", 121),
        ("Tesla V100-SXM2-16GB", "fp16", 125),
        ("Tesla V100-SXM2-16GB", "bf16", None),
        ("Tesla T4", "fp16", 65),
        ("NVIDIA B200", "bf16", 2250),
        ("NVIDIA GeForce RTX 2080", "fp32", None),
    ],
)
def test_published_peaks_are_found_by_the_devices_name(
    name: str, precision: str, teraflops: float | None
) -> None:
    peak = published_peak(name, precision)
    assert peak == (None if teraflops is None else pytest.approx(teraflops * 1e12))


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16", "fp16"])
def test_the_peak_of_a_cpu_is_measured_without_a_random_number(precision: str) -> None:
    state = torch.get_rng_state()
    peak = peak_flops(CPU, precision)
    assert torch.equal(state, torch.get_rng_state())
    assert peak is not None
    assert 1e8 < peak < 1e15


def test_utilisation_is_the_share_of_all_devices_peaks() -> None:
    assert utilisation(flops=3e9, samples_per_second=1e3, peak=1e13, world_size=4) == (
        pytest.approx(0.075)
    )
    assert utilisation(flops=None, samples_per_second=1e3, peak=1e13, world_size=4) is None
    assert utilisation(flops=3e9, samples_per_second=1e3, peak=None, world_size=4) is None
