"""Two ranks of the real trainer against each other, and against one process."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from training_core.checks.chance import without_dropout
from training_core.checks.contract import Check, Finding, NotApplicable
from training_core.checks.machinery.comparing import disturb, worst
from training_core.checks.machinery.noting import Noting, numbered
from training_core.checks.machinery.small_runs import (
    WithoutAugmentation,
    gradient_norm,
    short,
    state_of,
    trainer,
    twins,
    weight_norm,
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
        (model,) = twins(subject, 1)
        plans = _plans(subject, model, examples.take(slice(0, size)))
        task, state = WithoutAugmentation(subject.task), model.state_dict()
        models = [Noting(without_dropout(_like(subject, state))) for _ in plans]
        try:
            ranks, words = in_two_processes(
                train_rank, task, models, examples, list(plans.values()), seconds=_SECONDS
            )
        except TooSlow:
            return Finding(
                name=self.name,
                verdict="skipped",
                message=f"two processes were not done after {_SECONDS:g} seconds",
            )
        if words:
            return self._cannot(subject, words)
        wrong = _samples(ranks, size) or _equal(ranks, models[0], list(plans))
        if wrong:
            return self.failed(
                wrong,
                advice="give each rank its own part of each step, add gradients and statistics up "
                "over the ranks, and do the same with them on each",
            )
        if _random(subject):
            return self.passed(
                f"two ranks see different samples and hold equal weights after {_STEPS} steps; "
                "with one process they cannot be compared, since the network draws at random"
            )
        found = [run["state"] for run in ranks[0]]
        return self._against_one(subject, state, examples, plans, found)

    def _against_one(
        self,
        subject: Subject,
        state: dict[str, Any],
        examples: Examples,
        plans: dict[str, TrainingSettings],
        found: list[dict[str, Tensor]],
    ) -> Finding:
        """Train the same in one process, in two microbatches a step, and compare weights."""
        task, differences = WithoutAugmentation(subject.task), []
        for said, settings, ours in zip(plans, plans.values(), found, strict=True):
            alone, noisy = (Noting(without_dropout(_like(subject, state))) for _ in range(2))
            before = state_of(alone)
            cut = settings.model_copy(update={"accumulation": COUNT})
            for model in (alone, disturb(noisy)):
                trainer(task, model, examples, settings=cut).fit()
            weights = [name for name, _ in alone.named_parameters()]  # statistics are pooled
            expected, disturbed = (
                {name: state_of(model)[name] for name in weights} for model in (alone, noisy)
            )
            difference = worst(ours, expected, before=before, disturbed=disturbed)
            if difference is not None:
                differences.append((difference, said))
        if not differences:
            return self.passed(
                f"two ranks see different samples and hold equal weights after {_STEPS} steps; "
                "where one process gets is decided by rounding"
            )
        most, said = max(differences, key=lambda each: each[0].beyond)
        name, measured = (
            most.name.removeprefix("inner."),
            {
                "measured": most.apart,
                "limit": most.limit,
            },
        )
        if most.beyond > 1:
            return self.failed(
                f"after {_STEPS} steps of the same samples ({said}) two ranks have {name} "
                f"elsewhere than one process: {most.apart:.1%} of its way apart",
                advice="divide each loss by the units of the whole step over all ranks, and add "
                "gradients up",
                **measured,
            )
        return self.passed(
            f"two ranks see different samples, hold equal weights after {_STEPS} steps, and are "
            f"where one process gets: {name} is furthest, by {most.apart:.1e} of its way",
            **measured,
        )

    def _cannot(self, subject: Subject, words: list[str]) -> Finding:
        said = f"two processes cannot train the network: {'; '.join(words)}"
        advice = "mend what the processes say, or train in one process"
        if subject.training.world_size > 1:
            return self.failed(said, advice=advice)
        return self.warned(f"{said}; one process is planned", advice=advice)


def train_rank(
    task: Objective, models: list[Noting], examples: Examples, plans: list[TrainingSettings]
) -> list[dict[str, Any]]:
    """Train one rank's part by each plan; return states, and the rows shown, call by call."""
    strategy = ddp.DataParallel(torch.device("cpu"))
    found = []
    for model, settings in zip(models, plans, strict=True):
        run = trainer(task, model, examples, settings=settings, strategy=strategy)
        model.rows.clear()  # making a trainer has called it
        run.fit()
        rows = [rows.tolist() for rows in model.rows]
        found.append({"state": state_of(run.module), "rows": rows})
    return found


def _plans(subject: Subject, model: nn.Module, batch: Examples) -> dict[str, TrainingSettings]:
    """Return two runs, by what they are: steps of SGD that move weights by some thousandths."""
    norm, weights = gradient_norm(subject, model, batch), weight_norm(model)
    sgd = subject.training.optimiser.model_copy(
        update={"name": "sgd", "lr": 1e-3 * weights / norm, "clip_percentile": 0.0}
    )
    return {
        said: short(
            subject.training,
            steps=_STEPS,
            batch_size=len(batch),
            processes=COUNT,
            nodes=1,
            optimiser=sgd.model_copy(update={"clip_norm": limit}),
        )
        for said, limit in (("without clipping", 0.0), ("clipped", norm / 2))
    }


def _like(subject: Subject, state: dict[str, Any]) -> nn.Module:
    model = subject.build()
    model.load_state_dict(state)
    return model


def _samples(ranks: list[Any], size: int) -> str:
    """Say how the ranks' samples are not two parts of each step; empty: they are."""
    shown = (rank[0]["rows"] for rank in ranks)
    for step, (first, second) in enumerate(zip(*shown, strict=True)):
        twice = len(set(first) & set(second))
        if twice:
            return f"both ranks are shown the same samples: {twice} of {size} at step {step}"
        if len(first) + len(second) != size:
            return f"at step {step} two ranks together see {len(first) + len(second)} of {size}"
    return ""


def _equal(ranks: list[Any], model: nn.Module, plans: list[str]) -> str:
    """Say what differs between the ranks that must not; empty: nothing.

    Weights, and the statistics of norms, which are pooled at the evaluation that ends a run; other
    buffers may be each rank's own.
    """
    statistics = [
        f"{path}.{name}"
        for path, module in model.named_modules()
        if isinstance(module, nn.modules.batchnorm._NormBase) and module.track_running_stats
        for name in ("running_mean", "running_var")
    ]
    names = [*(name for name, _ in model.named_parameters()), *statistics]
    for said, one, other in zip(plans, *ranks, strict=True):
        for name in names:
            ours, theirs = one["state"][name], other["state"][name]
            if not torch.allclose(ours, theirs, rtol=1e-6, atol=1e-7, equal_nan=True):
                apart = float((ours - theirs).abs().max())
                where = name.removeprefix("inner.")
                return (
                    f"after {_STEPS} steps ({said}) the ranks differ in {where}, by up to "
                    f"{apart:.2g}"
                )
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
