"""Stochastic depth: residual branches that are left out at random (arXiv:1603.09382).

def forward(self, x):
    return x + self.drop(self.branch(x))       # self.drop = StochasticDepth(0.1)
"""

from __future__ import annotations

from torch import Tensor, nn


class StochasticDepth(nn.Module):
    """Leaves a residual branch out for some examples; what stays is scaled, so the mean is kept.

    In eval mode it does nothing. `training.regularisation.stochastic_depth` sets the probabilities
    of all such layers of a network, rising with their depth.

    Args:
        probability: Of leaving the branch out, for each example.
    """

    def __init__(self, probability: float = 0.0) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, branch: Tensor) -> Tensor:
        """Return the branch [N, …], zero for the examples that go without it."""
        if not self.training or not self.probability:
            return branch
        stays = 1 - self.probability
        shape = (len(branch), *[1] * (branch.ndim - 1))
        return branch * branch.new_empty(shape).bernoulli_(stays).div_(stays)

    def extra_repr(self) -> str:
        return f"probability={self.probability}"
