"""The loss of the best outputs that do not depend on the inputs: the floor of all comparisons."""

from __future__ import annotations

import math

from training_core.checks.free_outputs import best_constant
from training_core.checks.losses import rows_at_once
from training_core.checks.subject import Subject
from training_core.evaluation import outputs_of
from training_core.examples import Examples


def constant_loss(subject: Subject, examples: Examples) -> float:
    """Return the mean loss a unit of the best constant output, NaN where none was found.

    The same output for every row, and for every position of a sequence. Of wide outputs only as
    many rows are asked as fit into a little memory.
    """
    model = subject.build(0)
    examples = examples.take(slice(0, rows_at_once(subject, model, examples)))
    one = outputs_of(model, examples.take(slice(0, 1)), device=subject.device)
    like = one.expand(len(examples), *one.shape[1:])
    loss = float(subject.loss(best_constant(subject.task, like, examples), examples))
    return loss if math.isfinite(loss) else math.nan
