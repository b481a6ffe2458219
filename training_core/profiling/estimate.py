"""What the whole planned run will take: time, cost, FLOPs, and whether it has data enough.

The 6ND rule: forward and backward take about 6 FLOPs for each parameter and token (Kaplan et al.
2020, arXiv:2001.08361, section 2.1); it leaves out attention's own products and embeddings, so what
was counted stands beside it. Twenty tokens a parameter are what compute spends best when a language
model is trained once from nothing (Hoffmann et al. 2022, arXiv:2203.15556); measured on models from
70 million parameters on, so of a small one it is a hint at most.
"""

from __future__ import annotations

from dataclasses import dataclass

from training_core.profiling.planned import Planned
from training_core.profiling.result import Profile

TOKENS_A_PARAMETER = 20.0


@dataclass(frozen=True)
class Estimate:
    """Of the whole planned run.

    Attributes:
        steps: Optimiser steps.
        seconds: With its evaluations, on this machine, alone.
        training: Of these, the steps alone.
        cost: At the price; None: there is none.
        units: Examples, or tokens of a sequence, that it trains on, each epoch anew.
        different: Of these, different ones.
        six_n_d: FLOPs by the rule; None where the task is no sequence.
        flops: As they were counted; None: they could not be.
        parameters: Of the network.
        sequence: Whether units are tokens.
    """

    steps: int
    seconds: float
    training: float
    cost: float | None
    units: float
    different: float
    six_n_d: float | None
    flops: float | None
    parameters: int
    sequence: bool

    @property
    def units_a_parameter(self) -> float:
        """Different examples, or tokens, for each parameter."""
        return self.different / max(1, self.parameters)


def estimate(planned: Planned, found: Profile, *, price: float = 0.0) -> Estimate:
    """Reckon the whole run from a profile.

    Args:
        planned: The training.
        found: Its profile.
        price: Of an hour of one process; 0: `training.stopping.price_per_hour`, if it is set.

    The steps are shared by the planned processes, as if they did not have to wait for each other.
    """
    settings, steps = planned.settings, planned.steps
    every = settings.evaluate_every or max(1, steps // 10)
    training = steps * found.seconds / settings.world_size
    evaluating = -(-steps // every) * found.evaluation_seconds / settings.world_size
    price = price or settings.stopping.price_per_hour
    examples = settings.epochs * planned.train_rows
    if settings.stopping.max_steps:
        examples = min(examples, steps * settings.batch_size)
    sequence = planned.task.kind == "sequence"
    units = examples * found.units
    return Estimate(
        steps=steps,
        seconds=training + evaluating,
        training=training,
        cost=(training + evaluating) / 3600 * price * settings.world_size if price else None,
        units=units,
        different=min(examples, planned.train_rows) * found.units,
        six_n_d=6 * found.parameters * units if sequence else None,
        flops=None if found.flops is None else found.flops * examples,
        parameters=found.parameters,
        sequence=sequence,
    )
