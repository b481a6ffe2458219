"""What bounds a step, what to try, and what the whole run takes."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor, nn

from tests.training_core.profiling.profiled import planned
from tests.training_core.training_samples import Sales
from training_core.profiling.advice import Change, bars, changes
from training_core.profiling.calibration import Machine
from training_core.profiling.estimate import estimate
from training_core.profiling.operations import Counter, kind_of
from training_core.profiling.planned import Planned
from training_core.profiling.profile import profile
from training_core.profiling.result import Profile
from training_core.profiling.trying import changed, try_changes
from training_core.task import Preprocessor

STEPS = 20


class Heavy(nn.Module):
    """Large matrix products, or many additions to a large tensor."""

    def __init__(self, *, products: int, additions: int, width: int = 1024) -> None:
        super().__init__()
        self.additions = additions
        self.first = nn.Linear(2, width)
        self.layers = nn.Sequential(*(nn.Linear(width, width) for _ in range(products)))
        self.head = nn.Linear(width, 1)

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        x = self.layers(self.first(numbers))
        for _ in range(self.additions):
            x = (x + 0.5).sin()
        out: Tensor = self.head(x).squeeze(1)
        return out


class Large(Sales):
    products, additions = 3, 0

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return Heavy(products=self.products, additions=self.additions)


class Moving(Large):
    products, additions = 0, 20


@pytest.fixture(scope="module")
def small() -> tuple[Planned, Profile]:
    training = planned()
    return training, profile(training, steps=STEPS)


@pytest.mark.smoke  # seconds of arithmetic
def test_large_products_are_bound_by_compute_and_additions_by_memory() -> None:
    computing = profile(planned(Large(), batch_size=512), steps=STEPS)
    assert computing.bound == "compute"
    assert computing.flops == pytest.approx(6 * 3 * 1024**2, rel=0.05)
    assert computing.mfu is not None
    assert 0 < computing.mfu < 1.5
    moving = profile(planned(Moving(), batch_size=1000), steps=STEPS)
    assert moving.bound == "memory"
    assert next(iter(moving.bars)) == "element by element"
    assert computing.intensity > 10 * moving.intensity


def test_a_tiny_network_is_bound_by_calling_and_told_to_batch_or_to_fuse(
    small: tuple[Planned, Profile],
) -> None:
    training, found = small
    assert found.limits["overhead"] > found.limits["compute"] + found.limits["memory"]
    settings = [str(change) for change in changes(training, found)]
    assert "training.batch_size=256" in settings
    assert len(bars(training, found)) <= 3


def test_an_operations_work_is_counted_and_its_limit_named() -> None:
    machine = Machine("one", 1, "fp32", 1e9, None, ((1e3, 1e9), (1e9, 1e9)), 1e-9)
    counter = Counter(machine)
    a, b = torch.ones(4, 8), torch.ones(8, 16)
    counter.add(torch.ops.aten.mm.default, (a, b), {}, a @ b)
    counter.add(torch.ops.aten.add.Tensor, (a, a), {}, a + a)
    counter.add(torch.ops.aten.t.default, (a,), {}, a.t())  # a view: no work
    work = counter.per_step(1)
    assert set(work) == {"aten::mm", "aten::add"}
    assert work["aten::mm"].flops == 2 * 4 * 8 * 16
    assert work["aten::mm"].bytes == 4 * (32 + 128 + 64)
    assert work["aten::mm"].share("compute") == 1.0  # 1,024 FLOPs, 896 bytes
    assert work["aten::add"].share("memory") == 1.0
    assert kind_of("aten::mm") == "matrix products"
    assert kind_of("aten::convolution_backward") == "convolutions"
    assert kind_of("aten::native_layer_norm") == "normalisation"
    slow = dataclasses.replace(machine, call=1.0)
    counter = Counter(slow)
    counter.add(torch.ops.aten.mm.default, (a, b), {}, a @ b)
    assert counter.work["aten::mm"].share("overhead") == 1.0


def test_the_estimate_follows_from_the_step_and_the_plan(small: tuple[Planned, Profile]) -> None:
    training, found = small
    whole = dataclasses.replace(training, rows=128_000)
    run = estimate(whole, found, price=3.6)
    assert run.steps == 3000  # three epochs of a thousand steps
    assert run.training == pytest.approx(3000 * found.seconds)
    assert run.cost == pytest.approx(run.seconds / 1000)
    assert (run.units, run.different) == (384_000, 128_000)
    assert run.six_n_d is None  # nothing is said of tokens where there are none
    assert estimate(whole, found).cost is None


def test_changes_are_tried_against_the_settings_as_they_are() -> None:
    wanted = [
        Change("training.batch_size", 256, "more a call"),
        Change("training.activation_checkpointing", True, "less memory"),
    ]
    larger, impossible = try_changes(planned(), wanted, rounds=3)
    assert larger.rounds == 3
    assert 0 < larger.low <= larger.ratio <= larger.high
    assert impossible.verdict == "not possible"
    assert "has no repeated blocks" in impossible.failed


def test_a_change_is_checked_as_settings_are() -> None:
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        changed(planned().settings, Change("training.batch_size", 0, "nothing"))
