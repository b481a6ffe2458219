"""Gradual unfreezing: stages thaw one after another, from the top down.

Howard & Ruder 2018, "Universal Language Model Fine-tuning", arXiv:1801.06146, section 3.3. Which
stages are thawed follows from the step alone, so there is nothing to remember: a training that goes
on, or back, has the same ones.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, ClassVar

from training_core.parallel.statistics import hold_statistics, is_held, release_statistics
from training_core.techniques.contract import Technique
from training_core.transfer.freezing import normalising
from training_core.transfer.stages import Stages

if TYPE_CHECKING:
    from training_core.loop import Trainer


class Unfreezing(Technique):
    """Thaws the stages of a trainer's model as `training.start.unfreeze` says."""

    name: ClassVar[str] = "unfreezing"

    def __init__(self, trainer: Trainer) -> None:
        settings = trainer.settings.start
        self._steps = [round(share * trainer.total_steps) for share in settings.unfreeze]
        self._update, self._module = trainer.update, trainer.module
        stages, most = Stages(trainer.module, settings.stages), len(settings.unfreeze)
        self._layers = [
            (layer, min(stages.count - 1 - stages.of(name), most))
            for name, layer in normalising(trainer.module)
            if not is_held(layer)  # frozen for good
        ]
        self._level = -1
        self._thaw(0)

    def before_step(self, step: int) -> None:
        """Thaw what is due, or freeze it again after a rollback."""
        level = bisect_right(self._steps, step)
        if level != self._level:
            self._thaw(level)

    def _thaw(self, level: int) -> None:
        self._update.rest(beyond=level)
        for layer, thaws_at in self._layers:
            if thaws_at > level:
                hold_statistics(layer)
            elif is_held(layer):
                release_statistics(layer, training=self._module.training)
        self._level = level
