"""Does a proposed rate train better? Short trainings at several rates, from the same start.

What a rate does late in a sweep says little of what it does from the start: the weights have been
moved by all rates before. So a proposal is held against the planned rate on a fixed batch, in the
way of the check `learning_rate`, whose yardsticks these are.
"""

from __future__ import annotations

import torch

from training_core.checks.dynamics.rates import Probe, errors_ahead, unit_losses
from training_core.feeds.order import order
from training_core.profiling.learning_rate import Sweep
from training_core.profiling.planned import Planned, take_steps

STEPS = 100
BEYOND_NOISE = 4.0  # standard errors, as in the check
_ROWS = 256
_INSTANTS = 12


def confirm(planned: Planned, found: Sweep, *, steps: int = STEPS) -> dict[str, Probe]:
    """Train briefly at the planned rate and at those of a sweep.

    Returns:
        By name: `planned`, `proposed`, and `steepest` where that is another one.
    """
    rates = {"planned": found.planned}
    if found.proposed is not None:
        rates["proposed"] = found.proposed
    if found.steepest not in (None, found.proposed):
        assert found.steepest is not None
        rates["steepest"] = found.steepest
    return {name: probe_at(planned, rate, steps=steps) for name, rate in rates.items()}


def probe_at(planned: Planned, rate: float, *, steps: int) -> Probe:
    """Train at a rate as planned, schedule and all, so many steps long; look at a fixed batch."""
    settings = planned.settings
    optimiser = settings.optimiser.model_copy(update={"lr": rate})
    trainer = planned.trainer(
        settings=settings.model_copy(update={"optimiser": optimiser, "compile": False}),
        steps=steps,
        log_every=steps + 2,
    )
    chosen = order(seed=2, epoch=0, count=len(planned.examples))[:_ROWS]
    fixed = planned.examples.take(chosen).to(planned.device)
    trainer.module.train()  # judged by how it learns, as in the check
    seen = {0: unit_losses(trainer.task, trainer.module, fixed).cpu()}
    instants = {round(steps * i / _INSTANTS) for i in range(1, _INSTANTS + 1)}

    def after(step: int) -> bool:
        if step in instants:
            seen[step] = unit_losses(trainer.task, trainer.module, fixed).cpu()
        return not bool(torch.isfinite(seen[max(seen)]).all())

    take_steps(trainer, steps, after=after)
    return Probe(rate / settings.optimiser.lr, list(seen), torch.stack(list(seen.values())))


def better(probes: dict[str, Probe]) -> str:
    """Say whether the proposed rate trains better than the planned: yes, no, or unclear."""
    planned, proposed = probes["planned"], probes.get("proposed")
    if proposed is None or proposed.diverged:
        return "no"
    if planned.diverged:
        return "yes"
    ahead = errors_ahead(planned.final, proposed.final)
    return "yes" if ahead > BEYOND_NOISE else "no" if ahead < -BEYOND_NOISE else "unclear"
