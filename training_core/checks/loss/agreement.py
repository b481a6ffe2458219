"""Do predictions say what the labels say?"""

from __future__ import annotations

import torch
from torch import Tensor

from training_core.task import PADDING, Kind

# Of a target's deviation: a loss that stops caring a little before the target is no bug.
CLOSE = 0.1


def sureness(kind: Kind, predictions: Tensor, target: Tensor) -> float:
    """Return the mean probability of the label, of all but regressions."""
    if kind in ("binary", "multilabel"):
        shaped = predictions.reshape(target.shape)
        return float(torch.where(target >= 0.5, shaped, 1 - shaped).mean())
    real = target != PADDING
    truth = torch.where(real, target, 0).long().unsqueeze(-1)
    return float(predictions.gather(-1, truth).squeeze(-1)[real].mean())


def agrees(kind: Kind, predictions: Tensor, target: Tensor) -> Tensor:
    """Return each example's share of right predictions, float32 [N].

    Labels within 0.05 of one half are right whatever is predicted, and so is padding.
    """
    if kind == "multiclass":
        return (predictions.argmax(1) == target).float()
    if kind == "sequence":
        real = target != PADDING
        right = (predictions.argmax(2) == target) & real
        return torch.where(real.any(1), right.sum(1) / real.sum(1).clamp_min(1), 1.0)
    if kind == "regression":
        spread = float(target.float().std()) if len(target) > 1 else 0.0
        close = CLOSE * spread + 1e-4 * float(target.float().abs().max())
        return ((predictions.reshape(target.shape) - target).abs() <= close).float()
    shaped = predictions.reshape(target.shape)
    right = ((shaped >= 0.5) == (target >= 0.5)) | ((target - 0.5).abs() < 0.05)
    return right.float().reshape(len(target), -1).mean(1)
