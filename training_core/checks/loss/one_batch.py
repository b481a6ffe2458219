"""One batch learned by heart, or why it cannot be."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from training_core.checks.contract import Check, Finding
from training_core.checks.loss.by_heart import Attempt, Bounds, learn_by_heart
from training_core.checks.loss.rescaled import Rescaled, wanted_scale
from training_core.checks.loss.rows import balanced_rows_within
from training_core.checks.subject import Subject
from training_core.errors import ConfigurationError
from training_core.examples import Examples
from training_core.task import PADDING, Task
from training_core.untrained import untrained_outputs

_NOTHING = 0.03  # of the way from the best constant: as much as a few weights gain from noise
_VALUES = 20_000  # of a batch's outputs: a small transformer's 400 steps then take some seconds


class OneBatch(Check):
    """Overfit one batch (Karpathy, "A Recipe for Training Neural Networks", 2019)."""

    name = "one_batch"
    looks_at = "a few rows are learned by heart, down to what equal inputs leave open"
    costs = "training"

    def look(self, subject: Subject) -> Finding:
        batch = balanced_rows_within(subject, most=subject.settings.overfit_rows, values=_VALUES)
        outputs = untrained_outputs(subject.build(), batch)
        bounds = Bounds.of(subject.task, outputs, batch)
        # overfit_loss is meant for a yes or no, where a constant loses log 2; others in proportion
        share = subject.settings.overfit_loss / math.log(2)
        limit = bounds.floor + share * (bounds.constant - bounds.base)
        try:
            attempts = _attempts(subject, batch, outputs, limit)
        except ConfigurationError as error:
            return self.failed(f"nothing can be learned: {error.what}", advice=error.hint)
        name, best = min(attempts.items(), key=lambda tried: _reached(tried[1]))
        planned = min((a for key, a in attempts.items() if "wide" not in key), key=_reached)
        if "wide" in name and bounds.gained(planned.best) < _NOTHING:
            best = planned  # which learns nothing at all is not too small, but broken
        said: dict[str, Any] = {
            "measured": best.best if math.isfinite(best.best) else None,
            "limit": limit,
            "curves": {name: attempt.curve for name, attempt in attempts.items()},
        }
        words = (
            f"{len(batch)} rows are learned to a loss of {best.best:.4g} in {len(best.curve)} "
            f"steps (limit {limit:.4g}; the best constant loses {bounds.constant:.4g})"
        )
        if best.best <= limit:
            if "units" in name:
                return self.warned(
                    f"{words}, but only with outputs in units of the target",
                    advice="standardise the target: the network has far to go to its scale",
                    **said,
                )
            if "wide" in name:
                return self.warned(
                    f"{words} by a network four times as wide, not by the planned one, which is "
                    "too small to learn them by heart",
                    advice="try a wider network, if the planned training underfits",
                    **said,
                )
            return self.passed(words if name == "planned rate" else f"{words}, {name}", **said)
        return self._not_learned(subject, batch, best, bounds, words, said)

    def _not_learned(
        self,
        subject: Subject,
        batch: Examples,
        best: Attempt,
        bounds: Bounds,
        words: str,
        said: dict[str, Any],
    ) -> Finding:
        """Say why, as far as it shows."""
        if best.outputs is None:
            return self.failed(
                f"{words}: the loss has no gradient",
                advice="look for detach, no_grad or numpy between parameters and the loss",
                **said,
            )
        if not math.isfinite(best.best) or best.diverged:
            return self.failed(
                f"{words}: the loss grows at the planned learning rate, and at a tenth of it",
                advice="lower training.optimiser.lr, and look at the sign of the loss",
                **said,
            )
        if subject.task.kind != "regression" and _bounded(best.outputs):
            return self.failed(
                f"{words}: outputs never leave ±1, where logits of 5 and more are needed: they "
                "are squashed before the loss squashes them",
                advice="return logits from the network: no sigmoid, softmax or tanh at its end",
                **said,
            )
        gained = bounds.gained(best.best)
        if gained < _NOTHING:
            return self.failed(
                f"{words}: it learns no more than the labels' average{_blindness(subject, best)}",
                advice="look for a detached graph, frozen parameters, a loss that does not use the "
                "outputs, or labels that change from step to step",
                **said,
            )
        ample = _trainable(subject) >= 10 * _answers(subject.task, batch)
        if ample and gained < 0.5 and not _falling(best, bounds):
            return self.failed(
                f"{words}: it stalls {gained:.0%} of the way, with {_trainable(subject)} "
                f"parameters for {_answers(subject.task, batch)} answers",
                advice="look for inputs that do not reach the outputs, labels that do not belong "
                "to their rows, or a layer that lets little through",
                **said,
            )
        return self.warned(
            f"{words}: it learns ({gained:.0%} of the way), but not by heart",
            advice="try a wider network, or more steps (checks.overfit_steps)",
            **said,
        )


def _attempts(
    subject: Subject, batch: Examples, outputs: Tensor, limit: float
) -> dict[str, Attempt]:
    """Try until one succeeds: other rates, the target's units, a wider network."""
    tried: dict[str, Attempt] = {}

    def learned(name: str, model: nn.Module, *, lr_factor: float) -> bool:
        tried[name] = learn_by_heart(
            subject.task,
            model,
            batch,
            training=subject.training,
            lr_factor=lr_factor,
            steps=subject.settings.overfit_steps,
            stop_below=limit,
        )
        return tried[name].best <= limit or tried[name].outputs is None

    if learned("planned rate", subject.build(), lr_factor=1):
        return tried
    # a rate that suits large batches may be slow on a small one
    factor = 0.1 if tried["planned rate"].diverged else 10.0
    if learned(f"at {factor:g} times the planned rate", subject.build(), lr_factor=factor):
        return tried
    if subject.task.kind == "regression":
        scale, shift = wanted_scale(subject.task, outputs, batch)
        for rate in (1.0, 10.0):
            scaled = Rescaled(subject.build(), scale=scale, shift=shift)
            if learned(f"in units of the target, at {rate:g} times", scaled, lr_factor=rate):
                return tried
    wider = subject.task.larger(4)
    if wider is not None:
        for rate in (1.0, factor):
            torch.manual_seed(0)
            model = wider.build_model(subject.preprocessor)
            if learned(f"four times as wide, at {rate:g} times", model, lr_factor=rate):
                return tried
    return tried


