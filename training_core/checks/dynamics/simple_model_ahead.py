"""Does a simple model get more out of the same tensors than the network?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from training_core.checks.contract import Check, Finding, NotApplicable
from training_core.checks.dynamics.planned import trained_as_planned
from training_core.checks.recalibrated import recalibrated
from training_core.checks.simple_models import (
    ROWS,
    Floats,
    is_linear,
    prediction_losses,
    simple_losses,
)
from training_core.checks.subject import Subject
from training_core.evaluation import outputs_of
from training_core.examples import Examples

_MOST_FEATURES = 1000
_HELD_BACK = 2000
_EPOCHS, _MOST_STEPS = 10, 600
_BEYOND_NOISE, _BEYOND_DOUBT = 3.0, 4.0  # standard errors of the paired difference
_RELEVANT = 0.1  # of the network's loss
_NOTABLE = 0.05  # of what predicting the average loses
_TWICE, _CLEARLY = 2.0, 1.25  # times as much learned


class SimpleModelAhead(Check):
    """Fits scikit-learn's models to what the network gets, on no more rows than it has."""

    name = "simple_model_ahead"
    looks_at = "no simple model on the same tensors is clearly ahead of the network as planned"
    costs = "training"

    def look(self, subject: Subject) -> Finding:
        kind = subject.task.kind
        if kind == "sequence":
            raise NotApplicable("simple models of scikit-learn do not predict sequences")
        features = sum(array[0].numel() for array in subject.examples.arrays.values())
        if features > _MOST_FEATURES:
            raise NotApplicable(
                f"{features} inputs are too many for a simple model ({_MOST_FEATURES})"
            )
        train, held = subject.batch(ROWS, seed=9), subject.held_back.take(slice(0, _HELD_BACK))
        if len(held) < 20 or len(train) < 40:
            raise NotApplicable("there are too few rows to compare models on")
        model = trained_as_planned(subject)
        losses, average = simple_losses(kind, train, held)
        if not losses:
            raise NotApplicable("the labels of the sample are all the same")
        network = Network.of(subject, model or _briefly_trained(subject), train, held)
        if network is None:
            raise NotApplicable("predictions do not have the shape that this kind of task has")
        return self._judge(network, losses, float(average.mean()), subject, planned=bool(model))

    def _judge(
        self,
        network: Network,
        losses: dict[str, Floats],
        prior: float,
        subject: Subject,
        *,
        planned: bool,
    ) -> Finding:
        own = float(network.held_back.mean())
        best = min(losses, key=lambda name: float(losses[name].mean()))
        ahead, error = _ahead(network.held_back, losses[best])
        how = f"the {subject.steps} planned steps" if planned else "a short training"
        words = (
            f"on {len(network.held_back)} held-back rows the network loses {own:.4g} after {how}, "
            f"{best} on the same tensors {losses[best].mean():.4g}, and the average {prior:.4g}"
        )
        said: dict[str, Any] = {
            "measured": ahead,
            "limit": _BEYOND_NOISE * error,
            "table": [
                {"model": name, "held-back loss": float(loss.mean())}
                for name, loss in {"the network": network.held_back, **losses}.items()
            ],
        }
        linear = min(
            (name for name in losses if is_linear(name)), key=lambda n: float(losses[n].mean())
        )
        squared = subject.task.kind == "regression"
        sure = planned and _ahead_beyond_doubt(network, losses[linear], squared=squared)
        learned = 1 - float(losses[linear].mean()) / prior if sure else 0.0
        on_held_back = 1 - own / prior if sure else 0.0
        if learned > max(_NOTABLE, _TWICE * max(on_held_back, network.learned)):
            return self.failed(
                f"{words}; {linear} loses {losses[linear].mean():.4g}: that is more "
                "than twice of what the network learns, even of the rows that it is trained on",
                advice="look for inputs that do not reach the outputs or are lost on the way, a "
                "loss or an augmentation that parts inputs and labels, and dropout on the last "
                "layers",
                **said,
            )
        relevant = max(_RELEVANT * own, _NOTABLE * prior)
        clearly = learned > max(_NOTABLE, _CLEARLY * on_held_back)
        if clearly or ahead > max(_BEYOND_NOISE * error, relevant):
            return self.warned(
                words,
                advice="see whether the network drops inputs or spoils their scale, learns too "
                "slowly or is too small" + ("" if planned else "; or whether it needs longer"),
                **said,
            )
        return self.passed(words, **said)


@dataclass(frozen=True)
class Network:
    """What the network's predictions lose, counted as simple models' are.

    Attributes:
        held_back: By row, float64 [N]: of predictions as they are, or put right by what train rows
            say of their level and sharpness, whichever is better.
        learned: Share of the average's loss that it gains on rows that it is trained on.
    """

    held_back: Floats
    learned: float

    @classmethod
    def of(
        cls, subject: Subject, model: nn.Module, train: Examples, held: Examples
    ) -> Network | None:
        """Return what it loses; None: predictions of another shape, or not finite."""
        kind = subject.task.kind
        known, new = (_predictions(subject, model, rows) for rows in (train, held))
        if known is None or new is None:
            return None
        labels = train.target.numpy()
        right = recalibrated(kind, known, labels, new)
        on_held = min(
            (prediction_losses(kind, each, train, held) for each in (new, right)), key=np.mean
        )
        constant = np.broadcast_to(known.mean(0), known.shape)
        own, average = (
            prediction_losses(kind, recalibrated(kind, each, labels, each), train, train).mean()
            for each in (known, constant)
        )
        return cls(on_held, 1 - float(own) / max(float(average), 1e-12))


def _predictions(subject: Subject, model: nn.Module, rows: Examples) -> Floats | None:
    outputs = outputs_of(model, rows, device=subject.device)
    found: Floats = subject.task.predict(outputs).double().numpy()
    shape = rows.target.shape if found.ndim > 1 else (len(rows),)
    fits = found.ndim == 2 if subject.task.kind == "multiclass" else found.shape == shape
    return found if fits and np.isfinite(found).all() else None


def _ahead(one: Floats, other: Floats) -> tuple[float, float]:
    """Return by how much the other loses less, row by row, and its standard error."""
    gain = one - other
    return float(gain.mean()), float(gain.std(ddof=1)) / math.sqrt(len(gain))


def _ahead_beyond_doubt(network: Network, simple: Floats, *, squared: bool) -> bool:
    """Say whether a linear model loses less; of squared errors a few rows may decide, so absolute
    ones have to say the same."""
    pairs = [(network.held_back, simple)]
    if squared:
        pairs.append((np.sqrt(network.held_back), np.sqrt(simple)))
    return all(gain > _BEYOND_DOUBT * error for gain, error in (_ahead(*pair) for pair in pairs))


def _briefly_trained(subject: Subject) -> nn.Module:
    """Train for some epochs, as far as that is short."""
    epochs = _EPOCHS * len(subject.examples) // subject.batch_size
    steps = max(subject.short_steps, min(epochs, _MOST_STEPS))
    cut = subject.short_steps < subject.settings.input_steps  # there is no time for more
    if cut or steps == subject.short_steps:
        return subject.trained.model
    return subject.train_briefly(subject.examples, steps=steps).model
