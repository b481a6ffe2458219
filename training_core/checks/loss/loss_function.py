"""The loss by itself: laws of its contract, and where outputs go that follow it freely."""

from __future__ import annotations

import dataclasses

from torch import Tensor

from training_core.checks.contract import Check, Finding
from training_core.checks.loss.by_itself import (
    Broken,
    examples_are_apart,
    is_repeatable,
    nothing_is_written,
    predictions_are_probabilities,
    shapes_fit,
    values_are_per_example,
)
from training_core.checks.loss.determined import loss_determines_predictions
from training_core.checks.loss.positions import (
    losses_are_summed_over_units,
    padding_counts_for_nothing,
)
from training_core.checks.loss.recomputed import metrics_say_what_they_are_called
from training_core.checks.loss.rows import balanced_rows_within
from training_core.checks.loss.slope import slope_leads_to_the_label
from training_core.checks.subject import Subject
from training_core.examples import Examples
from training_core.task import Task
from training_core.untrained import untrained_outputs

# What must hold before anything else can be asked; then, in the order in which they explain most.
_FIRST = (
    shapes_fit,
    nothing_is_written,
    values_are_per_example,
    predictions_are_probabilities,
)
_THEN = (
    examples_are_apart,
    slope_leads_to_the_label,
    loss_determines_predictions,
    padding_counts_for_nothing,
    losses_are_summed_over_units,
    metrics_say_what_they_are_called,
)


class LossFunction(Check):
    """Loss, metrics and predictions, without a network."""

    name = "loss_function"
    looks_at = "each example's loss is its own, and falls to its floor where the label is predicted"

    def look(self, subject: Subject) -> Finding:
        examples = balanced_rows_within(subject, most=64, values=40_000)
        outputs = untrained_outputs(subject.build(), examples)
        broken = laws_broken(subject.task, outputs, examples)
        if not broken:
            return self.passed(
                f"each of {len(examples)} examples' loss is its own; outputs that follow it "
                "predict their labels; metrics agree with plain numpy"
            )
        worst = next((law for law in broken if law.verdict == "fail"), broken[0])
        said = {f.name: getattr(worst, f.name) for f in dataclasses.fields(worst)}
        return Finding(name=self.name, **said)


def laws_broken(task: Task, outputs: Tensor, examples: Examples) -> list[Broken]:
    """Return the laws that do not hold, up to the first after which no other can be asked."""
    found: list[Broken] = []
    for law in _FIRST:
        broken = law(task, outputs, examples)
        found += [broken] if broken else []
        if broken and broken.verdict == "fail":
            return found
    if not is_repeatable(task, outputs, examples.target):
        message = "the loss of the same output and target is another each time: it draws at random"
        advice = "draw in Task.augment instead, where a run can be repeated"
        return [*found, Broken(verdict="warn", message=message, advice=advice)]
    for law in _THEN:
        try:
            broken = law(task, outputs, examples)
        except (RuntimeError, ValueError, IndexError) as error:
            first = (str(error).splitlines() or [""])[0]
            broken = _refusal(first)
        found += [broken] if broken else []
        if broken and broken.verdict == "fail":
            return found
    return found


def _refusal(message: str) -> Broken:
    """Such as binary_cross_entropy, which takes probabilities only."""
    return Broken(
        verdict="warn",
        message=f"the loss refuses outputs that its kind of task may have: {message}",
        advice="return logits from the network, and give the loss logits",
    )
