"""After training the loss in train mode and in eval mode is the same, for the same rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from training_core.checks.chance import batch_norms, state_of, without_dropout
from training_core.checks.contract import Check, Finding
from training_core.checks.graph.calling import (
    ROUNDING,
    copy_of,
    largest,
    listed,
    outputs_of,
    place_of,
)
from training_core.checks.subject import Subject
from training_core.examples import Examples
from training_core.feeds.order import order

# Forward passes in train mode before anything is compared: at a momentum of 0.1 the statistics of
# weights that no longer move are then within 0.2 %.
SETTLING = 60
ROWS, BATCHES = 1_024, 64  # compared, at most
STANDARD_ERRORS = 5.0
SHARE = 0.05  # of the loss, or of what was lost before training
OWN_SHARE = 0.25  # with batches' own statistics, which are noisy where batches are small
APART = 0.25  # of the outputs' spread: running statistics against those of the data
FAST, APART_FAST = 0.5, 0.05  # a momentum above holds little more than the last batch
FORGOTTEN = 0.05  # of where they began: running statistics that keep more were not updated enough


@dataclass(frozen=True)
class Gap:
    """How much more one way loses than another, for the same rows.

    Attributes:
        mean: Of the difference a unit.
        error: Its standard error.
        reference: What the other way loses.
    """

    mean: float
    error: float
    reference: float


class TrainAndEvalAgree(Check):
    name = "train_and_eval_agree"
    looks_at = "after training, train mode without dropout and eval mode lose the same"
    costs = "training"

    def look(self, subject: Subject) -> Finding:
        model = without_dropout(copy_of(subject, subject.trained.model))
        batches = _batches(subject)
        unsettled = _losses(subject, model.eval(), batches)
        if not unsettled.isfinite().all():
            return self._not_finite(subject, model, batches)
        moving = _settle(model, batches)
        if _norms_in_use(model):
            exact = _recalibrated(subject, model, batches)
            found = self._statistics(subject, model, exact, batches)
            if found is not None:
                return found
            model = exact
        return self._modes(subject, model, batches, unsettled=unsettled, moving=moving)

    def _statistics(
        self, subject: Subject, model: nn.Module, exact: nn.Module, batches: list[Examples]
    ) -> Finding | None:
        """Fail where running statistics are not the data's, and outputs are others for it."""
        norms = _norms_in_use(model)
        apart = _outputs_apart(model.eval(), exact.eval(), batches)
        done = len(subject.trained.curve) + SETTLING
        slow = [name for name, n in norms.items() if _kept(n, done) > FORGOTTEN]
        fast = [name for name, n in norms.items() if (n.momentum or 0.0) > FAST]
        if slow:  # what is left of it at the end of the planned run
            further = max(0, subject.steps - done)
            apart *= max(_kept(norms[name], further) for name in slow)
        limit = APART_FAST if fast and not slow else max(APART, 4 * _noise(norms, batches))
        if apart <= limit:
            return None
        named = slow or fast or list(norms)
        momenta = ", ".join(sorted({f"{norms[name].momentum or 0:g}" for name in named}))
        return self.failed(
            f"outputs in eval mode are {apart:.0%} of their spread from what they are with the "
            f"statistics of the very data (limit {limit:.0%}): "
            f"{listed([place_of(model, name) for name in named], limit=3)} with momentum {momenta}",
            advice="set the BatchNorm's momentum to about 0.1: in torch it is the new batch's part",
            measured=apart,
            limit=limit,
            table=_table(norms, batch_norms(exact)),
        )

    def _modes(
        self,
        subject: Subject,
        model: nn.Module,
        batches: list[Examples],
        *,
        unsettled: Tensor,
        moving: bool,
    ) -> Finding:
        """What is left of train mode once dropout is off and BatchNorm in eval mode."""
        evaluated = _losses(subject, model.eval(), batches)
        norms = list(_norms_in_use(model))
        model.train()
        for name in norms:
            model.get_submodule(name).eval()
        one = _losses(subject, model, batches, seed=1)
        other = _losses(subject, model, batches, seed=2)
        gap = _gap(evaluated, (one + other) / 2, subject, batches)
        start = subject.trained.curve[0][1]
        limit = _limit(gap, start, share=OWN_SHARE if moving else SHARE)
        said = (
            f"on the same rows the loss is {gap.reference + gap.mean:.4g} in eval mode and "
            f"{gap.reference:.4g} in train mode without dropout"
        )
        told = {"measured": abs(gap.mean), "limit": limit}
        draws = not torch.allclose(one, other, rtol=1e-4, atol=1e-6)
        worse = not gap.mean <= limit
        if not worse and (draws or gap.mean >= -limit):
            return self.passed(said, **told)
        if moving and _settling_in_time(subject, unsettled, evaluated, (one + other) / 2):
            return self.warned(
                f"{said}; what eval mode computes with is still following",
                advice="see that averages over steps (EMA) settle within the planned run",
                **told,
            )
        return self.failed(
            said,
            advice="do the same in both modes: normalise in both, and update what eval mode uses",
            **told,
        )

    def _not_finite(self, subject: Subject, model: nn.Module, batches: list[Examples]) -> Finding:
        losses = _losses(subject, model.train(), batches)
        if losses.isfinite().all():
            return self.failed(
                "after training the loss is not finite in eval mode, and finite in train mode",
                advice="look at what eval mode computes with: running statistics, averages",
            )
        return self.warned(
            "after the short training the loss is finite in neither mode",
            advice="see what the checks of the loss say",
        )


