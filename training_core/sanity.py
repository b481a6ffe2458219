"""Sanity checks of training code: silent bugs found before the long run.

Each check is a function of (task, settings, ...) that returns a `Finding`. The three here come from
Karpathy's "A Recipe for Training Neural Networks" (2019): the loss at initialisation is what theory
says, one batch can be overfitted, and the inputs help.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from training_core.evaluation import outputs_of
from training_core.examples import Examples
from training_core.feeds.order import order
from training_core.optim.optimisers import build_optimisers
from training_core.settings import CheckSettings, TrainingSettings
from training_core.task import Task

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Finding:
    """What a check found.

    Attributes:
        measured: The figure looked at; None if it could not be taken.
        limit: What it is held against.
        curves: Loss by step, by name.
    """

    name: str
    verdict: Literal["pass", "warn", "fail", "skipped"]
    measured: float | None
    limit: float | None
    message: str
    curves: dict[str, list[tuple[int, float]]] = field(default_factory=dict)


def loss_at_initialisation(
    task: Task, build: Callable[[], nn.Module], examples: Examples, settings: CheckSettings
) -> Finding:
    """An untrained binary model should lose about log 2, or the prior's entropy if its last bias
    is set from the prior; much more means a wrong scale, less means the labels leak."""
    torch.manual_seed(0)
    outputs = outputs_of(build(), examples, device=CPU)
    loss = float(task.loss(outputs, examples.target).double().mean())
    rate = float(examples.target.double().mean())
    entropy = -sum(p * math.log(p) for p in (rate, 1 - rate) if p > 0)
    high = math.log(2) * (1 + settings.init_tolerance)
    low = entropy * (1 - settings.init_tolerance)
    words = (
        f"the untrained model loses {loss:.4f}; theory says between {entropy:.4f} "
        f"(it knows the prior) and {math.log(2):.4f} (it knows nothing)"
    )
    if not math.isfinite(loss) or loss > high:
        return Finding(
            "loss_at_initialisation",
            "fail",
            _finite(loss),
            high,
            f"{words}. Look at the scale of the inputs and of the last layer, and at the loss.",
        )
    if loss < low:
        return Finding(
            "loss_at_initialisation",
            "fail",
            loss,
            low,
            f"{words}. It is better than any model without training can be: is the label among "
            "the features, or the loss averaged over the wrong axis?",
        )
    return Finding("loss_at_initialisation", "pass", loss, high, words + ".")


def overfit_one_batch(
    task: Task,
    build: Callable[[], nn.Module],
    examples: Examples,
    settings: CheckSettings,
    training: TrainingSettings,
) -> Finding:
    """A healthy network without dropout learns a few rows by heart, down to the noise floor that
    rows with equal inputs and different labels leave."""
    rows = _balanced(examples.target, settings.overfit_rows)
    batch = examples.take(rows)
    floor = _noise_floor(task, batch)
    limit = settings.overfit_loss + floor
    curve: list[tuple[int, float]] = []
    for factor in (1, 10):  # a rate that suits large batches may be slow on a small one
        torch.manual_seed(0)
        model = build()
        _without_dropout(model)
        curve = _train(
            task,
            model,
            batch,
            steps=settings.overfit_steps,
            batch_size=len(rows),
            training=_with_rate(training, factor),
            stop_below=limit,
        )
        if curve[-1][1] <= limit:
            break
    best = min(loss for _, loss in curve)
    words = f"{len(rows)} rows overfitted to a loss of {best:.4f} in {curve[-1][0]} steps"
    if best <= limit:
        return Finding("overfit_one_batch", "pass", best, limit, words + ".", {"one batch": curve})
    first = curve[0][1]
    if best < 0.65 * first:  # an output squashed twice gets to 0.695 of it at best
        return Finding(
            "overfit_one_batch",
            "warn",
            best,
            limit,
            f"{words}, not below {limit:.4f}: it learns, but the network may be too small to "
            "learn by heart.",
            {"one batch": curve},
        )
    if not math.isfinite(curve[-1][1]) or curve[-1][1] > 2 * first:
        cause = "the loss grows: the learning rate is too high, or the loss has the wrong sign"
    elif best > 0.95 * first:
        cause = "the loss does not move: look for a detached graph, frozen parameters, or a loss "
        cause += "that does not use the outputs"
    else:
        cause = "the loss stalls: look for labels that do not belong to their rows, an output "
        cause += "that is squashed twice, or a network that is too small"
    return Finding(
        "overfit_one_batch",
        "fail",
        _finite(best),
        limit,
        f"{words}, not below {limit:.4f}: {cause}.",
        {"one batch": curve},
    )


def learns_from_inputs(
    task: Task,
    build: Callable[[], nn.Module],
    examples: Examples,
    settings: CheckSettings,
    training: TrainingSettings,
) -> Finding:
    """Trained on real inputs, the network must beat itself trained on inputs dealt to the wrong
    rows, on held-back rows, by more than two standard errors of the paired difference."""
    shuffled = order(seed=1, epoch=0, count=len(examples))
    held_back = max(1, len(examples) // 5)
    train, test = shuffled[held_back:], shuffled[:held_back]
    real = examples.take(train)
    mixed = train[order(seed=2, epoch=0, count=len(train))]
    blind = Examples(examples.take(mixed).arrays, real.target)
    losses: dict[str, Tensor] = {}
    curves = {}
    for name, data in (("real inputs", real), ("inputs of other rows", blind)):
        torch.manual_seed(0)
        model = build()
        curves[name] = _train(
            task,
            model,
            data,
            steps=settings.input_steps,
            batch_size=min(training.batch_size, len(train)),
            training=training,
        )
        outputs = outputs_of(model, examples.take(test), device=CPU)
        losses[name] = task.loss(outputs, examples.target[test]).double()
    gains = losses["inputs of other rows"] - losses["real inputs"]
    gain = float(gains.mean())
    noise = 2 * float(gains.std()) / math.sqrt(len(gains))
    words = (
        f"real inputs gain {gain:.4f} of loss on held-back rows over inputs of other rows "
        f"(two standard errors: {noise:.4f})"
    )
    if gain > noise:
        return Finding("learns_from_inputs", "pass", gain, noise, words + ".", curves)
    return Finding(
        "learns_from_inputs",
        "fail",
        _finite(gain),
        noise,
        f"{words}: the network learns no more than the label's rate. Are features and labels "
        "joined by the right key, and do the inputs reach the outputs?",
        curves,
    )


def _train(
    task: Task,
    model: nn.Module,
    examples: Examples,
    *,
    steps: int,
    batch_size: int,
    training: TrainingSettings,
    stop_below: float = -math.inf,
) -> list[tuple[int, float]]:
    """Train at a constant rate and return the loss by step."""
    settings = training.optimiser.model_copy(update={"weight_decay": 0.0})
    optimisers = build_optimisers(model, settings)
    model.train()
    curve: list[tuple[int, float]] = []
    permutation = order(seed=0, epoch=0, count=len(examples))
    position = epoch = 0
    for step in range(steps):
        if position + batch_size > len(examples):
            position, epoch = 0, epoch + 1
            permutation = order(seed=0, epoch=epoch, count=len(examples))
        batch = examples.take(permutation[position : position + batch_size])
        position += batch_size
        loss = task.loss(model(**batch.arrays), batch.target).mean()
        value = float(loss.detach())
        curve.append((step, value))
        if value < stop_below or not math.isfinite(value) or not loss.requires_grad:
            break
        model.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if settings.clip_norm:
            nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
        for optimiser in optimisers:
            optimiser.step()
    return curve


def _with_rate(training: TrainingSettings, factor: float) -> TrainingSettings:
    rate = training.optimiser.lr * factor
    optimiser = training.optimiser.model_copy(update={"lr": rate})
    return training.model_copy(update={"optimiser": optimiser})


def _balanced(target: Tensor, count: int) -> Tensor:
    """Rows of one batch, half of them of each class as far as there are enough."""
    positive = torch.nonzero(target >= 0.5).flatten()
    negative = torch.nonzero(target < 0.5).flatten()
    half = min(count // 2, len(positive))
    return torch.cat([positive[:half], negative[: count - half]])


def _noise_floor(task: Task, batch: Examples) -> float:
    """Loss that no network can get below: rows with equal inputs share one prediction.

    Only rows whose equals have another label add to it: what a broken loss says of the others must
    not raise the limit that it is held against.
    """
    flat = np.concatenate(
        [a.reshape(len(batch), -1).numpy().astype(np.float64) for a in batch.arrays.values()], 1
    )
    _, groups = np.unique(flat, axis=0, return_inverse=True)
    rates = np.bincount(groups, weights=batch.target.numpy()) / np.bincount(groups)
    probability = np.clip(rates[groups], 1e-6, 1 - 1e-6)
    logits = torch.from_numpy(np.log(probability / (1 - probability)).astype(np.float32))
    mixed = torch.from_numpy((rates[groups] > 0) & (rates[groups] < 1))
    return float((task.loss(logits, batch.target) * mixed).mean())


def _without_dropout(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.p = 0.0


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def input_independent(
    task: Task, model: nn.Module, train: Examples, *, steps: int, training: TrainingSettings
) -> nn.Module:
    """Train a copy of the network on inputs without information; the baseline of baselines.

    Every input is replaced by zeros, so all the network can learn is the label's
    rate. Returns the trained copy; call it on `without_information` inputs.
    """
    torch.manual_seed(training.seed)
    blind = copy.deepcopy(model)
    _train(
        task,
        blind,
        without_information(train),
        steps=steps,
        batch_size=min(training.batch_size, len(train)),
        training=training,
    )
    return blind


def without_information(examples: Examples) -> Examples:
    """Replace every input by zeros (categories: the index of what was never seen)."""
    arrays = {name: torch.zeros_like(array) for name, array in examples.arrays.items()}
    return Examples(arrays, examples.target)
