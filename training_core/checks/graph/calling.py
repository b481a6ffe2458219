"""Call a model for a check: on copies of the arrays, with chance drawn alike each time."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from training_core.checks.subject import Subject
from training_core.determinism import seed_everything
from training_core.examples import Examples

# Weights and inputs known to six digits: some ten times coarser than float32, so that what moves
# less than this moves them is rounding, whatever the network makes of it.
ROUNDING = 1e-6


@torch.no_grad()
def outputs_of(model: nn.Module, examples: Examples, *, seed: int | None = 0) -> Tensor:
    """Return outputs in the mode that the model is in, float32, first dimension N.

    Args:
        model: Its buffers may change in train mode.
        examples: Left as they are, even by a model that writes to its inputs.
        seed: Of dropout and whatever else draws; None: go on drawing.
    """
    if seed is not None:
        seed_everything(seed)
    outputs: Tensor = model(**examples.clone().arrays)
    return outputs.detach().float()


def change(before: Tensor, after: Tensor) -> Tensor:
    """Return how far outputs are apart, shape as both; infinity where only one of them is NaN."""
    same = (before == after) | (before.isnan() & after.isnan())
    return torch.where(same, 0.0, (after - before).abs()).nan_to_num(nan=torch.inf)


def change_by_row(before: Tensor, after: Tensor) -> Tensor:
    """Return how far each row's outputs are apart at most, float32 [N]."""
    if not before.numel():
        return torch.zeros(len(before))
    return change(before, after).reshape(len(before), -1).amax(1)


def largest(outputs: Tensor) -> float:
    """Return the largest finite output, whatever its sign; 0 if there is none."""
    finite = outputs[outputs.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0


@torch.no_grad()
def rounding(subject: Subject, model: nn.Module, examples: Examples) -> float:
    """Return how far outputs move where weights and inputs are known to six digits only.

    Differences below are float noise: sums are added up in another order for another batch size.
    """
    before = outputs_of(model, examples)
    rough = copy_of(subject, model)
    generator = torch.Generator().manual_seed(0)

    def rounded(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            return tensor
        signs = torch.randint(0, 2, tensor.shape, generator=generator).to(tensor.dtype) * 2 - 1
        return tensor * (1 + ROUNDING * signs)

    for parameter in rough.parameters():
        parameter.copy_(rounded(parameter))
    arrays = {name: rounded(array) for name, array in examples.arrays.items()}
    after = outputs_of(rough, Examples(arrays, examples.target, examples.units))
    moved = change_by_row(before, after)
    moved = moved[moved.isfinite()]
    return max(ROUNDING * largest(before), float(moved.max()) if moved.numel() else 0.0)


def copy_of(subject: Subject, model: nn.Module) -> nn.Module:
    """Return a copy in the same mode, with the same weights and buffers.

    A model that keeps tensors of its last forward cannot be copied, so it is built anew.
    """
    try:
        return copy.deepcopy(model)
    except RuntimeError:
        built = subject.build()
        built.load_state_dict(model.state_dict())
        for old, new in zip(model.modules(), built.modules(), strict=True):
            new.training = old.training
        return built


def after_training(subject: Subject) -> nn.Module:
    """Return a copy of the network after its short training, in eval mode.

    Weights that start at zero have moved by then, and attention is no longer uniform. Where it has
    diverged, an untrained network says more.
    """
    model = copy_of(subject, subject.trained.model).eval()
    if outputs_of(model, subject.batch(16)).isfinite().all():
        return model
    return subject.build().eval()


def place_of(model: nn.Module, name: str) -> str:
    """Name a module for a person: "blocks.0.norm (LayerNorm)"."""
    kind = type(model.get_submodule(name)).__name__
    return f"{name} ({kind})" if name else f"the forward of {kind}"


def listed(names: list[str], *, limit: int = 5) -> str:
    """Join names, and say how many more there are."""
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")
