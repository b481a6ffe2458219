"""The state of a training beside its weights: saved, found again, rolled back.

Everything that a decision depends on is here, so that a run that goes on does what the undisturbed
one would have done: counters, curve, stopping rules, the memory of divergence, a partly filled log
interval, and each rank's random states.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from training_core.checkpoints.restoring import Restored
from training_core.checkpoints.saver import Saver
from training_core.determinism import random_states, seed_everything, set_random_states
from training_core.errors import TrainingFailed
from training_core.outcome import Outcome
from training_core.parallel.statistics import running_statistics

if TYPE_CHECKING:
    from training_core.loop import Trainer

ASK_EVERY = 2.0  # seconds between questions to all ranks whether one of them has to stop


class State:
    """Keeps the state of a trainer.

    Attributes:
        next_question: The step at which ranks ask each other again whether to stop.
    """

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.saver: Saver | None = None
        self.next_question = 1
        self._patience = 1  # steps between questions: twice as many each time, up to ASK_EVERY
        self._began = self._asked = time.monotonic()
        if trainer.checkpoints is not None:
            self.saver = Saver(
                trainer.checkpoints,
                model=trainer.module,
                optimisers=trainer.update.optimisers,
                strategy=trainer.strategy,
                settings=trainer.settings.checkpoints,
                on_blocked=trainer.recorder.meter.stalled,
            )

    # ---- beginning and end ---------------------------------------------------------------------

    def begin(self) -> None:
        """Go on from the newest checkpoint; without one, save the first state to return to."""
        if self.saver is None:
            return
        found = self.saver.restore()
        if found is None:
            if self.trainer.settings.recovery.attempts:
                self.save({})
            return
        self._load(found)
        self.trainer.outcome.resumed_from = found.manifest.step
        self.trainer.rules.load_state_dict(found.progress["rules"])
        self.trainer.divergence.load_state_dict(found.progress["divergence"])
        self.trainer.outcome.stop_reason = self.trainer.rules.reason

    def finish(self) -> None:
        """Wait until what was saved is on disk."""
        if self.saver is not None:
            self.saver.finish()

    def seconds(self) -> float:
        """Return the seconds since this process began to train."""
        return time.monotonic() - self._began

    # ---- saving --------------------------------------------------------------------------------

    def weights_may_change(self) -> None:
        """Wait until the checkpoint that is being taken has copied the weights."""
        if self.saver is not None:
            self.saver.weights_may_change()

    def save(self, metrics: dict[str, float], *, in_between: bool = False) -> None:
        """Begin a checkpoint; all ranks together.

        Args:
            metrics: Of the validation split, if this step was evaluated.
            in_between: An undisturbed run would not save here, so nothing may change by it: each
                rank's running statistics are kept as they are, beside the pooled ones.
        """
        if self.saver is None:
            return
        trainer = self.trainer
        own = random_states(trainer.strategy.device)
        if in_between and trainer.strategy.world_size > 1:
            for index, pair in enumerate(running_statistics(trainer.module)):
                own[f"mean.{index}"], own[f"variance.{index}"] = pair[0].clone(), pair[1].clone()
        trainer.strategy.synchronise_statistics()
        losses, _ = trainer.interval.losses(trainer.strategy, [])
        extra = {"interval": losses, **trainer.update.state_dict()}
        self.saver.begin(
            step=trainer.outcome.steps,
            samples=trainer.outcome.samples,
            metrics=metrics,
            progress={  # copies: it is written while training goes on
                # as text, which is neither searched for NaN nor sorted: there is much of it
                "history": json.dumps(trainer.outcome.history()),
                "interval": {
                    "units": list(trainer.interval.units),
                    "samples": trainer.interval.samples,
                },
                "rules": trainer.rules.state_dict(),
                "divergence": trainer.divergence.state_dict(),
                "schedule": trainer.schedule.state_dict(),
                "scaler": trainer.precision.scaler.state_dict(),
            },
            extra=extra,
            own=own,
            clean=trainer.divergence.last_clean if trainer.settings.recovery.attempts else None,
        )

    def failed(self) -> bool:
        """Say whether a checkpoint of this rank could not be written."""
        return self.saver is not None and self.saver.failed() is not None

    def raise_failure(self) -> None:
        """Raise on every rank, since one could not write its part of a checkpoint."""
        assert self.saver is not None
        self.saver.raise_failure()
        raise TrainingFailed(
            "another rank could not write its part of a checkpoint",
            hint="its own words are in its log; checkpoints before this one are whole",
        )

    # ---- going on ------------------------------------------------------------------------------

    def roll_back(self, reason: str) -> None:
        """Return to the newest checkpoint before things went wrong, with a lower learning rate.

        Later checkpoints go first, so that a process that is killed on the way does the same.

        Raises:
            TrainingFailed: There is none to return to.
        """
        trainer, divergence = self.trainer, self.trainer.divergence
        now, resumed_from = trainer.outcome.steps, trainer.outcome.resumed_from
        found = None
        if self.saver is not None:
            self.saver.finish()
            found = self.saver.restore(before_step=divergence.last_clean)
        if self.saver is None or found is None:
            raise divergence.failure(reason)
        self.saver.discard_after(found.manifest.step)
        self._load(found)
        trainer.outcome.resumed_from = resumed_from
        trainer.rules.rewind(found.progress["rules"])
        divergence.rewind(
            found.progress["divergence"], step=now, to_step=found.manifest.step, reason=reason
        )
        trainer.outcome.rollbacks = list(divergence.rollbacks)
        if trainer.strategy.rank == 0:
            trainer.on_rollback(divergence.rollbacks[-1])

    def _load(self, found: Restored) -> None:
        """Put the trainer where a checkpoint was taken; its weights are loaded already."""
        trainer, progress = self.trainer, found.progress
        trainer.outcome = Outcome.gone_on(
            json.loads(progress["history"]),
            steps=found.manifest.step,
            samples=found.manifest.samples,
        )
        trainer.schedule.load_state_dict(progress["schedule"])
        trainer.precision.scaler.load_state_dict(progress["scaler"])
        trainer.update.load_state_dict(found.extra)
        trainer.interval.restore(
            losses=found.extra["interval"], rank=trainer.strategy.rank, **progress["interval"]
        )
        self.next_question = found.manifest.step + self._patience
        self._restore_own(found.own, found.manifest.step)

    def _restore_own(self, own: dict[str, Tensor] | None, step: int) -> None:
        trainer = self.trainer
        if own is None:  # another number of ranks: fresh random states that depend on the step
            seed = trainer.settings.seed * 65_537 + trainer.strategy.rank + 1
            seed_everything(seed * 1_000_003 + step)
            return
        set_random_states(own, trainer.strategy.device)
        if "mean.0" in own:
            for index, pair in enumerate(running_statistics(trainer.module)):
                pair[0].copy_(own[f"mean.{index}"])
                pair[1].copy_(own[f"variance.{index}"])

    # ---- agreeing ------------------------------------------------------------------------------

    def agree(self, asked: bool) -> bool:
        """Return whether any rank was asked to stop, and plan the next question."""
        strategy, now = self.trainer.strategy, time.monotonic()
        waited = (now - self._asked) / self._patience if strategy.rank == 0 else 0.0
        numbers = torch.tensor([float(asked), waited], dtype=torch.float64, device=strategy.device)
        wishes, seconds_a_step = strategy.sum_(numbers).tolist()
        most = int(ASK_EVERY / max(seconds_a_step, 1e-9))
        self._patience = max(1, min(most, 2 * self._patience))
        self.next_question = self.trainer.outcome.steps + self._patience
        self._asked = now
        return bool(wishes > 0)
