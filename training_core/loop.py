"""The training loop, top to bottom.

    outcome = Trainer(task=..., model=..., train=..., validation=..., settings=...,
                      strategy=..., checkpoints=...).fit()

A step: augmentation, forward and backward of each microbatch, its summed loss divided by the
units of the whole step, so that accumulation, uneven ranks and a short last batch give the gradient
of one big batch; then one update, which clips, and skips on the device what is not finite. What is
due next is known ahead, so in between nothing waits for the device and only gradients are
communicated.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import nn

from training_core.augmentation import augmentation_of
from training_core.backward import Shares, backward
from training_core.checkpoints.catalogue import Checkpoints
from training_core.determinism import reproducible_kernels, seed_everything
from training_core.due import Due
from training_core.errors import TrainingFailed
from training_core.evaluation import Objective, evaluate
from training_core.examples import Examples
from training_core.feeds.batches import Feed, StepBatch
from training_core.interval import Interval
from training_core.outcome import Outcome, Point, Rollback
from training_core.parallel.statistics import lend
from training_core.parallel.strategy import Strategy
from training_core.precision import choose_precision
from training_core.preparation import (
    feed_of,
    fixed_sample,
    make_update,
    prepare_model,
    refuse_single_rows,
    schedule_of,
    sharing_of,
    total_steps,
)
from training_core.regularisation.loss import loss_of
from training_core.settings import TrainingSettings
from training_core.state import State
from training_core.stopping.divergence import Divergence
from training_core.stopping.rules import StoppingRules
from training_core.techniques.catalogue import techniques_of
from training_core.telemetry.recorder import Recorder


class Trainer:
    """Trains one model on one split.

    Args:
        task: Gives the loss and the metrics.
        model: Built by the task, with the same seed on every rank.
        train: The train split, the same on every rank, or a feed.
        validation: Evaluated every `settings.evaluate_every` steps.
        settings: How to train.
        strategy: The processes.
        checkpoints: Where state is kept; training goes on from the newest readable one.
        on_point: Called on rank 0 with each log interval's figures.
        on_evaluation: Called on rank 0 with each evaluation's step and metrics.
        on_rollback: Called on rank 0 when training has gone back to a checkpoint.
        should_stop: Asked at step boundaries; all ranks stop when one says so, and save.
        until: Steps of the planned ones after which it ends, its rates as planned; 0: all of them.
    """

    def __init__(
        self,
        *,
        task: Objective,
        model: nn.Module,
        train: Examples | Feed,
        validation: Examples,
        settings: TrainingSettings,
        strategy: Strategy,
        checkpoints: Checkpoints | None = None,
        on_point: Callable[[Point], None] = lambda point: None,
        on_evaluation: Callable[[int, dict[str, float]], None] = lambda step, metrics: None,
        on_rollback: Callable[[Rollback], None] = lambda rollback: None,
        should_stop: Callable[[], bool] = lambda: False,
        until: int = 0,
    ) -> None:
        self.task, self.settings, self.strategy = task, settings, strategy
        regularisation = settings.regularisation
        self.augment = augmentation_of(task, seed=settings.seed, regularisation=regularisation)
        self.loss = loss_of(task, regularisation, settings.distillation)
        self.on_point, self.on_evaluation, self.on_rollback = on_point, on_evaluation, on_rollback
        self.should_stop = should_stop
        self.checkpoints = checkpoints
        self.feed = feed_of(train, settings, strategy.device)
        self.validation = fixed_sample(validation, settings)
        self.precision = choose_precision(settings.precision, strategy.device)
        sample = validation.take(slice(0, 8))
        self.model, flops = prepare_model(
            model, task, sample, settings=settings, strategy=strategy, precision=self.precision
        )
        self.module = strategy.unwrapped(self.model)
        self.shares = Shares(strategy.gradient_factor, self.precision.scaler)
        self.sharing = sharing_of(settings, strategy)
        self.total_steps = total_steps(settings, samples=len(self.feed))
        self.end = min(until or self.total_steps, self.total_steps)
        refuse_single_rows(
            self.module, self.sharing, samples=len(self.feed), steps=self.total_steps
        )
        self.evaluate_every = settings.evaluate_every or max(1, self.total_steps // 10)
        self.save_every = settings.checkpoints.every or self.evaluate_every
        self.steps_per_epoch = -(-len(self.feed) // settings.batch_size)
        self.schedule = schedule_of(settings, steps=self.total_steps, epoch=self.steps_per_epoch)
        self.update = make_update(
            self.module, settings, strategy=strategy, precision=self.precision
        )
        self.rules = StoppingRules(settings.stopping, processes=strategy.world_size)
        self.divergence = Divergence(
            settings.recovery, max_skipped=settings.max_skipped, precision=self.precision.name
        )
        self.interval = Interval(
            steps=settings.log_every, sharing=self.sharing, device=strategy.device
        )
        self.recorder = Recorder(
            task=task,
            model=self.module,
            sample=sample,
            strategy=strategy,
            precision=self.precision.name,
            flops=flops,
        )
        self.outcome = Outcome()
        self.techniques = techniques_of(self)
        self.state = State(self)

    # ---- the run -------------------------------------------------------------------------------

    def fit(self) -> Outcome:
        """Train to the end, from the newest checkpoint if there is one.

        Raises:
            TrainingFailed: It diverged, and went on diverging after each rollback; or a checkpoint
                could not be written.
        """
        self.precision.set_up()
        seed_everything(self.settings.seed * 65_537 + self.strategy.rank + 1)
        self.state.begin()
        began, at_start = time.monotonic(), self.outcome.samples
        with reproducible_kernels(self.settings, self.strategy.device), self.state.in_order():
            while not self.outcome.stop_reason:
                self._train()
            self.state.finish()
        if self.outcome.samples > at_start:
            seconds = time.monotonic() - began
            self.outcome.samples_per_second = (self.outcome.samples - at_start) / seconds
        return self.outcome

    def _train(self) -> None:
        """Step until there is a reason to stop, or a rollback moves the position."""
        if self.outcome.steps >= self.end:
            self.outcome.stop_reason = self.rules.reason or "epochs"
            return
        self.model.train()
        self.recorder.restart(samples=self.interval.samples)
        self._plan()
        meter, alone = self.recorder.meter, self.strategy.world_size == 1
        batches = self.feed.steps(self.sharing, samples=self.outcome.samples)
        try:
            going_on = True
            while going_on:
                if (step := self.outcome.steps) + 1 == self._due.log:
                    meter.begin()
                if (batch := next(batches, None)) is None:
                    raise TrainingFailed(f"the feed ended at sample {self.outcome.samples}")
                rate = self.schedule.at(step).scaled(self.divergence.lr_scale)
                self.update.set_rate(rate)
                self.techniques.before_step(step)
                self._gradients(batch)
                self.state.weights_may_change()
                self.update.step(measure=meter.measuring)
                self.techniques.after_update(step + 1)
                if meter.measuring:
                    meter.mark("optimiser")
                    meter.end()
                self.outcome.steps, self.outcome.samples = step + 1, batch.samples_after
                if step + 1 >= self._due.next or (alone and self.should_stop()):
                    going_on = self._between_steps(rate.lr)
        finally:
            batches.close()

    # ---- one step ------------------------------------------------------------------------------

    def _gradients(self, batch: StepBatch) -> None:
        """Forward and backward of this rank's microbatches; gradients are then the step's."""
        places, meter = self.interval.places[len(self.interval)], self.recorder.meter
        if meter.measuring:
            meter.mark("data")
        for index, microbatch in enumerate(batch.microbatches):
            last, filler = index == len(places) - 1, microbatch.weight is not None
            with self.strategy.microbatch(
                self.model, samples=batch.samples_after, index=index, last=last
            ):
                where = {"sample": batch.samples_after, "part": self.sharing.mine[index]}
                augmented = self.augment(microbatch.examples, **where)
                examples = augmented.to(self.strategy.device, non_blocking=True)
                if filler:  # takes part in what ranks do together, and leaves no statistics
                    lend(self.model)
                with self.precision.autocast():
                    outputs = self.model(**examples.arrays)
                losses = self.loss(outputs.float(), examples)
                if filler:
                    self.model.train()
                else:
                    torch.sum(losses.detach(), 0, dtype=torch.float64, out=places[index])
                if meter.measuring:
                    meter.mark("forward")
                backward(losses, self.shares.of(losses, microbatch.weight, batch.units))
                if meter.measuring:
                    meter.mark("backward")
        self.strategy.gradients_ready()
        if meter.measuring:
            meter.mark("communication")
        self.interval.add(units=batch.units, samples=batch.samples)

    # ---- between steps -------------------------------------------------------------------------

    def _plan(self) -> None:
        """Look ahead."""
        question = self.state.next_question if self.strategy.world_size > 1 else None
        every = (self.settings.log_every, self.evaluate_every, self.save_every)
        self._due = Due.after(self.outcome.steps, end=self.end, every=every, question=question)

    def _between_steps(self, lr: float) -> bool:
        """Do what is due. Returns whether to go on with the next step."""
        step, reason, metrics = self.outcome.steps, "", None
        asked = self.state.asked_to_stop()
        if step >= self._due.log:
            point, wall_seconds = self._log(lr)
            wrong = self.divergence.judge(point)
            if wrong:
                self.state.roll_back(wrong)
                return False
            reason = self.rules.at_interval(point, wall_seconds=wall_seconds)
        if step == self.end:
            reason = reason or "epochs"
        if step >= self._due.evaluation or reason:
            metrics = self._evaluate()
            wrong = self.divergence.judge_evaluation(step, metrics["loss"])
            if wrong:
                self.state.roll_back(wrong)
                return False
            reason = reason or self.rules.at_evaluation(step, metrics["loss"])
            self.schedule.observe(metrics["loss"])
        if step >= self._due.save or reason:
            self.state.save(metrics or {}, last=bool(reason))
        elif asked:
            self.state.save({}, in_between=True)
        self.outcome.stop_reason = reason or ("asked to stop" if asked else "")
        self._plan()
        return not self.outcome.stop_reason

    def _log(self, lr: float) -> tuple[Point, float]:
        """One packed all-reduce: losses, failed checkpoints, wall time; the same on all ranks."""
        first = self.strategy.rank == 0
        losses, (failures, wall_seconds) = self.interval.losses(
            self.strategy, [float(self.state.failed()), self.state.seconds() if first else 0.0]
        )
        if failures:
            self.state.raise_failure()
        point = self.recorder.point(
            outcome=self.outcome,
            loss=self.interval.mean(losses),
            lr=lr,
            interval=self.interval,
            update=self.update,
        )
        self.outcome.skipped_steps = point.skipped_steps
        self.outcome.note(point)
        self.interval.clear()
        if first:
            self.on_point(point)
        return point, wall_seconds

    def _evaluate(self) -> dict[str, float]:
        strategy, autocast = self.strategy, self.precision.autocast
        strategy.synchronise_statistics()
        with self.techniques.evaluating():
            metrics = evaluate(
                self.task, self.module, self.validation, strategy=strategy, autocast=autocast
            )
        self.outcome.evaluations.append((self.outcome.steps, metrics))
        if strategy.rank == 0:
            self.on_evaluation(self.outcome.steps, metrics)
        return metrics
