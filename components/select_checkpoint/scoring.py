"""Score candidates on the validation split: each piece of it goes through all of them.

Rows are read and turned into examples once for all candidates whose weights fit in memory together.
Ten networks and 100,000 flights took 2.0 s on one thread, with a pass for each 3.6 s; one network
whose weights are swapped took 2.0 s as well, and is not simpler.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import nn

from components.common.resampling import Draws, Floats
from components.select_checkpoint.choosing import Place
from training_core.examples import Examples
from training_core.task import Preprocessor, Task

_ROWS = 8192  # rows at once, as in training_core.evaluation
MEMORY = 2 << 30  # bytes of weights at once


@dataclass(frozen=True)
class Score:
    """What one candidate lost on the rows.

    Attributes:
        totals: float64 [clusters], sums of its losses.
        units: float64 [clusters], of what means are taken over; the same for every candidate.
        metrics: Mean loss, and the mean of every metric of the task.
    """

    place: Place
    totals: Floats
    units: Floats
    metrics: dict[str, float]


@dataclass(frozen=True)
class Judge:
    """Scores networks on one set of rows.

    Attributes:
        frame: Raw rows, every one with a label.
        draws: Of the rows' clusters.
        memory: Bytes of weights that may be there at once.
    """

    task: Task
    preprocessor: Preprocessor
    frame: pd.DataFrame
    draws: Draws
    memory: int = MEMORY

    def scores(self, candidates: Iterable[tuple[Place, nn.Module]]) -> list[Score]:
        """Score candidates; they are taken from the iterable as memory allows."""
        return [score for group in self._groups(candidates) for score in self._pass(group)]

    def _groups(
        self, candidates: Iterable[tuple[Place, nn.Module]]
    ) -> Iterator[list[tuple[Place, nn.Module]]]:
        group: list[tuple[Place, nn.Module]] = []
        size = 0
        for place, network in candidates:
            group.append((place, network))
            size += weight_bytes(network)
            del network  # the group alone holds it
            if size + size // len(group) > self.memory:  # another one would not fit
                yield group
                group.clear()  # whoever got it still holds it, and so its networks
                size = 0
        if group:
            yield group

    @torch.no_grad()
    def _pass(self, group: list[tuple[Place, nn.Module]]) -> list[Score]:
        """Take the rows once through some networks; losses as in `training_core.evaluation`."""
        for _, network in group:
            network.eval()
        totals = np.zeros((self.draws.count, len(group)))
        units = np.zeros(self.draws.count)
        sums: list[dict[str, float]] = [{} for _ in group]
        for start in range(0, len(self.frame), _ROWS):
            rows = np.arange(start, min(start + _ROWS, len(self.frame)))
            piece = Examples.from_frame(self.task, self.preprocessor, self.frame.iloc[rows])
            weights = torch.ones(len(piece)) if piece.units is None else piece.units
            units += self.draws.totals(weights.double().numpy()[:, None], rows)[:, 0]
            for k, (_, network) in enumerate(group):
                outputs = network(**piece.arrays).float()
                losses = self.task.loss(outputs, piece.target)
                totals[:, k] += self.draws.totals(losses.double().numpy()[:, None], rows)[:, 0]
                values = {"loss": losses, **self.task.metrics(outputs, piece.target)}
                for name, value in values.items():
                    sums[k][name] = sums[k].get(name, 0.0) + float(value.double().sum())
        return [
            Score(place, totals[:, k], units, {n: v / units.sum() for n, v in sums[k].items()})
            for k, (place, _) in enumerate(group)
        ]


def weight_bytes(network: nn.Module) -> int:
    """Bytes of a network's weights and buffers."""
    tensors = (*network.parameters(), *network.buffers())
    return sum(t.numel() * t.element_size() for t in tensors)
