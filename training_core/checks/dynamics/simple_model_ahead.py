"""Does a simple model get more out of the same tensors than the network?"""

from __future__ import annotations

import math

import numpy as np

from training_core.checks.contract import Check, Finding, NotApplicable
from training_core.checks.simple_models import (
    ROWS,
    Floats,
    prediction_losses,
    simple_losses,
)
from training_core.checks.subject import Subject
from training_core.evaluation import outputs_of
from training_core.examples import Examples

_MOST_FEATURES = 1000
_HELD_BACK = 2000
_EPOCHS, _MOST_STEPS = 10, 600
_BEYOND_NOISE = 3.0  # standard errors of the paired difference
_RELEVANT = 0.1  # of the network's loss
_NOTABLE = 0.05  # of what predicting the average loses


class SimpleModelAhead(Check):
    """Fits scikit-learn's models to what the network gets, on no more rows than it has."""

    name = "simple_model_ahead"
    looks_at = "no simple model on the same tensors is clearly ahead of the briefly trained network"
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
        network = self._network(subject, held)
        if network is None:
            raise NotApplicable("predictions do not have the shape that this kind of task has")
        losses, average = simple_losses(kind, train, held)
        if not losses:
            raise NotApplicable("the labels of the sample are all the same")
        own = prediction_losses(kind, network, train, held)
        table: list[dict[str, str | float]] = [
            {"model": name, "held-back loss": float(loss.mean())}
            for name, loss in {"the network": own, **losses}.items()
        ]
        best = min(losses, key=lambda name: float(losses[name].mean()))
        gain = own - losses[best]
        error = float(gain.std(ddof=1)) / math.sqrt(len(gain))
        ahead, limit = float(gain.mean()), _BEYOND_NOISE * error
        prior = float(average.mean())
        words = (
            f"on {len(held)} held-back rows the network loses {own.mean():.4g} after a short "
            f"training, {best} on the same tensors {losses[best].mean():.4g}"
        )
        said = {"measured": ahead, "limit": limit, "table": table}
        if ahead > limit and ahead > max(_RELEVANT * float(own.mean()), _NOTABLE * prior):
            return self.warned(
                words,
                advice="see whether the network drops inputs or spoils their scale, learns too "
                "slowly or is too small; or whether it needs longer than this",
                **said,
            )
        return self.passed(words, **said)

    @staticmethod
    def _network(subject: Subject, held: Examples) -> Floats | None:
        """Train for some epochs, as far as that is short; None: predictions of another shape."""
        epochs = _EPOCHS * len(subject.examples) // subject.batch_size
        steps = max(subject.settings.input_steps, min(epochs, _MOST_STEPS))
        model = (
            subject.train_briefly(subject.examples, steps=steps).model
            if steps > subject.settings.input_steps
            else subject.trained.model
        )
        outputs = outputs_of(model, held, device=subject.device)
        prediction = subject.task.predict(outputs).double().numpy()
        rows = (len(held),)
        fits = (
            prediction.ndim == 2
            if subject.task.kind == "multiclass"
            else (prediction.shape == (held.target.shape if prediction.ndim > 1 else rows))
        )
        return prediction if fits and np.isfinite(prediction).all() else None
