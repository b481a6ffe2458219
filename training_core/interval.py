"""What a log interval collects, without waiting for the device or for other ranks."""

from __future__ import annotations

import torch
from torch import Tensor

from training_core.errors import ConfigurationError
from training_core.feeds.batches import Sharing
from training_core.parallel.strategy import Strategy


class Interval:
    """The summed losses of each microbatch of each step, kept on the device until they are read.

    Each microbatch has a place of its own in a table, zero on the other ranks, so that adding the
    tables up is exact and the sum has one order, whatever the number of ranks.

    Attributes:
        places: Where the summed loss of a step's microbatch goes: by step, then by microbatch of
            this rank; 0-d float64 views.
        units: Of each step so far, over all ranks.
        samples: Of all steps so far, over all ranks.
    """

    def __init__(self, *, steps: int, sharing: Sharing, device: torch.device) -> None:
        self._losses = torch.zeros(steps, sharing.parts, dtype=torch.float64, device=device)
        self.places = [[row[part] for part in sharing.mine] for row in self._losses]
        self.units: list[float] = []
        self.samples = 0

    def __len__(self) -> int:
        return len(self.units)

    def add(self, *, units: float, samples: int) -> None:
        """Count a step whose losses are in their places."""
        self.units.append(units)
        self.samples += samples

    def losses(self, strategy: Strategy, more: list[float]) -> tuple[Tensor, list[float]]:
        """Add up over all ranks, in one all-reduce.

        Args:
            strategy: The ranks.
            more: Numbers that are added up as well.

        Returns:
            Summed losses [steps so far, parts], float64 on the CPU; the numbers.
        """
        mine = self._losses[: len(self)].flatten()
        numbers = torch.tensor(more, dtype=torch.float64, device=mine.device)
        packed = strategy.sum_(torch.cat([mine, numbers])).cpu()
        count = mine.numel()
        return packed[:count].view(-1, self._losses.shape[1]), packed[count:].tolist()

    def mean(self, losses: Tensor) -> float:
        """Return the mean loss of a unit over the steps whose loss is finite; NaN if none is."""
        totals = losses.sum(1)
        finite = torch.isfinite(totals)
        units = torch.tensor(self.units, dtype=torch.float64)[finite].sum()
        return float(totals[finite].sum() / units)

    def clear(self) -> None:
        """Begin the next interval."""
        self._losses.zero_()
        self.units, self.samples = [], 0

    def restore(self, *, losses: Tensor, units: list[float], samples: int, rank: int) -> None:
        """Go on within an interval: rank 0 answers for what all ranks had summed.

        Raises:
            ConfigurationError: It was longer than intervals are now.
        """
        self.clear()
        if len(units) >= len(self.places):
            raise ConfigurationError(
                f"the checkpoint was saved {len(units)} steps into a log interval, and "
                f"training.log_every is {len(self.places)} now",
                hint="leave training.log_every as it was for this training",
            )
        if rank == 0 and len(units):
            parts = min(losses.shape[1], self._losses.shape[1])
            # another number of parts: only the sums of the steps matter
            self._losses[: len(units), :parts] = losses[:, :parts]
            self._losses[: len(units), 0] += losses[:, parts:].sum(1)
        self.units, self.samples = list(units), samples
