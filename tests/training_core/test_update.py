"""The update in one process: clipping, skipping, loss scale, measuring, its own state."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_optimisers import NAMES, gradients, network, state_tensors
from torch import Tensor, nn

from training_core.optim.flat_adamw import FlatAdamW
from training_core.optim.settings import OptimiserSettings
from training_core.optim.shapes import Rate
from training_core.optim.update import Update
from training_core.parallel.single import SingleProcess

CPU = torch.device("cpu")
FUSED = ("adamw", "adam", "sgd")
WAYS = [
    *((name, flat, True) for name in NAMES for flat in (True, False)),
    *((name, flat, False) for name in FUSED for flat in (True, False)),
]
on_each_way = pytest.mark.parametrize(("name", "flat", "on_host"), WAYS)


class _Unflat(SingleProcess):
    flat = False


def update_of(
    model: nn.Module,
    *,
    flat: bool = True,
    on_host: bool | None = None,
    scaler: torch.amp.GradScaler | None = None,
    **settings: Any,
) -> Update:
    return Update(
        model,
        OptimiserSettings.model_validate(settings),
        strategy=SingleProcess(CPU) if flat else _Unflat(CPU),
        scaler=scaler or torch.amp.GradScaler("cpu", enabled=False),
        on_host=on_host,
    )


def multiply(model: nn.Module, factor: float) -> None:
    for parameter in model.parameters():
        assert parameter.grad is not None
        parameter.grad.mul_(factor)


def weights(model: nn.Module) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def equal(one: list[Tensor], other: list[Tensor]) -> bool:
    return len(one) == len(other) and all(map(torch.equal, one, other))


# ---- clipping --------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.01, 1.0])
@on_each_way
def test_gradients_are_clipped_as_torch_clips_them(
    name: str, flat: bool, on_host: bool, factor: float
) -> None:
    model, by_hand = network(), network()
    update = update_of(model, name=name, flat=flat, on_host=on_host, clip_norm=0.5, lr=0.01)
    other = update_of(by_hand, name=name, flat=flat, clip_norm=0, lr=0.01)
    norms = []
    for step in range(3):
        for each in (model, by_hand):
            gradients(each, step)
            multiply(each, factor)
        norms.append(float(nn.utils.clip_grad_norm_(by_hand.parameters(), 0.5)))
        update.step()
        other.step()
    assert (norms[0] > 0.5) is (factor == 1.0)
    for one, expected in zip(weights(model), weights(by_hand), strict=True):
        assert torch.allclose(one, expected, rtol=1e-5, atol=1e-6)
    assert float(update.norm_sum) == pytest.approx(sum(norms), rel=1e-5)
    assert float(update.skipped) == 0
    assert float(update.finite) == 1


def test_a_clipped_gradient_has_exactly_the_largest_norm() -> None:
    model = nn.Linear(3, 2)
    update = update_of(model, name="sgd", momentum=0, lr=1.0, weight_decay=0, clip_norm=0.25)
    for scale in (1e-3, 1.0, 1e6):
        before = weights(model)
        gradients(model, 0)
        multiply(model, scale)
        norm = float(
            nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
        )
        update.step(measure=True)
        moved = nn.utils.get_total_norm(
            [a - b for a, b in zip(before, weights(model), strict=True)]
        )
        assert float(moved) == pytest.approx(min(norm, 0.25), rel=1e-4)
        assert float(update.update_norm) == pytest.approx(float(moved), rel=1e-6)


def test_no_limit_is_no_limit() -> None:
    model = nn.Linear(1, 1, bias=False)
    update = update_of(model, name="sgd", momentum=0, lr=1.0, weight_decay=0, clip_norm=0)
    before = model.weight.item()
    assert model.weight.grad is not None
    model.weight.grad.fill_(1e4)
    update.step()
    assert before - model.weight.item() == pytest.approx(1e4)
    assert update.norm_sum.item() == pytest.approx(1e4)


@pytest.mark.parametrize("on_host", [True, False])
def test_a_running_percentile_of_the_newest_norms_limits_too(on_host: bool) -> None:
    model = nn.Linear(1, 1, bias=False)
    update = update_of(
        model,
        name="sgd",
        momentum=0,
        lr=1.0,
        weight_decay=0,
        clip_norm=6,
        clip_percentile=50,
        clip_history=3,
        on_host=on_host,
    )
    moved = []
    for gradient in (2.0, 4.0, 1.0, float("inf"), 4.0, 100.0, 100.0, 0.5):
        before = model.weight.item()
        model.weight.grad = (
            torch.full((1, 1), gradient)
            if model.weight.grad is None
            else (model.weight.grad.fill_(gradient))
        )
        update.step()
        moved.append(before - model.weight.item())
    # newest three: 2 | 2 4 | 2 4 1 | 4 1 - | 1 - 4 | - 4 100 | 4 100 100 | 100 100 0.5
    assert moved == pytest.approx([2, 3, 1, 0, 2.5, 6, 6, 0.5], rel=1e-4)


# ---- skipping --------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("after", [0, 2])
@on_each_way
def test_a_step_that_is_not_finite_changes_no_weight_moment_or_counter(
    name: str, flat: bool, on_host: bool, after: int, bad: float
) -> None:
    model, undisturbed = network(), network()
    update = update_of(model, name=name, flat=flat, on_host=on_host, weight_decay=0.1)
    other = update_of(undisturbed, name=name, flat=flat, on_host=on_host, weight_decay=0.1)
    for step in range(after):
        gradients(model, step)
        gradients(undisturbed, step)
        update.step()
        other.step()
    before = weights(model) + [t.clone() for t in state_tensors(update.optimisers)]
    gradients(model, 99)
    assert model[2].bias.grad is not None  # type: ignore[index]
    model[2].bias.grad[3] = bad  # type: ignore[index]
    update.step(measure=True)
    assert equal(before, weights(model) + state_tensors(update.optimisers))
    assert float(update.skipped) == 1
    assert float(update.finite) == 0
    assert float(update.update_norm) == 0
    assert torch.isfinite(update.norm_sum)
    for step in range(5, 8):
        gradients(model, step)
        gradients(undisturbed, step)
        update.step()
        other.step()
    assert equal(weights(model), weights(undisturbed))
    assert float(update.skipped) == 1
    assert float(update.finite) == 1
    assert torch.equal(update.norm_sum, other.norm_sum)


# ---- loss scale ------------------------------------------------------------------------------


@on_each_way
def test_a_loss_scale_changes_no_step_and_shrinks_after_one_that_is_skipped(
    name: str, flat: bool, on_host: bool
) -> None:
    model, unscaled = network(), network()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=3)
    update = update_of(model, name=name, flat=flat, on_host=on_host, scaler=scaler, lr=0.01)
    other = update_of(unscaled, name=name, flat=flat, on_host=on_host, lr=0.01)
    scales = []
    for step in range(5):
        scaler.scale(torch.ones(()))
        gradients(model, step)
        gradients(unscaled, step)
        multiply(model, scaler.get_scale() if step != 1 else float("inf"))
        if step == 1:
            multiply(unscaled, float("nan"))
        update.step()
        other.step()
        scales.append(scaler.get_scale())
    assert scales == [2.0**12, 2.0**11, 2.0**11, 2.0**11, 2.0**12]
    for one, expected in zip(weights(model), weights(unscaled), strict=True):
        assert torch.allclose(one, expected, rtol=1e-5, atol=1e-6)
    assert float(update.norm_sum) == pytest.approx(float(other.norm_sum), rel=1e-6)
    assert float(update.skipped) == 1


# ---- the rest --------------------------------------------------------------------------------


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_the_rate_reaches_every_group(name: str, flat: bool) -> None:
    update = update_of(network(), name=name, flat=flat, betas=(0.9, 0.97))
    groups = [group for optimiser in update.optimisers for group in optimiser.param_groups]
    update.set_rate(Rate(0.125))
    assert {group["lr"] for group in groups} == {0.125}
    momenta = {group["momentum"] if "momentum" in group else group.get("betas") for group in groups}
    assert momenta <= {0.9, (0.9, 0.97), None}
    update.set_rate(Rate(0.25, 0.5))
    assert {group["lr"] for group in groups} == {0.25}
    momenta = {group["momentum"] if "momentum" in group else group.get("betas") for group in groups}
    assert momenta <= {0.5, (0.5, 0.97), None}


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_zeroed_and_the_change_of_the_weights_is_measured(
    name: str, flat: bool
) -> None:
    model = network()
    update = update_of(model, name=name, flat=flat)
    assert (update.gradients is not None) is flat
    before = weights(model)
    gradients(model, 0)
    update.step(measure=True)
    changes = [new - old for new, old in zip(weights(model), before, strict=True)]
    assert float(update.update_norm) == pytest.approx(float(nn.utils.get_total_norm(changes)))
    if flat:
        assert update.gradients is not None
        assert float(update.gradients.abs().sum()) == 0
    else:
        assert all(parameter.grad is None for parameter in model.parameters())


def test_a_small_model_is_trained_in_one_buffer_and_a_mixed_one_is_not() -> None:
    (optimiser,) = update_of(network()).optimisers
    assert isinstance(optimiser, FlatAdamW)
    mixed = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).bfloat16())
    update = update_of(mixed)
    assert update.gradients is None
    assert not isinstance(update.optimisers[0], FlatAdamW)


def test_state_taken_without_a_percentile_loads_where_there_is_one() -> None:
    state = update_of(network()).state_dict()
    assert set(state) == {"norm_sum", "skipped"}
    update_of(network(), clip_percentile=90).load_state_dict(state)


def test_an_update_goes_on_to_the_very_same_weights() -> None:
    settings: dict[str, Any] = {"clip_percentile": 80, "clip_history": 4}
    whole, resumed = network(), network()
    one, other = update_of(whole, **settings), update_of(resumed, **settings)
    for step in range(10):
        gradients(whole, step)
        one.step()
        if step == 4:
            resumed.load_state_dict(whole.state_dict())
            other.load_state_dict(one.state_dict())
            other.optimisers[0].load_state_dict(one.optimisers[0].state_dict())
        if step > 4:
            gradients(resumed, step)
            other.step()
    assert equal(weights(whole), weights(resumed))
    assert torch.equal(one.norm_sum, other.norm_sum)
