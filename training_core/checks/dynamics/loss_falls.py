"""What a few hundred steps do to the loss: it falls, and neither oddly nor too well."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor

from training_core.checks.contract import Check, Curve, Finding
from training_core.checks.dynamics.constant import constant_loss
from training_core.checks.dynamics.orders import (
    ORDER_ROWS,
    batch_means,
    batches_of_rows,
    repeats,
    unmixed,
)
from training_core.checks.losses import unit_losses_of
from training_core.checks.subject import Subject
from training_core.examples import Examples
from training_core.feeds.order import order

_ROWS = 1024
_BEYOND_NOISE = 4.0  # standard errors
_SEEN = 0.001  # of the loss: weights that hardly move lower it by less, on every row
_NOTHING_LEFT = 0.02  # of the best constant's loss
_FAR_BELOW = 0.7  # held-back loss over train loss
# 20 batches of mixed rows correlate with those of the next epoch by 0.2 or so; the same ones by 1
_SAME_ORDER = 0.95
_FEWEST_BATCHES = 8


class LossFalls(Check):
    """Looks at the curve of the short training, and at what it learned."""

    name = "loss_falls"
    looks_at = "the loss falls beyond noise, does not follow the order of rows, is not too good"
    costs = "training"

    def look(self, subject: Subject) -> Finding:
        short = subject.trained
        train = subject.batch(_ROWS, seed=6)
        held = subject.held_back.take(slice(0, _ROWS))
        said: dict[str, object] = {"curves": {"train, by batch": short.curve}}
        values = [loss for _, loss in short.curve]
        if not all(map(math.isfinite, values)):
            return self.failed(
                f"the loss is {values[-1]} at step {short.curve[-1][0]}",
                advice="lower training.optimiser.lr, and look for infinite inputs and for "
                "logarithms or quotients of 0 in the loss",
                **said,
            )
        after, fresh = unit_losses_of(subject, short.model, train), subject.build(0)
        before = unit_losses_of(subject, fresh, train)
        last, constant = float(after.mean()), constant_loss(subject, train)
        said |= {"measured": last, "limit": constant}
        if not (_falls(short.curve) or _clearly_below(after, before)):
            return self._does_not_fall(short.curve, last, constant, said)
        return (
            self._follows_the_order(subject, said)
            or self._too_good(subject, held, last, said)
            or self._held_back_is_easier(subject, held, after, said)
            or self.passed(
                f"the loss of train rows falls from {float(before.mean()):.4g} to {last:.4g} in "
                f"{len(values)} steps; the best constant "
                f"has {constant:.4g}",
                **said,
            )
        )

    def _does_not_fall(
        self, curve: Curve, evaluated: float, constant: float, said: dict[str, object]
    ) -> Finding:
        first, last = _mean(curve, first=True), _mean(curve, first=False)
        noise = 2 * _error(curve)
        words = f"the loss goes from {first:.4g} to {last:.4g} in {len(curve)} steps"
        # with dropout, the loss in training is above what the network can do
        if min(last, evaluated) <= constant + noise or not math.isfinite(constant):
            return self.warned(
                f"{words}: no more than noise, and the best constant has {constant:.4g}",
                advice="see whether the inputs say anything about the labels, and whether the "
                "labels belong to their rows",
                **said,
            )
        return self.failed(
            f"{words}: it does not fall, and even the best constant has {constant:.4g}",
            advice="look for gradients that are not reset or do not arrive, a loss with the wrong "
            "sign, and a learning rate that is far off",
            **said,
        )

    def _follows_the_order(self, subject: Subject, said: dict[str, object]) -> Finding | None:
        """Judge the feed's batches by the losses of one and the same network: no noise in it."""
        epochs = batches_of_rows(subject)
        if len(epochs) < 2 or min(map(len, epochs)) < _FEWEST_BATCHES:
            return None
        rows = subject.examples.take(slice(0, ORDER_ROWS))
        values = unit_losses_of(subject, subject.trained.model, rows)
        values = values.argsort().argsort().double()  # ranks: one odd row would decide it
        means = [batch_means(values, batches) for batches in epochs]
        likeness = min(repeats(one, other) for one, other in pairwise(means))
        if likeness > _SAME_ORDER:
            curve = [(i, v) for i, v in enumerate(torch.cat(means).tolist())]
            kept = {**said, "curves": {"trained network, by batch of the feed": curve}}
            return self.failed(
                f"the loss repeats with the epoch: batch by batch, epochs correlate by "
                f"{likeness:.3f}; the rows come in the same order in each",
                advice="see that the order of rows is drawn anew for each epoch",
                **{**kept, "measured": likeness, "limit": _SAME_ORDER},
            )
        excess = min(unmixed(values, batches) for batches in epochs)
        degrees = len(epochs[0]) - 1
        limit = 1 + 6 * math.sqrt(2 / degrees)  # a χ² over its degrees, six deviations up
        if excess > limit:
            return self.failed(
                f"batches differ {excess:.2g} times as much as those of mixed rows would: rows "
                "come in an order that the loss follows",
                advice="see that the rows are mixed before they are cut into batches",
                **{**said, "measured": excess, "limit": limit},
            )
        return None

    def _too_good(
        self, subject: Subject, held: Examples, last: float, said: dict[str, object]
    ) -> Finding | None:
        constant = constant_loss(subject, held)
        loss = float(unit_losses_of(subject, subject.trained.model, held).mean())
        if not (constant > 0 and max(loss, last) < _NOTHING_LEFT * constant):
            return None
        dealt = subject.examples
        mixed = dealt.take(order(seed=7, epoch=0, count=len(dealt)))
        control = Examples(mixed.arrays, dealt.target, dealt.units)
        blind = subject.train_briefly(control).model
        wrong = held.take(order(seed=8, epoch=0, count=len(held)))
        without = float(
            unit_losses_of(subject, blind, Examples(wrong.arrays, held.target, held.units)).mean()
        )
        words = (
            f"the held-back loss is {loss:.3g} after {len(subject.trained.curve)} steps, where the "
            f"best constant has {constant:.3g}"
        )
        if without < 2 * _NOTHING_LEFT * constant:
            return self.failed(
                f"{words}; with the inputs of other rows it is {without:.3g} as well: the loss "
                "does not measure what is learned",
                advice="look at how the loss compares outputs and targets",
                **said,
            )
        return self.warned(
            f"{words}: almost nothing is left to learn",
            advice="see whether the target, or something that is known only after it, is among "
            "the inputs",
            **said,
        )

    def _held_back_is_easier(
        self, subject: Subject, held: Examples, after: Tensor, said: dict[str, object]
    ) -> Finding | None:
        losses = unit_losses_of(subject, subject.trained.model, held)
        if min(len(losses), len(after)) < 2:
            return None
        train, other = float(after.mean()), float(losses.mean())
        error = math.sqrt(float(after.var()) / len(after) + float(losses.var()) / len(losses))
        if train - other > _BEYOND_NOISE * error and other < _FAR_BELOW * train:
            return self.warned(
                f"the held-back loss is {other:.4g}, far below the train loss of {train:.4g}",
                advice="see how the held-back rows are chosen, and whether labels or inputs are "
                "made in another way for them",
                **{**said, "measured": other, "limit": train},
            )
        return None