def _batches(subject: Subject) -> list[Examples]:
    """Return batches of the size that the network is going to see in training."""
    size = max(
        2, min(subject.batch_size, subject.training.batch_size // subject.training.accumulation)
    )
    rows = order(seed=3, epoch=0, count=len(subject.examples))
    count = min(BATCHES, max(1, min(len(rows), ROWS) // size))
    return [subject.examples.take(rows[i * size : (i + 1) * size]) for i in range(count)]


def _settle(model: nn.Module, batches: list[Examples]) -> bool:
    """Let statistics follow weights that no longer move; say whether others than BatchNorm's do."""
    norms = batch_norms(model)
    for norm in norms.values():
        if norm.momentum is None:  # the mean since the beginning, of weights that were others
            norm.reset_running_stats()
    before = state_of(model)
    model.train()
    for step in range(SETTLING):
        outputs_of(model, batches[step % len(batches)], seed=step)
        if step == 1 and not _changed(before, model):  # nothing follows the batches
            return False
    return any(name.rpartition(".")[0] not in norms for name in _changed(before, model))


def _changed(before: dict[str, Tensor], model: nn.Module) -> list[str]:
    after = state_of(model)
    return [name for name, value in before.items() if not torch.equal(value, after[name])]


def _norms_in_use(model: nn.Module) -> dict[str, nn.modules.batchnorm._BatchNorm]:
    """Return the BatchNorm layers that use batches in training and running statistics later."""
    was_training = model.training
    model.train()
    used = {n: m for n, m in batch_norms(model).items() if m.training and m.running_var is not None}
    model.train(was_training)
    return used


def _recalibrated(subject: Subject, model: nn.Module, batches: list[Examples]) -> nn.Module:
    """Return a copy whose running statistics are the plain means over the batches."""
    exact = copy_of(subject, model)
    norms = batch_norms(exact)
    for name in _norms_in_use(exact):
        norms[name].momentum = None
        norms[name].reset_running_stats()
    exact.train()
    for step, batch in enumerate(batches):
        outputs_of(exact, batch, seed=step)
    return exact


@torch.no_grad()
def _losses(
    subject: Subject, model: nn.Module, batches: list[Examples], *, seed: int = 1
) -> Tensor:
    """Return the loss of each example, float64 [N], in the mode that the model is in."""
    losses = [
        subject.task.loss(outputs_of(model, batch, seed=seed), batch.clone().target).double()
        for batch in batches
    ]
    return torch.cat(losses)


def _gap(losses: Tensor, others: Tensor, subject: Subject, batches: list[Examples]) -> Gap:
    units = [len(b) if b.units is None else float(b.units.double().sum()) for b in batches]
    scale = len(losses) / max(1.0, sum(units))
    difference = losses - others
    error = float(difference.std()) / math.sqrt(len(difference)) if len(difference) > 1 else 0.0
    return Gap(float(difference.mean()) * scale, error * scale, float(others.mean()) * scale)


def _limit(gap: Gap, start: float, *, share: float) -> float:
    """Return what may be noise."""
    return max(STANDARD_ERRORS * gap.error, share * max(abs(gap.reference), 0.2 * abs(start)))


@torch.no_grad()
def _outputs_apart(model: nn.Module, exact: nn.Module, batches: list[Examples]) -> float:
    """Return how far outputs of two models are apart, as a share of their spread over rows."""
    one = torch.cat([outputs_of(model, batch) for batch in batches]).double()
    other = torch.cat([outputs_of(exact, batch) for batch in batches]).double()
    spread = float((other - other.mean(0)).square().mean().sqrt())
    apart = float((one - other).square().mean().sqrt())
    return apart / max(spread, 1e-30) if apart > ROUNDING * largest(other) else 0.0


def _noise(norms: dict[str, nn.modules.batchnorm._BatchNorm], batches: list[Examples]) -> float:
    """Return the share of a deviation by which a mean over few small batches is off by chance."""
    momentum = max(norm.momentum or 0.0 for norm in norms.values())
    return math.sqrt(momentum / (2 - momentum) / len(batches[0]))


def _kept(norm: nn.modules.batchnorm._BatchNorm, steps: int) -> float:
    """Return how much of where they began running statistics hold after some steps."""
    return 0.0 if norm.momentum is None else float((1 - norm.momentum) ** steps)


def _table(
    norms: dict[str, nn.modules.batchnorm._BatchNorm],
    exact: dict[str, nn.modules.batchnorm._BatchNorm],
) -> list[dict[str, str | float]]:
    """One row a layer: how far its statistics are from those of the data."""
    rows: list[dict[str, str | float]] = []
    for name, norm in norms.items():
        mean, variance = norm.running_mean, norm.running_var
        true_mean, true_variance = exact[name].running_mean, exact[name].running_var
        assert isinstance(mean, Tensor)
        assert isinstance(variance, Tensor)
        assert isinstance(true_mean, Tensor)
        assert isinstance(true_variance, Tensor)
        deviation = (true_variance + norm.eps).sqrt()
        rows.append(
            {
                "layer": name,
                "momentum": "mean" if norm.momentum is None else float(norm.momentum),
                "mean is off by deviations": float(((mean - true_mean) / deviation).abs().max()),
                "deviation is off by factor": float(
                    ((variance + norm.eps).sqrt() / deviation).log().abs().max().exp()
                ),
            }
        )
    return rows


def _settling_in_time(subject: Subject, before: Tensor, after: Tensor, reference: Tensor) -> bool:
    """Say whether the gap closed so far that at this pace it is closed within the planned steps."""
    first, last = float((before - reference).mean()), float((after - reference).mean())
    if not abs(last) < abs(first):
        return False
    rate = (abs(last) / abs(first)) ** (1 / SETTLING)
    return bool(rate**subject.steps < FORGOTTEN)
