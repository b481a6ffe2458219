"""What is lost without inputs: the floor that real inputs must beat."""

from __future__ import annotations

import torch
from torch import Tensor

from training_core.checks.contract import Curve
from training_core.checks.free_outputs import best_constant
from training_core.checks.loss.rows import rows_within
from training_core.checks.losses import losses_by, losses_of, rows_of
from training_core.checks.short_training import without_information
from training_core.checks.subject import Subject
from training_core.examples import Examples
from training_core.feeds.order import order
from training_core.task import PADDING
from training_core.untrained import untrained_outputs

_PSEUDO = 10.0  # positions' worth of the overall shares in each position's own


def blind_losses(subject: Subject, test: Examples, curves: dict[str, Curve]) -> tuple[Tensor, str]:
    """Return what held-back rows lose without inputs, float64 [N], and how: the least of all ways.

    They are the best constant, of sequences the best for each position, and the network itself
    trained on zeros.

    Args:
        subject: Gives what to learn from.
        test: Held back.
        curves: The training on zeros is added to it.
    """
    losses = {"the best constant": _losses_of_one(subject, _constant(subject, test), test)}
    same_length = subject.examples.target.shape[1:] == test.target.shape[1:]
    if subject.task.kind == "sequence" and same_length:
        best = _constant_of_positions(subject)
        losses["the best constant of each position"] = _losses_of_one(subject, best, test)
    zeros = _trained_on_zeros(subject, test, curves)
    if zeros is not None:
        losses["zeroed inputs"] = zeros
    finite = {name: loss for name, loss in losses.items() if bool(torch.isfinite(loss).all())}
    name = min(finite or losses, key=lambda name: float(losses[name].sum()))
    return losses[name], name


def with_inputs_of_other_rows(examples: Examples, *, seed: int) -> Examples:
    """Deal inputs to other rows: labels keep their shares and lose their meaning."""
    dealt = order(seed=seed, epoch=0, count=len(examples))
    arrays = {name: array[dealt] for name, array in examples.arrays.items()}
    return Examples(arrays, examples.target, examples.units)


def _constant(subject: Subject, test: Examples) -> Tensor:
    some = rows_within(subject, most=4096, values=2_000_000)
    outputs = untrained_outputs(subject.build(), some)
    best = best_constant(subject.task, outputs, some)[:1]
    if subject.task.kind == "sequence":
        best = best[:, :1].expand(1, *test.target.shape[1:], best.shape[-1])
    return best[0]


def _constant_of_positions(subject: Subject) -> Tensor:
    """Log shares of tokens by position, drawn towards their overall shares."""
    target = subject.examples.target
    classes = untrained_outputs(subject.build(), subject.examples.take(slice(0, 2))).shape[-1]
    counts = torch.zeros(target.shape[1], classes + 1)
    tokens = torch.where(target == PADDING, classes, target)  # padding is counted apart
    counts.scatter_add_(1, tokens.T, torch.ones(tokens.T.shape))
    counts = counts[:, :classes]
    overall = (counts.sum(0) + 0.5) / (counts.sum() + 0.5 * classes)
    shares = (counts + _PSEUDO * overall) / (counts.sum(1, keepdim=True) + _PSEUDO)
    return shares.log()


def _losses_of_one(subject: Subject, output: Tensor, test: Examples) -> Tensor:
    """Return what held-back rows lose if all of them get one output."""
    return losses_by(
        subject,
        lambda piece: output.expand(len(piece), *output.shape).clone(),
        test,
        rows=rows_of(output),
    )


def _trained_on_zeros(subject: Subject, test: Examples, curves: dict[str, Curve]) -> Tensor | None:
    """Return what is lost after a training on zeros, a third as long as that on inputs.

    None where it refuses them: lengths of 0, say. All zeros may also be all padding, and no number.
    """
    steps = max(1, subject.short_steps // 3)
    try:
        trained = subject.train_briefly(without_information(subject.examples), steps=steps)
        losses = losses_of(subject, trained.model, without_information(test))
    except (RuntimeError, ValueError, IndexError, ZeroDivisionError):
        return None
    curves["zeroed inputs"] = trained.curve
    return losses
