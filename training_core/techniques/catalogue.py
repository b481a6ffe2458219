"""Which techniques a training uses, from its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training_core.techniques.contract import Technique, Techniques

if TYPE_CHECKING:
    from training_core.loop import Trainer


def techniques_of(trainer: Trainer) -> Techniques:
    """Return those that `trainer.settings` ask for; its model, feed and update are there."""
    found: list[Technique] = []
    if trainer.settings.start.unfreeze:
        from training_core.transfer.unfreezing import Unfreezing

        found.append(Unfreezing(trainer))
    if trainer.settings.sampling.curriculum == "loss":
        from training_core.techniques.loss_curriculum import LossCurriculum

        found.append(LossCurriculum(trainer))
    kind = trainer.settings.averaging.kind
    if kind != "none":
        from training_core.averaging.weights import Exponential, Stochastic

        found.append(Exponential(trainer) if kind == "ema" else Stochastic(trainer))
    return Techniques(found)
