"""A curriculum by loss: each epoch begins with what the network finds easy by then.

Self-paced learning (Kumar et al. 2010), with a pacing function instead of a threshold (Hacohen &
Weinshall 2019, arXiv:1904.03626). The losses of the whole train split are measured when an epoch
ends, with the weights of then, in eval mode and without augmentation, and are part of the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from training_core.feeds.chunks import RowFeed
from training_core.preparation import rows_of
from training_core.techniques.contract import Technique

if TYPE_CHECKING:
    from training_core.loop import Trainer

_ROWS = 8192  # at once, as in training_core.evaluation


class LossCurriculum(Technique):
    """Measures the losses that the next epoch is ordered by, as long as some are left out.

    It costs a forward over the train split an epoch, and four bytes for each row in a checkpoint.
    """

    name = "curriculum"

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        found = rows_of(trainer.feed)
        assert isinstance(found, RowFeed)
        assert found.sampling is not None
        self._rows, self._sampling = found, found.sampling
        self._sampling.losses = None
        self._steps = trainer.steps_per_epoch

    def after_update(self, step: int) -> None:
        """Measure, if an epoch has ended that one follows which is not yet of all examples."""
        epoch, within = divmod(step, self._steps)
        if not within and self._sampling.needs_losses(epoch):
            self._sampling.losses = self._measured().numpy()

    def state_dict(self) -> dict[str, Tensor]:
        """Return the losses, if there are any."""
        losses = self._sampling.losses
        return {} if losses is None else {"losses": torch.from_numpy(losses)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on with the losses that were measured."""
        losses = state.get("losses")
        self._sampling.losses = None if losses is None else losses.numpy()

    @torch.no_grad()
    def _measured(self) -> Tensor:
        """Return the loss a unit of each row, float32 [N], the same on every rank."""
        trainer = self._trainer
        strategy, module, task = trainer.strategy, trainer.module, trainer.task
        count = len(self._rows)
        losses = torch.zeros(count, device=strategy.device)
        training = module.training
        module.eval()
        for first in range(0, -(-count // _ROWS), strategy.world_size):
            piece = first + strategy.rank
            mine = piece * _ROWS < count  # one without rows takes part: sharded models communicate
            start = piece * _ROWS if mine else 0
            part = self._rows.stored(start, min(start + _ROWS, count)).to(strategy.device)
            with trainer.precision.autocast():
                outputs = module(**part.arrays)
            found = task.loss(outputs.float(), part.target)
            if part.units is not None:
                found = found / part.units.clamp(min=1)
            if mine:
                losses[start : start + len(found)] = found
        module.train(training)
        return strategy.sum_(losses).cpu()
