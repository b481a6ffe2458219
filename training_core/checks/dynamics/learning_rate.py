"""Is the planned learning rate in the right region? A range test about it, from the same weights.

After Smith 2017 (arXiv:1506.01186), but with one short training a rate: what a rate does after
others says little of what it does from the start.
"""

from __future__ import annotations

import math

import torch

from training_core.checks.contract import Check, Finding
from training_core.checks.dynamics.constant import constant_loss
from training_core.checks.dynamics.rates import (
    Probe,
    affordable_steps,
    errors_ahead,
    planned_path,
    probe,
    share_of_way,
)
from training_core.checks.matrices import weight_matrices
from training_core.checks.short_training import train_briefly
from training_core.checks.subject import Subject

_STEPS = 100
_SECONDS = 4.0  # of all probes
# Standard errors of the paired difference: rows of a batch are not quite independent, and weights
# jitter, so more than the usual 2 or 3.
_BEYOND_NOISE = 4.0
# Of six small tasks of all kinds, with AdamW at 0.001 to 0.003, SGD at 0.01 to 0.05 and Muon at
# 0.02, the planned run made 0.21 or more of the way of the best probe; at a hundredth of these
# rates 0.13 or less.
_HARDLY = 0.15
_SHORT = 0.33
# First update over first weights, times the planned steps: 0.6 of a linear model with AdamW at
# 0.001 that needs more than 260 steps, and is healthy; 0.2 or less at a hundredth of a good rate.
_REACH = 0.3
# Share of the best way that a rate which is too high leaves; 0.72 on flights at a hundredfold.
_HARMED = 0.75
# First update over first weights: 0.01 to 0.2 at healthy rates, 0.5 to 3 at AdamW's 0.1 to 0.3.
_AS_LARGE_AS_WEIGHTS = 0.5


