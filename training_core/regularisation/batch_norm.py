"""BatchNorm over other rows than those of a microbatch: fewer of them, or those of all processes.

Both have the parameters, buffers and names of torch's, and in eval mode do what that does: a
network trained with either is evaluated, saved and packaged as it was written.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from training_core.errors import ConfigurationError


class GhostBatchNorm(_BatchNorm):
    """Each group of rows is normalised by its own statistics: Hoffer et al. 2017, arXiv:1705.08741.

    A large batch then is as noisy, and as regularising, as the small ones that it is made of.

    Attributes:
        rows: Of a group; the groups of a batch are equal but for one row, and none is smaller
            where the batch has as many.
    """

    rows = 32

    def forward(self, input: Tensor) -> Tensor:
        """Normalise rows [N, C, …]."""
        groups = len(input) // self.rows
        if not self.training or groups < 2:
            return super().forward(input)
        return torch.cat(
            [super(GhostBatchNorm, self).forward(g) for g in input.tensor_split(groups)]
        )


class GhostBatchNorm1d(GhostBatchNorm, nn.BatchNorm1d):
    """For [N, C] and [N, C, L]."""


class GhostBatchNorm2d(GhostBatchNorm, nn.BatchNorm2d):
    """For images."""


class GhostBatchNorm3d(GhostBatchNorm, nn.BatchNorm3d):
    """For volumes."""


class SynchronisedBatchNorm(_BatchNorm):
    """The statistics of what all processes have of a microbatch, on CPUs as on GPUs.

    torch's SyncBatchNorm refuses a CPU. One gather in forward (means, sums of squares around them,
    counts, joined as in Chan et al. 1979) and one sum in backward; the result is what one process
    would have computed on the joined rows, but for the order of additions.

    A process without a sample (`lend`) takes part with a count of zero.
    """

    _lends = False

    def lend(self) -> None:
        """Until the next `train` or `eval`: take part in the statistics without counting."""
        self.training, self._lends = True, True

    def train(self, mode: bool = True) -> SynchronisedBatchNorm:
        """Count again."""
        self._lends = False
        super().train(mode)
        return self

    def forward(self, input: Tensor) -> Tensor:
        """Normalise rows [N, C, …]; all processes together, in training mode."""
        if not self.training or not dist.is_initialized():
            return super().forward(input)
        values = input.float() if input.dtype in (torch.float16, torch.bfloat16) else input
        mean, variance, count = _joined(values.detach(), counts=not self._lends)
        if self.track_running_stats:
            self._follow(mean, variance * (count / (count - 1)))
        inverse = (variance + self.eps).rsqrt().to(values.dtype)
        normalised: Tensor = _Normalised.apply(  # type: ignore[no-untyped-call]
            values, self.weight, self.bias, mean.to(values.dtype), inverse, count, not self._lends
        )
        return normalised.to(input.dtype)

    @torch.no_grad()
    def _follow(self, mean: Tensor, variance: Tensor) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        share = self.momentum
        if share is None:
            share = 1 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
        self.running_var.lerp_(variance.to(self.running_var.dtype), share)

    def _check_input_dim(self, input: Tensor) -> None:
        """Any number of dimensions."""


def _rows_of(values: Tensor) -> list[int]:
    return [dimension for dimension in range(values.ndim) if dimension != 1]


def _channels(vector: Tensor, values: Tensor) -> Tensor:
    return vector.view(1, -1, *[1] * (values.ndim - 2))


def _joined(values: Tensor, *, counts: bool) -> tuple[Tensor, Tensor, float]:
    """Return mean and variance [C], float64, over all processes, and of how many values each is."""
    rows = _rows_of(values)
    count = values.numel() // values.shape[1] if counts else 0
    mean = values.mean(rows)
    squares = (values - _channels(mean, values)).square().sum(rows)
    mine = torch.cat(
        [mean.double(), squares.double() * counts, mean.new_full((1,), count).double()]
    )
    all_of = mine.new_empty(dist.get_world_size(), len(mine))
    dist.all_gather_single(all_of, mine[None])
    channels = values.shape[1]
    means, sums, number = all_of[:, :channels], all_of[:, channels:-1], all_of[:, -1:]
    total = number.sum()
    if total < 2:
        raise ConfigurationError(
            "all processes together have one value a channel, which BatchNorm cannot normalise",
            hint="choose training.batch_size so that an epoch's last step has two rows or more",
        )
    joint = (means * number).sum(0) / total
    variance = (sums + number * (means - joint).square()).sum(0) / total
    return joint, variance, float(total)


class _Normalised(torch.autograd.Function):
    """(x - mean) · inverse · weight + bias, where mean and inverse depend on everyone's x."""

    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        mean: Tensor,
        inverse: Tensor,
        count: float,
        counts: bool,
    ) -> Tensor:
        ctx.save_for_backward(values, weight, mean, inverse)
        ctx.count, ctx.counts, ctx.has_bias = count, counts, bias is not None
        scale = inverse if weight is None else inverse * weight
        shift = -mean * scale if bias is None else bias - mean * scale
        return values * _channels(scale, values) + _channels(shift, values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        values, weight, mean, inverse = ctx.saved_tensors
        rows = _rows_of(values)
        normal = (values - _channels(mean, values)) * _channels(inverse, values)
        own = torch.stack([gradient.sum(rows), (gradient * normal).sum(rows)])
        means = own.clone()
        dist.all_reduce(means)
        means *= ctx.counts / ctx.count  # rows that were lent have no part in the statistics
        scale = inverse if weight is None else inverse * weight
        of_values = _channels(scale, values) * (
            gradient - _channels(means[0], values) - normal * _channels(means[1], values)
        )
        of_weight = own[1] if weight is not None else None
        of_bias = own[0] if ctx.has_bias else None
        return of_values, of_weight, of_bias, None, None, None, None
