"""Weights in one buffer: the same model, and AdamW's very bits."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
from test_optimisers import Sentence, gradients, network, state_tensors
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)

from training_core.errors import ConfigurationError, TrainingFailed
from training_core.optim import flat_adamw
from training_core.optim.flat import FlatParameters
from training_core.optim.flat_adamw import FlatAdamW, public_kernel
from training_core.optim.groups import by_decay, parameter_groups
from training_core.optim.optimisers import build_optimisers
from training_core.optim.settings import OptimiserSettings

WORDS = torch.randint(0, 11, (4, 5), generator=torch.Generator().manual_seed(0))
SETTINGS = OptimiserSettings(lr=0.01, betas=(0.8, 0.95), weight_decay=0.1)


def flat_and_plain(build: Any = Sentence) -> tuple[nn.Module, FlatAdamW, nn.Module, Any]:
    ours, theirs = build(), build()
    flat = FlatParameters(ours)
    (optimiser,) = build_optimisers(ours, SETTINGS, flat=flat)
    assert isinstance(optimiser, FlatAdamW)
    groups = parameter_groups(*by_decay(theirs), weight_decay=SETTINGS.weight_decay)
    plain = torch.optim.AdamW(groups, lr=SETTINGS.lr, betas=SETTINGS.betas, fused=True)
    return ours, optimiser, theirs, plain


def same(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def odd() -> nn.Module:
    """Sizes that no vector width divides, and some that it does."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(7, 13), nn.Linear(13, 16), nn.Linear(16, 32), nn.Linear(32, 1))


# ---- the buffers -----------------------------------------------------------------------------


def test_a_model_in_a_buffer_computes_what_it_did_before() -> None:
    model, before = Sentence().eval(), Sentence().eval()
    flat = FlatParameters(model)
    assert torch.equal(model(WORDS), before(WORDS))
    assert same(model, before)
    model(WORDS).square().sum().backward()
    before(WORDS).square().sum().backward()
    trained = [p for p in model.parameters() if p.requires_grad]
    for one, other in zip(model.parameters(), before.parameters(), strict=True):
        assert other.grad is None or torch.equal(one.grad, other.grad)  # type: ignore[arg-type]
    norm = nn.utils.get_total_norm([p.grad for p in trained if p.grad is not None])
    assert float(torch.linalg.vector_norm(flat.collected())) == pytest.approx(float(norm))


def test_decaying_weights_are_one_part_of_the_buffer_and_everything_is_aligned() -> None:
    model = Sentence()
    flat = FlatParameters(model)
    decaying, others = by_decay(model)
    ends = max(flat.weights[: p.storage_offset()].numel() + p.numel() for p in decaying)
    assert ends <= min(p.storage_offset() for p in others)
    for parameter in (*decaying, *others):
        assert parameter.data_ptr() % 64 == flat.weights.data_ptr() % 64
        assert parameter.untyped_storage().data_ptr() == flat.weights.untyped_storage().data_ptr()
    assert {run.decays for run in flat.runs} == {True, False}


def test_frozen_weights_stay_outside() -> None:
    model = Sentence()
    flat = FlatParameters(model)
    assert model.frozen.weight.untyped_storage().data_ptr() != flat.weights.data_ptr()
    assert model.frozen.weight.grad is None


def test_as_few_runs_are_updated_as_the_bits_allow() -> None:
    mlp = nn.Sequential(nn.Linear(54, 128), nn.Linear(128, 1), nn.Linear(16, 64))
    assert len(FlatParameters(mlp).runs) == 2  # the one bias of odd size comes last
    assert len(FlatParameters(odd()).runs) == 3


def test_gradients_stay_views_when_they_are_zeroed_and_made_again() -> None:
    model = Sentence()
    flat = FlatParameters(model)
    for _ in range(2):
        model(WORDS).square().sum().backward()
        assert float(flat.collected().abs().sum()) > 0
        flat.zero()
        assert all(float(p.grad.abs().sum()) == 0 for p in by_decay(model)[0])  # type: ignore[union-attr]


def test_flattening_again_changes_nothing() -> None:
    model, before = Sentence(), Sentence()
    FlatParameters(model)
    gradients(model, 5)
    kept = [p.grad.clone() for p in model.parameters() if p.grad is not None and p.requires_grad]
    FlatParameters(model)
    assert same(model, before)
    found = [p.grad for p in model.parameters() if p.grad is not None and p.requires_grad]
    assert all(map(torch.equal, kept, found))


def test_gradients_that_left_the_buffer_are_noticed() -> None:
    model = Sentence()
    flat = FlatParameters(model)
    model.zero_grad(set_to_none=True)
    model(WORDS).sum().backward()
    with pytest.raises(TrainingFailed, match="gradients were set to None or replaced") as raised:
        flat.collected()
    assert "hint: leave zeroing to the trainer" in str(raised.value)


