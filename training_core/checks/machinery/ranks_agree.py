"""Two ranks of the real trainer against each other, and against one process."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn

from training_core.checks.contract import Check, Finding, NotApplicable
from training_core.checks.machinery.comparing import disturb, worst
from training_core.checks.machinery.noting import Noting, numbered
from training_core.checks.machinery.small_runs import (
    WithoutAugmentation,
    short,
    state_of,
    trainer,
    twins,
    without_dropout,
)
from training_core.checks.machinery.two_processes import COUNT, TooSlow, in_two_processes
from training_core.checks.subject import Subject
from training_core.determinism import seed_everything
from training_core.evaluation import Objective
from training_core.examples import Examples
from training_core.parallel import ddp
from training_core.settings import TrainingSettings

_STEPS = 3
_ROWS = 32  # a step, over both ranks
_SECONDS = 40.0  # it takes two to three


class RanksAgree(Check):
    """Compares with one process that cuts its steps into the microbatches that the ranks get.

    So a BatchNorm, which normalises each rank's rows by themselves, has the same rows there. The
    optimiser is SGD, to which a gradient's size matters.
    """

    name = "ranks_agree"
    looks_at = "two processes see different samples, stay equal, and get where one process gets"

    def look(self, subject: Subject) -> Finding:
        size = min(_ROWS, len(subject.examples) // 4 * 4)
        if size < 4:
            raise NotApplicable(f"{len(subject.examples)} examples are too few for two processes")
        examples = numbered(subject.batch(2 * size))
        examples = examples.take(slice(0, len(examples) // size * size))
        models = [Noting(without_dropout(model)) for model in twins(subject, 3)]
        model, alone, noisy = models
        settings = _settings(subject, model, examples, size)
        task = WithoutAugmentation(subject.task)
        try:
            ranks, words = in_two_processes(
                train_rank, task, model, examples, settings, seconds=_SECONDS
            )
        except TooSlow:
            return self._skipped(f"two processes were not done after {_SECONDS:g} seconds")
        if words:
            return self._cannot(subject, words)
        wrong = _samples(ranks, size) or _equal(ranks, [n for n, _ in alone.named_parameters()])
        if wrong:
            return self.failed(
                wrong,
                advice="give each rank its own part of each step, and one seed to all models",
            )
        before = state_of(alone)
        cut = settings.model_copy(update={"accumulation": COUNT})
        trainer(task, alone, examples, settings=cut).fit()
        trainer(task, disturb(noisy), examples, settings=cut).fit()
        return self._against_one(subject, ranks[0]["state"], before, alone, noisy)

    def _against_one(
        self,
        subject: Subject,
        found: dict[str, Tensor],
        before: dict[str, Tensor],
        alone: nn.Module,
        noisy: nn.Module,
    ) -> Finding:
        weights = [name for name, _ in alone.named_parameters()]  # statistics are pooled later
        expected, disturbed = (
            {name: state_of(model)[name] for name in weights} for model in (alone, noisy)
        )
        if _random(subject):
            return self.passed(
                f"two ranks see different samples and hold equal weights after {_STEPS} steps; "
                "with one process they cannot be compared, since the network draws at random"
            )
        difference = worst(found, expected, before=before, disturbed=disturbed)
        if difference is None:
            return self.passed(
                f"two ranks see different samples and hold equal weights after {_STEPS} steps; "
                "where one process gets is decided by rounding"
            )
        name = difference.name.removeprefix("inner.")
        measured = {"measured": difference.apart, "limit": difference.limit}
        if difference.beyond > 1:
            return self.failed(
                f"after {_STEPS} steps of the same samples two ranks have {name} elsewhere than "
                f"one process: {difference.apart:.1%} of its way apart",
                advice="divide each loss by the units of the whole step over all ranks, and add "
                "gradients up",
                **measured,
            )
        return self.passed(
            f"two ranks see different samples, hold equal weights after {_STEPS} steps, and are "
            f"where one process gets: {name} is furthest, by {difference.apart:.1e} of its way",
            **measured,
        )

    def _cannot(self, subject: Subject, words: list[str]) -> Finding:
        said = f"two processes cannot train the network: {'; '.join(words)}"
        advice = "mend what the processes say, or train in one process"
        if subject.training.processes > 1:
            return self.failed(said, advice=advice)
        return self.warned(f"{said}; one process is planned", advice=advice)

    def _skipped(self, why: str) -> Finding:
        return Finding(name=self.name, verdict="skipped", message=why)


def train_rank(
    task: Objective, model: Noting, examples: Examples, settings: TrainingSettings
) -> dict[str, Any]:
    """Train one rank's part; return its state and the rows that it was shown, call by call."""
    strategy = ddp.DataParallel(torch.device("cpu"))
    run = trainer(task, model, examples, settings=settings, strategy=strategy)
    model.rows.clear()  # making a trainer has called it
    run.fit()
    return {"state": state_of(run.module), "rows": [rows.tolist() for rows in model.rows]}


def _settings(subject: Subject, model: Noting, examples: Examples, size: int) -> TrainingSettings:
    """Return those of a run whose steps move the weights by some thousandths."""
    probe = copy.deepcopy(model).train()
    batch = examples.take(slice(0, size))
    losses = subject.task.loss(probe(**batch.arrays).float(), batch.target)
    units = len(batch) if batch.units is None else batch.units.sum()
    (losses.sum() / units).backward()  # type: ignore[no-untyped-call]
    weights, gradient = (
        math.sqrt(sum(float(each.detach().double().square().sum()) for each in tensors))
        for tensors in (
            list(probe.parameters()),
            [p.grad for p in probe.parameters() if p.grad is not None],
        )
    )
    rate = 1e-3 * (weights or 1.0) / gradient if 0 < gradient < math.inf else 1e-3
    sgd = subject.training.optimiser.model_copy(
        update={"name": "sgd", "lr": rate, "clip_norm": 0.0, "clip_percentile": 0.0}
    )
    return short(subject.training, steps=_STEPS, batch_size=size, optimiser=sgd, processes=COUNT)


def _samples(ranks: list[dict[str, Any]], size: int) -> str:
    """Say how the ranks' samples are not two parts of each step; empty: they are."""
    for step, (first, second) in enumerate(zip(*(rank["rows"] for rank in ranks), strict=True)):
        twice = len(set(first) & set(second))
        if twice:
            return f"both ranks are shown the same samples: {twice} of {size} at step {step}"
        if len(first) + len(second) != size:
            return f"at step {step} two ranks together see {len(first) + len(second)} of {size}"
    return ""


def _equal(ranks: list[dict[str, Any]], weights: list[str]) -> str:
    """Say which weight differs between the ranks; empty: none. Statistics are each rank's own."""
    one, other = (rank["state"] for rank in ranks)
    for name in weights:
        if not torch.allclose(one[name], other[name], rtol=1e-6, atol=1e-7, equal_nan=True):
            apart = float((one[name] - other[name]).abs().max())
            said = name.removeprefix("inner.")
            return f"after {_STEPS} steps the ranks differ in {said}, by up to {apart:.2g}"
    return ""


@torch.no_grad()
def _random(subject: Subject) -> bool:
    """Whether train mode draws at random even without the dropout that can be switched off."""
    model, batch = without_dropout(subject.build()).train(), subject.batch(8)
    seen = []
    for seed in (1, 2):
        seed_everything(seed)
        seen.append(model(**batch.arrays).float())
    return not torch.equal(seen[0], seen[1])
