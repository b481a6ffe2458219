"""The state of a training beside its weights: saved, found again, rolled back.

Everything that a decision depends on is here, so that a run that goes on does what the undisturbed
one would have done: counters, curve, stopping rules, the memory of divergence, a partly filled log
interval, and each rank's random states.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from training_core.checkpoints.restoring import Restored
from training_core.checkpoints.saver import Saver
from training_core.determinism import random_states, seed_everything, set_random_states
from training_core.errors import ConfigurationError, TrainingFailed
from training_core.feeds.order import mixed_seed
from training_core.outcome import Outcome

if TYPE_CHECKING:
    from training_core.loop import Trainer

ASK_EVERY = 2.0  # seconds between questions to all ranks whether one of them has to stop


def constant_names(trainer: Trainer) -> frozenset[str]:
    """Names of weights that a checkpoint leaves out, as they are those of the start: LoRA's base.

    Whoever goes on with the training gives the model its start first; to serve a checkpoint,
    `transfer.lora.merged` puts both together.
    """
    if not trainer.settings.start.lora.rank:
        return frozenset()
    named = trainer.module.named_parameters(remove_duplicate=False)
    return frozenset(name for name, parameter in named if not parameter.requires_grad)


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
                constant=constant_names(trainer),
                on_blocked=trainer.recorder.meter.stalled,
                others=trainer.techniques.tensors,
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

    @contextmanager
    def in_order(self) -> Iterator[None]:
        """Leave no checkpoint half written behind, even if training fails here."""
        try:
            yield
        except BaseException:
            if self.saver is not None:
                self.saver.abandon()
            raise

    def seconds(self) -> float:
        """Return the seconds since this process began to train."""
        return time.monotonic() - self._began

    # ---- saving --------------------------------------------------------------------------------

    def weights_may_change(self) -> None:
        """Wait until the checkpoint that is being taken has copied the weights."""
        if self.saver is not None:
            self.saver.weights_may_change()

    def save(
        self, metrics: dict[str, float], *, in_between: bool = False, last: bool = False
    ) -> None:
        """Begin a checkpoint; all ranks together.

        Args:
            metrics: Of the validation split, if this step was evaluated.
            in_between: An undisturbed run would not save here, so nothing may change by it: each
                rank's running statistics are kept as they are, beside the pooled ones.
            last: Training ends here, and waits for it.

        Raises:
            ConfigurationError: The metric that ranks checkpoints is not among them.
        """
        if self.saver is None:
            return
        trainer, metric = self.trainer, self.trainer.settings.checkpoints.metric
        if metrics and metric not in metrics:
            raise ConfigurationError(
                f"training.checkpoints.metric is {metric!r}, which is not evaluated",
                hint=f"choose one of {', '.join(sorted(metrics))}",
            )
        trainer.techniques.before_save()
        own = random_states(trainer.strategy.device)
        if not in_between:
            trainer.strategy.synchronise_statistics()
        if trainer.strategy.world_size > 1:  # each rank has seen other samples
            for index, buffer in enumerate(trainer.module.buffers()):
                own[f"buffer.{index}"] = buffer.clone()
        if in_between:
            trainer.strategy.synchronise_statistics()
        losses, _ = trainer.interval.losses(trainer.strategy, [])
        extra = {
            "interval": losses,
            **trainer.update.state_dict(),
            **trainer.techniques.state_dict(),
        }
        self.saver.begin(
            step=trainer.outcome.steps,
            samples=trainer.outcome.samples,
            metrics=metrics,
            progress={  # copies: it is written while training goes on
                # as text, which is neither searched for NaN nor sorted: there is much of it
                "history": trainer.outcome.history(),
                "optimiser": trainer.settings.optimiser.name,
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
            urgent=in_between or last,
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
        saved, now = progress["optimiser"], trainer.settings.optimiser.name
        if saved != now:  # their moments may well have the same names and shapes
            raise ConfigurationError(
                f"the checkpoint of step {found.manifest.step} was saved by {saved}, and "
                f"training.optimiser.name is {now} now",
                hint="leave the optimiser as it was, or begin a new training",
            )
        trainer.outcome = Outcome.gone_on(
            progress["history"],
            steps=found.manifest.step,
            samples=found.manifest.samples,
        )
        trainer.schedule.load_state_dict(progress["schedule"])
        trainer.precision.scaler.load_state_dict(progress["scaler"])
        trainer.update.load_state_dict(found.extra)
        trainer.techniques.load_state_dict(found.extra)
        trainer.interval.restore(
            losses=found.extra["interval"], rank=trainer.strategy.rank, **progress["interval"]
        )
        self.next_question = found.manifest.step + self._patience
        self._restore_own(found)

    def _restore_own(self, found: Restored) -> None:
        """Go on with this rank's random states and buffers, if it was one of as many ranks."""
        trainer, own, step = self.trainer, found.own, found.manifest.step
        if own is None or len(found.manifest.shards) != trainer.strategy.world_size:
            # fresh random states that depend on the step; buffers are those of the checkpoint
            seed_everything(mixed_seed(trainer.settings.seed, trainer.strategy.rank, step))
            return
        set_random_states(own, trainer.strategy.device)
        if trainer.strategy.world_size > 1:
            with torch.no_grad():
                for index, buffer in enumerate(trainer.module.buffers()):
                    buffer.copy_(own[f"buffer.{index}"])

    # ---- agreeing ------------------------------------------------------------------------------

    def asked_to_stop(self) -> bool:
        """Return whether any rank was asked to stop; several ask each other now and then."""
        trainer = self.trainer
        if trainer.strategy.world_size == 1:
            return trainer.should_stop()
        due = trainer.outcome.steps >= self.next_question
        return due and self._agree(trainer.should_stop())

    def _agree(self, asked: bool) -> bool:
        """Ask all ranks, and plan the next question."""
        strategy, now = self.trainer.strategy, time.monotonic()
        waited = (now - self._asked) / self._patience if strategy.rank == 0 else 0.0
        numbers = torch.tensor([float(asked), waited], dtype=torch.float64, device=strategy.device)
        wishes, seconds_a_step = strategy.sum_(numbers).tolist()
        most = int(ASK_EVERY / max(seconds_a_step, 1e-9))
        self._patience = max(1, min(most, 2 * self._patience))
        self.next_question = self.trainer.outcome.steps + self._patience
        self._asked = now
        return bool(wishes > 0)
