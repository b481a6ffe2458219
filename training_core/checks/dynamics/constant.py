"""The loss of the best outputs that do not depend on the inputs: the floor of all comparisons."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from training_core.checks.dynamics.losses import rows_at_once
from training_core.checks.subject import Subject
from training_core.evaluation import outputs_of
from training_core.examples import Examples

_ITERATIONS = 30


def best_constant(subject: Subject, examples: Examples) -> float:
    """Return the mean loss a unit of the best constant output, NaN where none was found.

    The same output for every row, and for every position of a sequence, is fitted by L-BFGS to the
    task's own loss, so that it holds for any loss. It starts at the target's mean in a regression,
    where the scale may be any, and at 0 elsewhere.
    """
    model = subject.build(0)
    examples = examples.take(slice(0, rows_at_once(subject, model, examples)))
    like = outputs_of(model, examples.take(slice(0, 2)), device=subject.device)
    shape = like.shape[-1:] if subject.task.kind == "sequence" else like.shape[1:]
    start, scale = torch.zeros(shape), 1.0
    if subject.task.kind == "regression":
        target = examples.target.float()
        start = start + target.mean()
        scale = float(target.std()) or 1.0
    shift = torch.zeros(shape, requires_grad=True)
    rows = (len(examples), *like.shape[1:])
    optimiser = torch.optim.LBFGS(
        [shift], max_iter=_ITERATIONS, line_search_fn="strong_wolfe", tolerance_grad=1e-6
    )

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = subject.loss((start + scale * shift).expand(rows), examples)
        if value.requires_grad:
            value.backward()  # type: ignore[no-untyped-call]
        return value

    first = float(loss().detach())
    optimiser.step(loss)  # type: ignore[no-untyped-call]
    last = float(loss().detach())
    return min((v for v in (first, last) if math.isfinite(v)), default=math.nan)
