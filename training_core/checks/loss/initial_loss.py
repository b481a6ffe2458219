"""The loss before training, against what theory says of a network that knows nothing."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from training_core.checks.contract import Check, Finding
from training_core.checks.free_outputs import best_constant
from training_core.checks.loss.rows import rows_within
from training_core.checks.subject import Subject
from training_core.examples import Examples
from training_core.prior_bias import prior_outputs
from training_core.untrained import untrained_outputs

_SEEDS = 8
# An embedding that is tied to the output at torch's own init, N(0, 1), begins at three to six times
# the log of the vocabulary and recovers: poor, not broken.
_FAR = {"sequence": 28.0}
_FAR_ELSEWHERE = 8.0  # tolerances above theory: three times its loss, with the usual 0.25


class InitialLoss(Check):
    """Loss at initialisation (Karpathy, "A Recipe for Training Neural Networks", 2019)."""

    name = "initial_loss"
    looks_at = "the untrained network loses what one loses that knows nothing of inputs and labels"

    def look(self, subject: Subject) -> Finding:
        examples = rows_within(subject, most=512, values=500_000)
        runs = [untrained_outputs(subject.build(seed), examples) for seed in range(_SEEDS)]
        theory = _Theory(subject, runs[0], examples)
        losses = [float(subject.loss(outputs, examples)) for outputs in runs]
        loss = sum(losses) / len(losses)
        words = f"the untrained network loses {loss:.4g}; {theory.words}"
        if not math.isfinite(loss):
            return self.failed(
                f"{words}: not a number, or infinite",
                advice="look for a logarithm or a division of 0, and at the scale of the inputs",
            )
        if theory.unbounded:
            return self.failed(
                f"{words}: the more of a constant output, the lower, without end",
                measured=loss,
                advice="look at the sign of the loss, and whether targets are what it expects",
            )
        low = theory.constant - subject.settings.init_tolerance * abs(theory.constant)
        if loss < low:
            return self.failed(
                f"{words}: it is better than any network without training can be",
                measured=loss,
                limit=low,
                advice="is the label among the features, or the loss averaged over the wrong axis?",
            )
        gains = _gains_of_true_labels(subject, runs, examples)
        if _always(gains):
            return self.warned(
                f"{words}; with labels dealt to other rows it loses {sum(gains) / len(gains):.4g} "
                f"more, whatever the seed ({_SEEDS} tried): it knows labels before training",
                measured=loss,
                advice="take the label out of the inputs, unless training starts from weights or "
                "from a rule that know it on purpose",
            )
        return self._height(subject, loss, theory, words)

    def _height(self, subject: Subject, loss: float, theory: _Theory, words: str) -> Finding:
        """Is it too high?"""
        tolerance, kind = subject.settings.init_tolerance, subject.task.kind
        high = theory.expected + tolerance * abs(theory.expected)
        far = theory.expected + _FAR.get(kind, _FAR_ELSEWHERE) * tolerance * abs(theory.expected)
        prior_set = subject.training.bias_from_prior
        said: dict[str, Any] = {"measured": loss, "limit": high}
        if kind != "regression" and loss > far:
            return self.failed(
                f"{words}: it is sure of itself, and wrong",
                advice="look at the bias after it was set from the prior, and what follows it"
                if prior_set
                else "scale the inputs to about 1, and the last layer's initial weights down",
                **said,
            )
        if kind == "regression" and not prior_set and loss > 4 * theory.constant > 0:
            return self.warned(
                f"{words}: the target is far from 0 or from the outputs' scale, and the first "
                "steps only learn that",
                measured=loss,
                limit=4 * theory.constant,
                advice="standardise the target, or set training.bias_from_prior",
            )
        if loss > high:
            return self.warned(
                f"{words}: the first steps only unlearn that",
                advice="scale the last layer's initial weights down",
                **said,
            )
        return self.passed(words, **said)


class _Theory:
    """What outputs lose that do not depend on the inputs.

    Attributes:
        constant: The best of them.
        zero: All zeros.
        expected: At most so much is expected: of zeros, or of the prior where the bias is set.
        unbounded: The loss of constants has no floor.
    """

    def __init__(self, subject: Subject, outputs: Tensor, examples: Examples) -> None:
        best = best_constant(subject.task, outputs, examples)
        self.constant = float(subject.loss(best, examples))
        self.zero = float(subject.loss(torch.zeros_like(outputs), examples))
        self.words = f"the best constant loses {self.constant:.4g}, zeros {self.zero:.4g}"
        self.expected = max(self.zero, self.constant)
        if subject.training.bias_from_prior:
            prior = prior_outputs(subject.task.kind, outputs, examples.target)
            expected = float(subject.loss(prior.expand(outputs.shape), examples))
            self.expected = max(expected, self.constant)
            self.words += f", and its bias is set for {expected:.4g}, the prior's loss"
        further = float(subject.loss(10 * best, examples))
        self.unbounded = self.constant < min(0.0, self.zero) and further < 5 * self.constant


def _gains_of_true_labels(subject: Subject, runs: list[Tensor], examples: Examples) -> list[float]:
    """Return by seed how much less is lost than with labels of other rows."""
    gains = []
    for outputs in runs:
        true = subject.task.loss(outputs, examples.target).double()
        others = [
            subject.task.loss(outputs, examples.target.roll(by, 0)).double()
            for by in (1, len(true) // 3 + 1, len(true) // 2 + 1)
        ]
        gains.append(float((torch.stack(others).mean(0) - true).sum() / _units(examples)))
    return gains


def _units(examples: Examples) -> float:
    return float(len(examples) if examples.units is None else examples.units.sum())


def _always(gains: list[float]) -> bool:
    """Are gains above 0 whatever the seed?

    Single networks are better or worse by chance, since random functions of inputs go along with
    labels or against them, with equal chance: so seeds are what is random here, not rows. Six
    standard errors of eight seeds come once in some 4,000 trials (t with 7 degrees of freedom).
    """
    values = torch.tensor(gains, dtype=torch.float64)
    mean, error = float(values.mean()), float(values.std()) / math.sqrt(len(gains))
    return bool((values > 0).all()) and mean > 6 * error and mean > 1e-6