def _reached(attempt: Attempt) -> float:
    return attempt.best if math.isfinite(attempt.best) else math.inf


def _bounded(outputs: Tensor) -> bool:
    """Have logits gone to ±1 and no further?"""
    return 0.8 < float(outputs.abs().max()) <= 1 + 1e-6


def _blindness(subject: Subject, best: Attempt) -> str:
    """Say which of the causes shows."""
    assert best.outputs is not None
    parameters = dict(subject.build().named_parameters())
    frozen = [name for name, parameter in parameters.items() if not parameter.requires_grad]
    if frozen:
        return f"; {len(frozen)} of {len(parameters)} parameters are frozen ({frozen[0]}, …)"
    outputs = best.outputs.flatten(1) if best.outputs.ndim > 1 else best.outputs[:, None]
    if float((outputs - outputs[:1]).abs().max()) < 1e-5 * (1 + float(outputs.abs().max())):
        return "; outputs are the same for every row: inputs do not reach them"
    return ""


def _falling(attempt: Attempt, bounds: Bounds) -> bool:
    """Would more steps have helped: did the last fifth of them gain more than a hundredth?"""
    values = [value for _, value in attempt.curve]
    fifth = max(1, len(values) // 5)
    earlier, last = min(values[:-fifth] or values), min(values[-fifth:])
    return bounds.gained(last) - bounds.gained(earlier) > 0.01


def _trainable(subject: Subject) -> int:
    return sum(p.numel() for p in subject.build().parameters() if p.requires_grad)


def _answers(task: Task, batch: Examples) -> int:
    return int((batch.target != PADDING).sum()) if task.kind == "sequence" else batch.target.numel()
