"""How predictions of a few held-back rows change while the network learns.

"Visualise prediction dynamics": Karpathy, A Recipe for Training Neural Networks (2019).
"""

from __future__ import annotations

import torch
from torch import Tensor

from training_core.checks.contract import Check, Finding, Heat, NotApplicable
from training_core.checks.dynamics.constant import constant_loss
from training_core.checks.dynamics.watched import watched
from training_core.checks.losses import unit_losses_of
from training_core.checks.subject import Subject
from training_core.examples import Examples
from training_core.task import PADDING

_STILL = 1e-6  # of the predictions' size; float32 rounds at 1e-7
_COLLAPSED = 1e-4
_WILD = 1.0  # change from one instant to the next over the spread of the rows


class PredictionDynamics(Check):
    """Looks at a fixed batch at some twelve instants of a short training."""

    name = "prediction_dynamics"
    looks_at = "predictions move, differ between rows and settle"
    costs = "training"

    def look(self, subject: Subject) -> Finding:
        seen = watched(subject)
        if len(seen.fixed) < 2:
            raise NotApplicable("there are not two held-back rows to compare")
        steps = list(seen.predictions)
        every = torch.stack([p.reshape(len(p), -1) for p in seen.predictions.values()])
        first, last = every[0], every[-1]
        heat = _heat(subject.task.kind, seen.fixed, seen.predictions)
        size = float(last.abs().mean()) + 1e-12
        moved = float((last - first).abs().max())
        spread = float(last.std(0).mean())
        if not bool(torch.isfinite(every).all()):
            return self.failed(
                "predictions are not finite after a few steps",
                advice="look at the inputs, the loss and the learning rate",
                heat=heat,
            )
        if moved <= _STILL * size:
            return self.failed(
                f"predictions move by {moved:.2g} in {steps[-1]} steps: nothing that is trained "
                "reaches them",
                advice="see that the optimiser has the parameters, that the graph is not detached "
                "and that the learning rate is not 0",
                measured=moved,
                limit=_STILL * size,
                heat=heat,
            )
        scale = max(float(first.std(0).mean()), float((last - first).abs().mean()), _STILL * size)
        if spread <= _COLLAPSED * scale and _differ(seen.fixed):
            return self._collapsed(subject, spread, heat)
        tail = every[len(every) // 2 :]
        jumps = _to_and_fro(tail) / max(spread, 1e-12)
        said = {"measured": jumps, "limit": _WILD, "heat": heat}
        if jumps > _WILD:
            return self.warned(
                f"predictions jump: from one look to the next they go to and fro by {jumps:.2g} "
                "times what tells the rows apart",
                advice="see whether a lower learning rate or a larger batch does better",
                **said,
            )
        return self.passed(
            f"predictions move by up to {moved:.2g} in {steps[-1]} steps, differ between rows and "
            f"go to and fro by {jumps:.2g} of what tells rows apart",
            **said,
        )

    def _collapsed(self, subject: Subject, spread: float, heat: Heat) -> Finding:
        rows = subject.batch(512, seed=5)
        losses = unit_losses_of(subject, watched(subject).model, rows)
        loss, constant = float(losses.mean()), constant_loss(subject, rows)
        words = (
            f"after training all rows get the same prediction (spread {spread:.2g}), though their "
            f"inputs differ: the loss is {loss:.4g}, and {constant:.4g} for the best constant"
        )
        advice = "see that the inputs reach the outputs, and that no layer is dead"
        if loss > 0.98 * constant:
            return self.failed(words, advice=advice, measured=spread, heat=heat)
        return self.warned(words, advice=advice, measured=spread, heat=heat)


def _to_and_fro(predictions: Tensor) -> float:
    """Return the mean change from one instant to the next that is not on the way to the last.

    What all rows share, such as the approach to the labels' rate, is left out.
    """
    apart = predictions - predictions.mean(1, keepdim=True)
    changes = (apart[1:] - apart[:-1]).abs().sum(0)
    return float((changes - (apart[-1] - apart[0]).abs()).mean()) / (len(apart) - 1)


def _differ(examples: Examples) -> bool:
    """Whether the rows' inputs are not all the same."""
    return any(bool((array != array[:1]).any()) for array in examples.arrays.values())


def _heat(kind: str, fixed: Examples, predictions: dict[int, Tensor]) -> Heat:
    """One number a row and instant: what a person follows best for this kind of task."""
    columns = [_figure(kind, p, fixed.target) for p in predictions.values()]
    values = torch.stack(columns, 1)
    labels = [_label(kind, target) for target in fixed.target]
    return Heat(
        rows=[f"row {i}{label}" for i, label in enumerate(labels)],
        columns=[str(step) for step in predictions],
        values=[[v if v - v == 0 else None for v in row] for row in values.tolist()],
    )


def _figure(kind: str, prediction: Tensor, target: Tensor) -> Tensor:
    """Return the probability of what is right, where there are several outputs; float [N]."""
    if kind == "multiclass" and prediction.dim() == 2:
        return prediction.gather(1, target[:, None]).squeeze(1)
    if kind == "sequence" and prediction.dim() == 3:
        counts = target != PADDING
        right = prediction.gather(2, target.clamp(min=0)[:, :, None]).squeeze(2)
        return (right * counts).sum(1) / counts.sum(1).clamp(min=1)
    if kind == "multilabel" and prediction.shape == target.shape:
        return torch.where(target > 0.5, prediction, 1 - prediction).mean(1)
    return prediction.flatten(1).mean(1) if prediction.dim() > 1 else prediction


def _label(kind: str, target: Tensor) -> str:
    return f", {float(target):.4g}" if kind in ("binary", "regression", "multiclass") else ""
