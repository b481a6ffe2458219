"""The learning rate over all planned steps against the settings' own words."""

from __future__ import annotations

from collections.abc import Callable, Generator

import torch
from torch import Tensor, nn

from training_core.checks.contract import Check, Finding
from training_core.checks.machinery.plain_schedule import (
    planned_momentum,
    planned_rate,
    warmup_steps,
)
from training_core.checks.machinery.plan_sense import LATE, odd_of
from training_core.checks.machinery.small_runs import trainer
from training_core.checks.subject import Subject
from training_core.examples import Examples
from training_core.feeds.batches import Sharing, StepBatch
from training_core.parallel.settings import ParallelSettings

_LOOKED_AT = 400  # steps, spread over the run
_SAME = 1e-6  # share of the peak; two ways to write a cosine differ by 1e-16


class ScheduleAsPlanned(Check):
    """Asks the trainer of the whole run what rate it sets, without taking a step."""

    name = "schedule_as_planned"
    looks_at = "the trainer's learning rate follows the plan over all its steps, which can work"

    def look(self, subject: Subject) -> Finding:
        steps = _planned_steps(subject)
        total, at = _trainers_rates(subject)
        if total != steps:
            return self.failed(
                f"the trainer would take {total} steps, and "
                f"{subject.training.epochs:g} epochs of {subject.planned_rows} rows are {steps}",
                measured=float(total),
                limit=float(steps),
                advice="give the trainer the number of rows that it trains on",
            )
        places = sorted({*range(0, steps, -(-steps // _LOOKED_AT)), *range(min(20, steps))})
        places = sorted({*places, *range(max(0, steps - 20), steps)})
        found = [at(step) for step in places]
        curves = {"learning rate": [(s, lr) for s, (lr, _) in zip(places, found, strict=True)]}
        return self._against_plan(subject, steps, places, found, curves) or self._sense(
            subject, steps, curves
        )

    def _against_plan(
        self,
        subject: Subject,
        steps: int,
        places: list[int],
        found: list[tuple[float, float | None]],
        curves: dict[str, list[tuple[int, float]]],
    ) -> Finding | None:
        schedule, optimiser = subject.training.schedule, subject.training.optimiser

        def planned(step: int, of: int) -> float:
            return planned_rate(schedule, optimiser, steps=of, step=step)

        for step, (lr, momentum) in zip(places, found, strict=True):
            limit = _SAME * optimiser.lr
            expected = planned(step, steps)
            if not abs(lr - expected) <= limit:
                other = _another(places, [rate for rate, _ in found], planned, steps, limit)
                plan = [(place, planned(place, steps)) for place in places]
                return self.failed(
                    f"at step {step} of {steps} the rate is {lr:.4g}, and the plan "
                    f"({schedule.shape}) says {expected:.4g}{other}",
                    measured=lr,
                    limit=expected,
                    advice="make the schedule with the settings, and with the steps of this run",
                    curves={**curves, "as planned": plan},
                )
            moves = planned_momentum(schedule, optimiser, steps=steps, step=step)
            if moves is not None and (momentum is None or abs(momentum - moves) > _SAME):
                return self.failed(
                    f"at step {step} of {steps} the momentum is {momentum}, and one_cycle plans "
                    f"{moves:.4g}",
                    measured=momentum,
                    limit=moves,
                    advice="set the momentum with the rate at each step",
                    curves=curves,
                )
        return None

    def _sense(
        self, subject: Subject, steps: int, curves: dict[str, list[tuple[int, float]]]
    ) -> Finding:
        """Judge the plan itself: it is kept, but does it make sense?"""
        training = subject.training
        odd = odd_of(training, steps=steps, rows=subject.planned_rows)
        if odd is not None:
            said = {"measured": odd.measured, "limit": odd.limit, "curves": curves}
            if odd.broken:
                return self.failed(odd.message, advice=odd.advice, **said)
            return self.warned(odd.message, advice=odd.advice, **said)
        peak = warmup_steps(training.schedule, steps=steps) / steps
        first, last = curves["learning rate"][0][1], curves["learning rate"][-1][1]
        return self.passed(
            f"{training.schedule.shape} over {steps} steps: {first:.3g} at first, "
            f"{training.optimiser.lr:.3g} at {peak:.0%} of the run, {last:.3g} at last",
            measured=peak,
            limit=LATE,
            curves=curves,
        )


def _planned_steps(subject: Subject) -> int:
    """Count the steps of whole epochs, whose last one is short, and of a part of one."""
    training, rows = subject.training, subject.planned_rows
    samples = max(1, round(training.epochs * rows))
    whole, rest = divmod(samples, rows)
    steps = whole * -(-rows // training.batch_size) + -(-rest // training.batch_size)
    most = training.stopping.max_steps
    return min(steps, most) if most else steps


def _trainers_rates(
    subject: Subject,
) -> tuple[int, Callable[[int], tuple[float, float | None]]]:
    """Return how many steps the real trainer would take, and what it sets at a step."""
    settings = subject.training.model_copy(
        update={"device": "cpu", "precision": "fp32", "compile": False, "accumulation": 1,
                "processes": 1, "nodes": 1, "activation_checkpointing": False,
                "parallel": ParallelSettings()}
    )  # fmt: skip
    run = trainer(
        _Nothing(),
        nn.Linear(1, 1),  # the rate depends on no network
        _Promised(subject.planned_rows),
        validation=Examples({"input": torch.zeros(8, 1)}, torch.zeros(8)),
        settings=settings,
    )

    def at(step: int) -> tuple[float, float | None]:
        run.update.set_rate(run.schedule.at(step))
        group = run.update.optimisers[0].param_groups[0]
        momentum = group["betas"][0] if "betas" in group else group.get("momentum")
        return float(group["lr"]), momentum

    return run.total_steps, at


def _another(
    places: list[int],
    found: list[float],
    planned: Callable[[int, int], float],
    steps: int,
    limit: float,
) -> str:
    """Say of which other number of steps the rates are, or that they stay where they are."""
    if max(found) - min(found) <= limit:
        return "; it never changes"
    peak = max(planned(step, steps) for step in places)
    if max(found) < 0.99 * peak:
        return f"; it never reaches its peak of {peak:.4g}"
    shares = {0.01, 0.1, 0.2, 0.25, 1 / 3, 0.5, 1.5, 2, 3, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100}
    near = {steps - 1, steps + 1, *(max(1, round(steps * share)) for share in shares)}
    for of in sorted(near, key=lambda count: abs(count - steps)):
        apart = (abs(lr - planned(step, of)) for step, lr in zip(places, found, strict=True))
        if all(each <= limit for each in apart):
            return f"; it is the schedule of a run of {of} steps"
    ratio = found[0] / planned(places[0], steps) if planned(places[0], steps) else 0.0
    apart = (abs(lr - ratio * planned(step, steps)) for step, lr in zip(places, found, strict=True))
    return f"; it is {ratio:.3g} times the plan" if all(each <= limit for each in apart) else ""


class _Promised:
    """A feed of as many examples as are planned, none of which is ever asked for."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def steps(self, sharing: Sharing, *, samples: int) -> Generator[StepBatch, None, None]:
        raise AssertionError


class _Nothing:
    """A task that is never asked."""

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        raise AssertionError

    def metrics(self, outputs: Tensor, target: Tensor) -> dict[str, Tensor]:
        raise AssertionError
