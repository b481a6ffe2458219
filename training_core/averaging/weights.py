"""The average of the weights that a training goes through: one more family of tensors.

It is sharded as the weights are, lies in each checkpoint beside them, and takes their place while
the model is evaluated. Training itself never sees it.

- `Exponential`: Polyak & Juditsky 1992; as used since Szegedy et al. 2016, arXiv:1512.00567.
- `Stochastic`: Izmailov et al. 2018, "Averaging Weights Leads to Wider Optima and Better
  Generalization", arXiv:1803.05407.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.distributed.checkpoint.state_dict import get_model_state_dict

from training_core.averaging.rate import span
from training_core.averaging.statistics import collecting, estimate_statistics
from training_core.checkpoints.live import AVERAGE, local
from training_core.examples import Examples
from training_core.feeds.batches import Feed, Sharing
from training_core.techniques.contract import Technique

if TYPE_CHECKING:
    from training_core.loop import Trainer


class WeightAverage(Technique, ABC):
    """Keeps an average up to date, and puts it in place of the weights where they are evaluated.

    Until the first weights are in it, it is the live weights themselves.

    Args:
        trainer: Its model is on its device, sharded if it is to be, and its update is there.

    Attributes:
        count: How many weights are in it.
    """

    name = "averaging"

    def __init__(self, trainer: Trainer) -> None:
        self._trainer, self.settings = trainer, trainer.settings.averaging
        self.count = 0
        self._parameters = list(trainer.module.parameters())
        self._averages = [p.detach().clone() for p in self._parameters]
        self._averaged_buffers = [b.detach().clone() for b in self._buffers]
        layers = collecting(trainer.module)
        owned = {id(b) for layer in layers for b in layer.buffers(recurse=False)}
        self._statistics = [id(buffer) in owned for buffer in self._buffers]
        self._stale = False  # statistics are of another average
        self._rows: Examples | None = None
        self._named = self._by_name()

    @abstractmethod
    def share(self, step: int) -> float | None:
        """Return what the weights after so many steps count for in the new average; None: nothing.

        With a share of 1 / n, n counting them, the average is the plain mean.
        """

    @torch.no_grad()
    def after_update(self, step: int) -> None:
        """Take the newest weights in, if it is their turn."""
        share = self.share(step)
        if share is None:
            return
        self.count += 1
        weights, averages = self._places()
        if share == 1.0:
            torch._foreach_copy_(averages, weights)
        else:
            torch._foreach_lerp_(averages, weights, share)
        self._stale = True

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Have the averaged weights in the model, with statistics that are theirs."""
        if not self.count:
            yield
            return
        self._exchange(self._buffers_now())
        try:
            if self._stale and any(self._statistics):
                self._collect()
            self._stale = False
            yield
        finally:
            self._exchange(self._averaged_buffers)

    def before_save(self) -> None:
        """Bring what lies in the checkpoint up to date: statistics, or all of it."""
        if self._stale:
            with self.evaluating():
                pass
        elif not self.count:
            self._follow()

    def tensors(self) -> Mapping[str, Tensor]:
        """Return the average by the model's names, sharded as that is."""
        return self._named

    def state_dict(self) -> dict[str, Tensor]:
        """Return how many weights are in it."""
        return {"count": torch.tensor(self.count)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on; the average itself is loaded as the weights are."""
        self.count = int(state["count"])
        self._stale = False

    # ---- within --------------------------------------------------------------------------------

    @property
    def _buffers(self) -> list[Tensor]:
        """The model's, as they are now: one may have been assigned anew."""
        return list(self._trainer.module.buffers())

    def _by_name(self) -> dict[str, Tensor]:
        """Return the averages under the names that the weights have in a checkpoint."""
        module = self._trainer.module
        values = (*self._parameters, *self._buffers)
        averages = (*self._averages, *self._averaged_buffers)
        of = {id(v): average for v, average in zip(values, averages, strict=True)}
        named = {
            **dict(module.named_parameters(remove_duplicate=False)),
            **dict(module.named_buffers(remove_duplicate=False)),
        }
        return {f"{AVERAGE}{name}": of[id(named[name])] for name in get_model_state_dict(module)}

    def _places(self) -> tuple[list[Tensor], list[Tensor]]:
        """Return this rank's part of the weights, and of their averages."""
        return [local(p) for p in self._parameters], [local(a) for a in self._averages]

    @torch.no_grad()
    def _follow(self) -> None:
        """Be the live weights."""
        weights, averages = self._places()
        torch._foreach_copy_(averages, weights)
        if self._buffers:
            torch._foreach_copy_(self._averaged_buffers, self._buffers)

    def _buffers_now(self) -> list[Tensor]:
        """Return the average's buffers; but for statistics they are those of the live model."""
        for average, buffer, own in zip(
            self._averaged_buffers, self._buffers, self._statistics, strict=True
        ):
            if not own:
                average.copy_(buffer)
        return self._averaged_buffers

    @torch.no_grad()
    def _exchange(self, buffers: list[Tensor]) -> None:
        """Let the model and the average have each other's numbers; exact, and one tensor more."""
        self._reshard()
        weights, averages = self._places()
        for one, other in zip((*weights, *self._buffers), (*averages, *buffers), strict=True):
            kept = one.clone()
            one.copy_(other)
            other.copy_(kept)

    def _reshard(self) -> None:
        """Drop weights that FSDP has gathered for a forward: they would outlive an exchange."""
        if not self._trainer.strategy.shards:
            return
        from torch.distributed.fsdp import FSDPModule

        for module in self._trainer.module.modules():
            if isinstance(module, FSDPModule):
                module.reshard()

    def _collect(self) -> None:
        """Collect the statistics of the weights in place, on the same rows on every rank."""
        trainer = self._trainer
        if self._rows is None:
            self._rows = first_rows(
                trainer.feed, self.settings.statistics_rows, seed=trainer.settings.seed
            )
        training = trainer.module.training
        estimate_statistics(trainer.module, self._rows, autocast=trainer.precision.autocast)
        trainer.module.train(training)


class Exponential(WeightAverage):
    """An exponential moving average, free of the bias towards its first value.

    The share of the newest of t weights is (1 - decay) / (1 - decay^t): that makes it their mean
    with weights decay^0, decay^1, …, as Adam's correction does (Kingma & Ba 2015), without the
    initial weights, which were never trained. With `warmup` it is at least 9 / (9 + t).
    """

    def share(self, step: int) -> float | None:
        """Return the newest weights' share; every step has one."""
        times = self.count + 1
        share = (1 - self.settings.decay) / (1 - self.settings.decay**times)
        return max(share, 9 / (9 + times)) if self.settings.warmup and times > 1 else share


class Stochastic(WeightAverage):
    """The plain mean of the weights at every so many steps of the end of training."""

    def __init__(self, trainer: Trainer) -> None:
        super().__init__(trainer)
        self._first, self._every = span(
            self.settings, steps=trainer.total_steps, epoch=trainer.steps_per_epoch
        )

    def share(self, step: int) -> float | None:
        """Return 1 / n at the n-th of them."""
        past = step - self._first
        return 1 / (self.count + 1) if past > 0 and past % self._every == 0 else None


def first_rows(feed: Feed, rows: int, *, seed: int) -> Examples:
    """Return the first rows of a feed's order, the same on every rank."""
    whole = Sharing.of(
        batch_size=min(len(feed), rows), microbatches=1, rank=0, world_size=1, seed=seed
    )
    with closing(feed.steps(whole, samples=0)) as steps:
        return next(steps).microbatches[0].examples.clone()