def test_memory_layout_is_kept() -> None:
    torch.manual_seed(0)
    model = nn.Conv2d(4, 6, 3).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    before, strides = model.weight.detach().clone(), model.weight.stride()
    FlatParameters(model)
    assert model.weight.stride() == strides
    assert model.weight.grad is not None
    assert model.weight.grad.stride() == strides
    assert torch.equal(model.weight, before)


def test_only_parameters_of_one_kind_fit_in_a_buffer() -> None:
    assert FlatParameters.fits(Sentence())
    assert not FlatParameters.fits(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double()))
    assert not FlatParameters.fits(nn.Linear(2, 2).requires_grad_(False))


# ---- AdamW -----------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [Sentence, network, odd])
@pytest.mark.parametrize("kernel", ["operator", "public function"])
def test_flat_adamw_gives_the_bits_of_torchs_fused_adamw(
    build: Any, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert flat_adamw.fused_kernel() is torch._fused_adamw_
    if kernel == "public function":
        monkeypatch.setattr(flat_adamw, "fused_kernel", lambda: public_kernel)
    ours, optimiser, theirs, plain = flat_and_plain(build)
    for step in range(12):
        gradients(ours, step)
        gradients(theirs, step)
        skip = torch.tensor(1.0 if step == 4 else 0.0)
        for each in (optimiser, plain):
            each.grad_scale, each.found_inf = torch.tensor(1.5), skip
            each.step()
        assert same(ours, theirs), f"step {step}"
    assert {float(state["step"]) for state in optimiser.state.values()} == {11.0}


def test_another_signature_of_the_operator_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat_adamw, "_SIGNATURE", (*flat_adamw._SIGNATURE, "more"))
    assert flat_adamw.fused_kernel() is public_kernel


def test_step_takes_a_closure_as_torchs_optimisers_do() -> None:
    model, optimiser, _, _ = flat_and_plain()

    def closure() -> Tensor:
        loss: Tensor = model(WORDS).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    first = optimiser.step(closure)
    optimiser.zero_grad(set_to_none=True)  # they stay views all the same
    assert optimiser.step(closure) < first


def test_a_parameter_without_part_in_a_step_has_a_gradient_of_zeros() -> None:
    model, optimiser, _, _ = flat_and_plain()
    before = model.back.weight.detach().clone()
    optimiser.step()
    assert torch.equal(model.back.weight, before * (1 - 0.01 * 0.1))


# ---- its state -------------------------------------------------------------------------------


@pytest.mark.parametrize("distributed", [False, True])
@pytest.mark.parametrize("to_flat", [True, False])
def test_state_moves_between_plain_and_flat_adamw(to_flat: bool, distributed: bool) -> None:
    flat_model, flat, plain_model, plain = flat_and_plain()
    source, giver = (plain_model, plain) if to_flat else (flat_model, flat)
    target, taker = (flat_model, flat) if to_flat else (plain_model, plain)
    for step in range(3):
        gradients(source, step)
        giver.step()
    target.load_state_dict(source.state_dict())
    live = state_tensors([flat])
    # copied, as by a file: torch's own optimisers would go on with the very tensors they are given
    if distributed:
        state = deepcopy(get_optimizer_state_dict(source, giver))
        set_optimizer_state_dict(target, taker, state)
    else:
        taker.load_state_dict(deepcopy(giver.state_dict()))
    assert all(a is b for a, b in zip(live, state_tensors([flat]), strict=True))
    for step in range(3, 6):
        gradients(source, step)
        gradients(target, step)
        giver.step()
        taker.step()
    assert same(source, target)
    assert {float(state["step"]) for state in flat.state.values()} == {6.0}


def test_state_loads_in_place_into_its_own_tensors() -> None:
    model, optimiser, _, _ = flat_and_plain()
    gradients(model, 0)
    optimiser.step()
    before = [tensor.clone() for tensor in state_tensors([optimiser])]
    optimiser.load_state_dict(optimiser.state_dict())  # of references to the very same tensors
    assert all(map(torch.equal, before, state_tensors([optimiser])))


def test_the_state_of_an_optimiser_that_never_stepped_is_zero() -> None:
    model, optimiser, _, plain = flat_and_plain()
    gradients(model, 0)
    optimiser.step()
    optimiser.load_state_dict(plain.state_dict())
    assert all(float(tensor.abs().sum()) == 0 for tensor in state_tensors([optimiser]))


def test_state_with_parameters_at_different_steps_is_refused_and_changes_nothing() -> None:
    model, optimiser, other, plain = flat_and_plain()
    gradients(other, 0)
    plain.step()
    other.back.weight.grad = None
    plain.step()
    with pytest.raises(ConfigurationError, match=r"at different steps \(\[1.0, 2.0\]\)"):
        optimiser.load_state_dict(plain.state_dict())
    assert all(float(tensor.abs().sum()) == 0 for tensor in state_tensors([optimiser]))
    gradients(model, 0)
    optimiser.step()
    assert {float(state["step"]) for state in optimiser.state.values()} == {1.0}
