"""The trainer's first steps against a loop in plain torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from training_core.checks.contract import Check, Finding, NotApplicable
from training_core.checks.machinery.comparing import Difference, disturb, worst
from training_core.checks.machinery.mistakes import likeliest
from training_core.checks.machinery.plain_loop import PlainRun, plain_training
from training_core.checks.machinery.small_runs import (
    WithoutAugmentation,
    chance_by_call,
    gradient_norm,
    short,
    state_of,
    trainer,
    twins,
    weight_norm,
)
from training_core.checks.subject import Subject
from training_core.examples import Examples
from training_core.settings import TrainingSettings

_STEPS = 6
_ROWS = 32  # a step
_LOSS = 1e-4  # share of the loss, which is reported in fp32


@dataclass(frozen=True)
class _Pass:
    """One comparison."""

    said: str
    training: TrainingSettings


class StepsEqualPlainCode(Check):
    """Made twice: with the planned optimiser, and with SGD, to which a gradient's size matters."""

    name = "steps_equal_plain_code"
    looks_at = "a few steps of the trainer give the weights that a plain loop gives"

    def look(self, subject: Subject) -> Finding:
        examples = _examples(subject)
        furthest: list[Difference] = []
        for each in _passes(subject, examples):
            finding, difference = self._compare(subject, each, examples)
            if finding is not None:
                return finding
            furthest += [] if difference is None else [difference]
        if not furthest:
            return self.warned(
                f"after {_STEPS} steps rounding decides where the weights are",
                advice="lower the learning rate: training is chaotic",
            )
        most = max(furthest, key=lambda difference: difference.beyond)
        return self.passed(
            f"after {_STEPS} steps, with and without accumulation, {most.name} is furthest from "
            f"where plain code gets: {most.apart:.1e} of its way",
            measured=most.apart,
            limit=most.limit,
        )

    def _compare(
        self, subject: Subject, each: _Pass, examples: Examples
    ) -> tuple[Finding | None, Difference | None]:
        model, plain, noisy = twins(subject, 3)
        before = state_of(model)
        task = WithoutAugmentation(subject.task)
        for other in (model, plain, noisy):
            chance_by_call(other)
        run = plain_training(task, plain, examples, each.training, steps=_STEPS)
        if not all(map(math.isfinite, (*run.losses, *run.norms))):
            raise NotApplicable("loss or gradient is not finite within the first steps")
        plain_training(task, disturb(noisy), examples, each.training, steps=_STEPS)
        outcome = trainer(task, model, examples, settings=each.training).fit()
        found, expected, disturbed = state_of(model), state_of(plain), state_of(noisy)
        difference = worst(found, expected, before=before, disturbed=disturbed)
        if difference is not None and difference.beyond > 1:
            cause = _still(found, expected, before) or likeliest(
                subject, each.training, examples, found=found, before=before, steps=_STEPS
            )
            return self.failed(
                f"after {outcome.steps} steps ({each.said}) {difference.name} is not where plain "
                f"code gets it: {difference.apart:.1%} of its way apart{cause}",
                measured=difference.apart,
                limit=difference.limit,
                advice="look at what the trainer does with the gradient between backward and the "
                "optimiser's step, and at the task's hooks",
            ), difference
        reported = [point.loss for point in outcome.curve]
        return self._losses(each, reported, run), difference

    def _losses(self, each: _Pass, reported: list[float], run: PlainRun) -> Finding | None:
        for step, (ours, theirs) in enumerate(zip(reported, run.losses, strict=False)):
            limit = _LOSS * max(abs(theirs), abs(run.losses[0]))
            if not abs(ours - theirs) <= limit:
                return self.failed(
                    f"at step {step} ({each.said}) the trainer reports a loss of {ours:.6g}, and "
                    f"plain code gets {theirs:.6g} with the same weights",
                    measured=abs(ours - theirs),
                    limit=limit,
                    advice="look at how the trainer sums losses over microbatches and units",
                )
        return None


def _examples(subject: Subject) -> Examples:
    """Two batches and a half: epochs end within the run, and with a short step."""
    size = _size(len(subject.examples))
    if size < 4:
        raise NotApplicable(f"{len(subject.examples)} examples are too few for two batches")
    return subject.batch(2 * size + (size // 2 if size >= 8 else 0))


def _size(count: int) -> int:
    return min(_ROWS, count * 2 // 5 // 4 * 4)


def _passes(subject: Subject, examples: Examples) -> list[_Pass]:
    """Return the planned optimiser whose clipping is at work, and SGD that accumulates."""
    common = {"batch_size": _size(len(examples)), "evaluate_every": _STEPS // 2}
    planned = subject.training.optimiser.model_copy(update={"clip_percentile": 0.0})
    (model,) = twins(subject, 1)
    weights = weight_norm(model)
    norm = gradient_norm(subject, model, examples.take(slice(0, common["batch_size"])))
    clipping = planned.model_copy(update={"clip_norm": min(planned.clip_norm, norm / 2)})
    sgd = planned.model_copy(
        update={
            "name": "sgd",
            "clip_norm": 0.0,
            "lr": 1e-3 * weights / norm,  # moves the weights by some thousandths
            "weight_decay": max(planned.weight_decay, 0.1),  # enough to be seen in six steps
        }
    )
    return [
        _Pass(
            f"with {planned.name}",
            short(subject.training, steps=_STEPS, **common, optimiser=clipping),
        ),
        _Pass(
            "with sgd and 2 microbatches a step",
            short(subject.training, steps=_STEPS, **common, optimiser=sgd, accumulation=2),
        ),
    ]


def _still(
    found: Mapping[str, Tensor], expected: Mapping[str, Tensor], before: Mapping[str, Tensor]
) -> str:
    """Say which tensors stayed where they were, though plain code moves them."""
    moved = [name for name in expected if not torch.equal(expected[name], before[name])]
    still = [name for name in moved if torch.equal(found[name], before[name])]
    if not still:
        return ""
    if len(still) == len(moved):
        return "; no weight moved at all"
    return f"; {', '.join(still[:3])}{' and others' if still[3:] else ''} did not move at all"