class LearningRate(Check):
    """Trains briefly at hundredths to hundredfolds of the planned rate."""

    name = "learning_rate"
    looks_at = "the planned learning rate is neither far too high nor far too low for its steps"
    costs = "training"

    def look(self, subject: Subject) -> Finding:
        seconds = _SECONDS / 5
        steps = affordable_steps(subject, most=_STEPS, least=40, seconds=seconds)
        probes = {factor: probe(subject, factor, steps=steps) for factor in (1.0, 0.1, 10.0)}
        if not _clearly_best(probes):
            probes[0.01] = probe(subject, 0.01, steps=steps)
        path = planned_path(subject)
        if share_of_way(_planned_end(probes, path), probes) < 0.75:
            probes[100.0] = probe(subject, 100.0, steps=steps)
        return self._judge(subject, dict(sorted(probes.items())), path=path)

    def _judge(self, subject: Subject, probes: dict[float, Probe], *, path: float) -> Finding:
        rate = subject.training.optimiser.lr
        said: dict[str, object] = {
            "curves": {f"{rate * factor:.2g}": p.curve for factor, p in probes.items()},
            "table": [
                {"learning rate": rate * f, "times the planned": f, "final loss": p.loss}
                for f, p in probes.items()
            ],
        }
        planned, steps = probes[1.0], probes[1.0].steps[-1]
        lower = {f: p for f, p in probes.items() if f < 1 and not p.diverged}
        if planned.diverged:
            if lower:
                return self.failed(
                    f"at the planned learning rate of {rate:g} the loss is not finite after "
                    f"{steps} steps; at {rate * max(lower):g} it is",
                    advice=f"lower training.optimiser.lr to {rate * max(lower):g} or less",
                    **said,
                )
            return self.warned(
                "the loss is not finite at any learning rate, so none can be judged",
                advice="look at the inputs and the loss first",
                **said,
            )
        if all(errors_ahead(planned.losses[0], p.final) < _BEYOND_NOISE for p in probes.values()):
            return self.warned(
                f"nothing is learned in {steps} steps at {rate * min(probes):g} to "
                f"{rate * max(probes):g}, so the learning rate cannot be judged",
                advice="see whether the inputs say anything about the labels",
                **said,
            )
        found = self._too_high(subject, probes, said) or self._too_low(subject, probes, path, said)
        if found:
            return found
        return self.passed(
            f"in {steps} steps the planned learning rate of {rate:g} makes "
            f"{share_of_way(planned.loss, probes):.0%} of the way that the best of "
            f"{len(probes)} rates makes",
            measured=rate,
            **said,
        )

    def _too_high(
        self, subject: Subject, probes: dict[float, Probe], said: dict[str, object]
    ) -> Finding | None:
        rate, planned = subject.training.optimiser.lr, probes[1.0]
        lower = {f: p for f, p in probes.items() if f < 1 and not p.diverged}
        if not lower:
            return None
        best = min(lower, key=lambda factor: lower[factor].loss)
        ahead = errors_ahead(planned.final, lower[best].final)
        first = first_update(subject)
        words = (
            f"after {planned.steps[-1]} steps the loss is {planned.loss:.4g} at the planned "
            f"learning rate of {rate:g}, and {lower[best].loss:.4g} at {rate * best:g}"
        )
        advice = f"lower training.optimiser.lr to about {rate * best:g}"
        said = {"measured": rate, "limit": rate * best, **said}
        way = share_of_way(planned.loss, probes)
        if ahead > _BEYOND_NOISE and way < _HARMED * share_of_way(lower[best].loss, probes):
            return self.failed(f"{words}: it is far too high", advice=advice, **said)
        if (
            first > _AS_LARGE_AS_WEIGHTS
            and 0.01 in lower
            and share_of_way(probes[0.1].loss, probes) > 0.97 * way
            and share_of_way(probes[0.01].loss, probes) > 0.35 * way
        ):
            return self.failed(
                f"the first update is {first:.2g} times as large as the weights, and {words}: it "
                "is far too high",
                advice=advice,
                **said,
            )
        if ahead > _BEYOND_NOISE:
            return self.warned(f"{words}: it may be too high", advice=advice, **said)
        return None

    def _too_low(
        self,
        subject: Subject,
        probes: dict[float, Probe],
        path: float,
        said: dict[str, object],
    ) -> Finding | None:
        rate, steps = subject.training.optimiser.lr, probes[1.0].steps[-1]
        higher = {f: p for f, p in probes.items() if f > 1 and not p.diverged}
        if not higher:
            return None
        best = min(higher, key=lambda factor: higher[factor].loss)
        end = _planned_end(probes, path)
        way = share_of_way(end, probes)
        words = (
            f"the whole planned run, {subject.steps} steps at {rate:g} and what its schedule "
            f"leaves of it, gets to a loss of about {end:.4g}; {steps} steps at {rate * best:g} "
            f"get to {higher[best].loss:.4g}"
        )
        advice = f"raise training.optimiser.lr towards {rate * best:g}, or train for longer"
        said = {"measured": rate, "limit": rate * best, **said}
        far_off = (
            best == 100.0
            and 10.0 in higher
            and share_of_way(higher[10.0].loss, probes) < 0.9
            and errors_ahead(higher[10.0].final, higher[100.0].final) > _BEYOND_NOISE
        )
        ahead = errors_ahead(probes[1.0].final, higher[best].final) > _BEYOND_NOISE
        if far_off and ahead:
            constant = constant_loss(subject, subject.batch(512, seed=2))
            useless = end > constant > higher[best].loss
            hardly_moves = first_update(subject) * path < _REACH
            if hardly_moves and (way < _HARDLY or (way < 0.5 and useless)):
                return self.failed(f"{words}: it is far too low", advice=advice, **said)
        if ahead and way < _SHORT:
            return self.warned(f"{words}: it may be too low", advice=advice, **said)
        return None


def first_update(subject: Subject) -> float:
    """Return the median over weight matrices of the first update's norm over the weights'."""
    model = subject.build(0)
    weights = {name: w.detach().clone() for name, w in weight_matrices(model).items()}
    train_briefly(
        subject.task,
        model,
        subject.examples,
        steps=1,
        batch_size=subject.batch_size,
        training=subject.training,
    )
    after = weight_matrices(model)
    ratios = [
        float((after[name].detach() - before).norm() / before.norm())
        for name, before in weights.items()
        if float(before.norm()) > 0  # a last layer that starts at zero
    ]
    return float(torch.tensor(ratios).median()) if ratios else 0.0


def _clearly_best(probes: dict[float, Probe]) -> bool:
    """Whether a tenth of the rate is so far behind that the planned one cannot be too high."""
    planned, tenth = probes[1.0], probes[0.1]
    behind = share_of_way(tenth.loss, probes) < 0.9 * share_of_way(planned.loss, probes)
    return behind and errors_ahead(tenth.final, planned.final) > _BEYOND_NOISE


def _planned_end(probes: dict[float, Probe], path: float) -> float:
    """Return the loss at the planned run's end, as far as the probes can tell.

    Weights go as far in one step as in ten at a tenth of the rate, so a run of many small steps
    ends about where a probe at a higher rate is after the same way; the most hopeful guess counts.
    """
    guesses = [
        p.at(path / factor) for factor, p in probes.items() if factor >= 1 and not p.diverged
    ]
    return min(guesses, default=math.nan)