def _tail(curve: Curve, *, first: bool) -> Tensor:
    part = max(1, len(curve) // 5)
    chosen = curve[:part] if first else curve[-part:]
    return torch.tensor([loss for _, loss in chosen], dtype=torch.float64)


def _mean(curve: Curve, *, first: bool) -> float:
    return float(_tail(curve, first=first).mean())


def _error(curve: Curve) -> float:
    """Standard error of the mean of the last fifth."""
    tail = _tail(curve, first=False)
    return float(tail.std()) / math.sqrt(len(tail)) if len(tail) > 1 else 0.0


def _falls(curve: Curve) -> bool:
    """Whether the last fifth is below the first beyond the noise of both."""
    one, other = _tail(curve, first=True), _tail(curve, first=False)
    if len(one) < 2:
        return bool(other.mean() < one.mean())
    error = math.sqrt(float(one.var() + other.var()) / len(one))
    return float(one.mean() - other.mean()) > _BEYOND_NOISE * error


def _clearly_below(after: Tensor, before: Tensor) -> bool:
    """Whether the same rows lose less, beyond noise and by what can be seen."""
    difference = before - after
    if len(difference) < 2 or not bool(torch.isfinite(difference).all()):
        return False
    fall, error = float(difference.mean()), float(difference.std()) / math.sqrt(len(difference))
    return fall > max(_BEYOND_NOISE * error, _SEEN * abs(float(before.mean())))
