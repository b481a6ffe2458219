"""The training loop, top to bottom.

    outcome = Trainer(task=..., model=..., train=..., validation=..., settings=...,
                      strategy=..., checkpoints=...).fit()

Per step: microbatches forward and backward (loss divided by the step's global count of examples,
so accumulation, uneven ranks and a short last batch give the same gradient as one big batch), clip,
update. A step whose gradient is not finite is skipped on the device and counted. Between log
intervals nothing waits for the device and nothing is communicated but gradients.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import asdict

import torch
from torch import Tensor, nn

from training_core.checkpoint import Checkpoints
from training_core.errors import TrainingFailed
from training_core.evaluation import evaluate
from training_core.examples import Examples, StepBatch, step_batches, steps_in
from training_core.optim import build_optimiser, learning_rate
from training_core.outcome import Outcome, Point
from training_core.parallel import Strategy, unwrapped
from training_core.precision import choose_precision
from training_core.settings import TrainingSettings
from training_core.task import Task


def seed_everything(seed: int) -> None:
    """Seed Python's and torch's generators (on every device)."""
    random.seed(seed)
    torch.manual_seed(seed)


class Trainer:
    """Trains one model on one split.

    Args:
        task: Gives the loss and the metrics.
        model: Built by the task, with the same seed on every rank.
        train: The train split, the same on every rank.
        validation: Evaluated whole, every `settings.evaluate_every` steps.
        settings: How to train.
        strategy: The processes.
        checkpoints: Where state is kept; training goes on from the newest readable one.
        on_point: Called on rank 0 with each log interval's figures.
        on_evaluation: Called on rank 0 with each evaluation's step and metrics.
        should_stop: Asked at every log interval; all ranks stop when one says so.
    """

    def __init__(
        self,
        *,
        task: Task,
        model: nn.Module,
        train: Examples,
        validation: Examples,
        settings: TrainingSettings,
        strategy: Strategy,
        checkpoints: Checkpoints | None = None,
        on_point: Callable[[Point], None] = lambda point: None,
        on_evaluation: Callable[[int, dict[str, float]], None] = lambda step, metrics: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.task, self.train, self.validation = task, train, validation
        self.settings, self.strategy, self.checkpoints = settings, strategy, checkpoints
        self.on_point, self.on_evaluation, self.should_stop = on_point, on_evaluation, should_stop
        self.model = strategy.prepare(model)
        self.optimiser = build_optimiser(self.model, settings.optimiser)
        self.precision = choose_precision(settings.precision, strategy.device)
        self.total_samples = max(1, round(settings.epochs * len(train)))
        self.total_steps = steps_in(
            samples=self.total_samples, count=len(train), batch_size=settings.batch_size
        )
        self.evaluate_every = settings.evaluate_every or max(1, self.total_steps // 10)
        self.outcome = Outcome()
        self._skipped = torch.zeros((), device=strategy.device)

    # ---- the run -------------------------------------------------------------------------------

    def fit(self) -> Outcome:
        """Train to the end, from the newest checkpoint if there is one.

        Raises:
            TrainingFailed: Too many steps were not finite, or the validation loss is not.
        """
        seed_everything(self.settings.seed * 65_537 + self.strategy.rank + 1)
        self._resume()
        self.model.train()
        batches = step_batches(
            self.train,
            batch_size=self.settings.batch_size,
            accumulation=self.settings.accumulation,
            seed=self.settings.seed,
            samples=self.outcome.samples,
            rank=self.strategy.rank,
            world_size=self.strategy.world_size,
        )
        began, at_start = time.monotonic(), self.outcome.samples
        losses = torch.zeros((), dtype=torch.float64, device=self.strategy.device)
        norms = torch.zeros((), device=self.strategy.device)
        counted = steps = 0
        interval = time.monotonic()
        while self.outcome.steps < self.total_steps:
            batch = next(batches)
            rate = self._set_rate()
            loss, norm = self._step(batch)
            losses += loss
            norms += norm
            counted += batch.count
            steps += 1
            self.outcome.steps += 1
            self.outcome.samples = batch.samples_after
            last, stop = self.outcome.steps == self.total_steps, False
            if last or self.outcome.steps % self.settings.log_every == 0:
                stop = self._log(losses, norms, counted, steps, rate, time.monotonic() - interval)
                losses.zero_()
                norms.zero_()
                counted, steps, interval = 0, 0, time.monotonic()
            due = last or self.outcome.steps % self.evaluate_every == 0
            if due:
                self._evaluate()
            if stop and not last:
                self.outcome.stop_reason = "asked to stop"
                if not due:
                    self._save({})
                break
        else:
            self.outcome.stop_reason = "epochs"
        seconds = time.monotonic() - began
        if seconds > 0 and self.outcome.samples > at_start:
            self.outcome.samples_per_second = (self.outcome.samples - at_start) / seconds
        return self.outcome

    # ---- one step ------------------------------------------------------------------------------

    def _step(self, batch: StepBatch) -> tuple[Tensor, Tensor]:
        """Return this rank's summed loss (double) and the gradient norm, both on the device."""
        scaler = self.precision.scaler
        total = torch.zeros((), dtype=torch.float64, device=self.strategy.device)
        last = len(batch.microbatches) - 1
        for i, microbatch in enumerate(batch.microbatches):
            examples = microbatch.examples.to(self.strategy.device)
            weight = microbatch.weight.to(self.strategy.device)
            context = self.strategy.accumulate(self.model) if i < last else torch.enable_grad()
            with context:
                with self.precision.autocast():
                    outputs = self.model(**examples.arrays)
                summed = (self.task.loss(outputs.float(), examples.target) * weight).sum()
                scaler.scale(summed * (self.strategy.gradient_factor / batch.count)).backward()  # type: ignore[no-untyped-call]
            total += summed.detach().double()
        scaler.unscale_(self.optimiser)
        norm = nn.utils.clip_grad_norm_(
            self.model.parameters(), self.settings.optimiser.clip_norm
        ).detach()
        finite = torch.isfinite(norm)
        if scaler.is_enabled():
            scaler.step(self.optimiser)
            scaler.update()
        else:  # the fused optimiser leaves weights and moments alone where found_inf is 1
            self.optimiser.grad_scale = None  # type: ignore[attr-defined]
            self.optimiser.found_inf = (~finite).float()  # type: ignore[attr-defined]
            self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self._skipped += (~finite).float()
        return torch.where(finite, total, torch.zeros_like(total)), norm.nan_to_num(0.0, 0.0, 0.0)

    def _set_rate(self) -> float:
        rate = learning_rate(
            self.outcome.steps,
            steps=self.total_steps,
            peak=self.settings.optimiser.lr,
            schedule=self.settings.schedule,
        )
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        return rate

    # ---- between steps -------------------------------------------------------------------------

    def _log(
        self, losses: Tensor, norms: Tensor, counted: int, steps: int, rate: float, seconds: float
    ) -> bool:
        """One packed all-reduce: loss and the wish to stop. Returns whether to stop."""
        wish = torch.tensor(float(self.should_stop()), dtype=torch.float64, device=losses.device)
        packed = self.strategy.sum_(torch.stack([losses, wish])).tolist()
        skipped = int(self._skipped.item())
        self.outcome.skipped_steps = skipped
        if skipped > self.settings.max_skipped:
            raise TrainingFailed(
                f"training diverged: {skipped} steps up to step {self.outcome.steps} had gradients "
                f"that are not finite (allowed: {self.settings.max_skipped})",
                hint="lower training.optimiser.lr, and look for features or a loss that can "
                "become infinite (log of 0, division by 0)",
            )
        point = Point(
            step=self.outcome.steps,
            loss=packed[0] / counted,
            lr=rate,
            gradient_norm=float(norms.item()) / steps,
            samples_per_second=counted / max(seconds, 1e-9),
        )
        self.outcome.curve.append(point)
        if self.strategy.rank == 0:
            self.on_point(point)
        return bool(packed[1] > 0)

    def _evaluate(self) -> None:
        metrics = evaluate(
            self.task, unwrapped(self.model), self.validation, strategy=self.strategy
        )
        if not metrics["loss"] < float("inf"):
            raise TrainingFailed(
                f"training diverged: the validation loss at step {self.outcome.steps} is "
                f"{metrics['loss']}",
                hint="lower training.optimiser.lr; the checkpoints before this step are kept",
            )
        self.outcome.evaluations.append((self.outcome.steps, metrics))
        if self.strategy.rank == 0:
            self.on_evaluation(self.outcome.steps, metrics)
        self._save(metrics)

    # ---- state ---------------------------------------------------------------------------------

    def _save(self, metrics: dict[str, float]) -> None:
        if self.checkpoints is None:
            return
        state = {
            "model": unwrapped(self.model).state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "scaler": self.precision.scaler.state_dict(),
            "skipped": int(self._skipped.item()),
            "curve": [asdict(point) for point in self.outcome.curve],
            "evaluations": self.outcome.evaluations,
        }
        rank_state = {"torch": torch.get_rng_state()}
        if self.strategy.device.type == "cuda":
            rank_state["cuda"] = torch.cuda.get_rng_state(self.strategy.device)
        self.checkpoints.save(
            step=self.outcome.steps,
            samples=self.outcome.samples,
            metrics=metrics,
            state=state,
            rank_state=rank_state,
            strategy=self.strategy,
        )
        if self.strategy.rank == 0:
            self.checkpoints.retain(self.settings.checkpoints)

    def _resume(self) -> None:
        """Go on from the newest checkpoint that is whole on all ranks."""
        if self.checkpoints is None:
            return
        found = self.checkpoints.newest(self.strategy)
        if found is None:
            return
        manifest, state, own = found.manifest, found.state, found.rank_state
        unwrapped(self.model).load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.precision.scaler.load_state_dict(state["scaler"])
        self._skipped.fill_(state["skipped"])
        self.outcome = Outcome(
            steps=manifest.step,
            samples=manifest.samples,
            resumed_from=manifest.step,
            skipped_steps=state["skipped"],
            curve=[Point(**point) for point in state["curve"]],
            evaluations=[(step, metrics) for step, metrics in state["evaluations"]],
        )
        if own is not None:
            torch.set_rng_state(own["torch"])
            if "cuda" in own and self.strategy.device.type == "cuda":
                torch.cuda.set_rng_state(own["cuda"], self.strategy.device)
        else:  # another number of ranks: fresh random states that depend on the step
            seed_everything(
                (self.settings.seed * 65_537 + self.strategy.rank + 1) * 1_000_003 + manifest.step
            )
