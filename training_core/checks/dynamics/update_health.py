"""Do the weights move as they should: updates, activations and gradients, layer by layer.

Sources: Karpathy's makemore lectures (update-to-weight ratios about 0.001, saturation), Goodfellow,
Bengio and Courville, Deep Learning (2016), chapters 8 and 11.
"""

from __future__ import annotations

import copy
import math
from statistics import median

from training_core.checks.contract import Check, Finding
from training_core.checks.dynamics.activations import Scale, Stuck, flow
from training_core.checks.dynamics.optimiser_sense import optimiser_sense
from training_core.checks.dynamics.watched import Watched, watched
from training_core.checks.losses import rows_at_once
from training_core.checks.matrices import weight_matrices
from training_core.checks.subject import Subject

_ROWS = 512
_GROWTH = 1e4  # over the depth; a healthy network keeps within some 100
_VANISHED = 1e-5
_FEW_UNITS = 8  # of so few, many may be stuck by chance, or be a gate that is closed
_MOST_STUCK, _MANY_STUCK = 0.8, 0.5
_LARGE, _LARGER_THAN_WEIGHTS, _SMALL = 0.2, 1.0, 1e-6  # updates over weights; healthy: about 0.001


class UpdateHealth(Check):
    """Watches a short training and looks into the network before and after it."""

    name = "update_health"
    looks_at = "updates are small beside the weights; no layer is stuck, explodes or is damped"
    costs = "training"

    def look(self, subject: Subject) -> Finding:
        seen = watched(subject)
        rows = rows_at_once(subject, seen.model, subject.examples)
        batch = subject.batch(min(_ROWS, rows), seed=4)
        before, _ = flow(subject, subject.build(0), batch)
        after, stuck = flow(subject, copy.deepcopy(seen.model), batch)
        ratios = {name: median(values) for name, values in seen.updates.items()}
        table = _table(seen, ratios, after, stuck)
        wrong = (
            _not_finite(seen, after)
            or _exploding(before, "untrained")
            or _exploding(after, "trained")
            or _stuck(stuck, _MOST_STUCK, few=_FEW_UNITS)
        )
        largest = max(ratios, key=lambda name: ratios[name], default="")
        if not wrong and largest and ratios[largest] > _LARGER_THAN_WEIGHTS:
            wrong = _Wrong(
                f"the updates of {largest} are {ratios[largest]:.2g} times as large as its weights",
                "lower training.optimiser.lr, or look at how its weights are initialised",
            )
        if wrong:
            return self.failed(wrong.message, advice=wrong.advice, table=table)
        middle = median(ratios.values()) if ratios else None
        odd = _stuck(stuck, _MANY_STUCK, few=2) or _unusual(ratios, after)
        if odd:
            return self.warned(
                odd.message, advice=odd.advice, table=table, measured=middle, limit=_LARGE
            )
        setting, advice = optimiser_sense(subject, seen)
        if setting:
            return self.warned(setting, advice=advice, table=table, measured=middle, limit=_LARGE)
        words = "" if middle is None else f"the median update is {middle:.2g} of the weights; "
        return self.passed(
            f"{words}no layer is stuck, nothing vanishes or explodes over {len(after)} layers",
            measured=middle,
            limit=_LARGE,
            table=table,
        )


class _Wrong:
    def __init__(self, message: str, advice: str) -> None:
        self.message, self.advice = message, advice


def _not_finite(seen: Watched, scales: list[Scale]) -> _Wrong | None:
    advice = "look at the inputs, the loss and the learning rate"
    for name, norms in seen.gradients.items():
        if not all(map(math.isfinite, norms)):
            return _Wrong(f"the gradient of {name} is not finite", advice)
    for scale in scales:
        if not math.isfinite(scale.outputs):
            return _Wrong(f"the outputs of {scale.layer} are not finite", advice)
    return None


def _exploding(scales: list[Scale], state: str) -> _Wrong | None:
    """What is given out last has the target's scale, so only hidden layers are compared."""
    hidden = [s for s in scales[:-1] if s.outputs > 0]
    advice = "normalise between layers, or initialise the weights by their number of inputs"
    smallest = math.inf
    for scale in hidden:
        if scale.outputs > _GROWTH * smallest and scale.outputs > _GROWTH:
            return _Wrong(
                f"activations of the {state} network grow from {smallest:.2g} to "
                f"{scale.outputs:.2g} by {scale.layer}",
                advice,
            )
        smallest = min(smallest, scale.outputs)
    # Gradient times outputs: what a layer counts for, whatever scale a norm after it takes away.
    # Against the layer nearest to the loss: one on a branch may well have next to none.
    backwards = [(s.layer, s.gradient * s.outputs) for s in reversed(hidden) if s.gradient > 0]
    for layer, counts in backwards:
        if counts > _GROWTH * backwards[0][1]:
            return _Wrong(
                f"gradients of the {state} network, times what a layer gives out, grow from "
                f"{backwards[0][1]:.2g} to {counts:.2g} on the way back to {layer}",
                advice,
            )
    return None


def _stuck(stuck: list[Stuck], share: float, *, few: int) -> _Wrong | None:
    worst = max((s for s in stuck if s.units >= few), key=lambda s: s.share, default=None)
    if worst is None or worst.share < share:
        return None
    return _Wrong(
        f"{worst.share:.0%} of the {worst.units} units of {worst.where} are at an end of their "
        "range for every row: they are dead or saturated, and learn nothing more",
        "lower the learning rate, or look at the scale of the inputs, weights and biases before it",
    )


def _unusual(ratios: dict[str, float], scales: list[Scale]) -> _Wrong | None:
    for name, ratio in ratios.items():
        if ratio > _LARGE:
            return _Wrong(
                f"the updates of {name} are {ratio:.2g} of its weights; about 0.001 is usual",
                "see whether a lower learning rate does better",
            )
    if ratios and max(ratios.values()) < _SMALL:
        return _Wrong(
            f"the largest update is {max(ratios.values()):.2g} of its weights; about 0.001 is "
            "usual",
            "see whether a higher learning rate does better",
        )
    gradients = [s for s in scales[:-1] if s.gradient > 0]
    if gradients and gradients[0].gradient < _VANISHED * gradients[-1].gradient:
        first, last = gradients[0], gradients[-1]
        return _Wrong(
            f"the gradient vanishes from {last.gradient:.2g} at {last.layer} to "
            f"{first.gradient:.2g} at {first.layer}",
            "add residual connections or normalisation, or use another activation",
        )
    return None


def _table(
    seen: Watched, ratios: dict[str, float], scales: list[Scale], stuck: list[Stuck]
) -> list[dict[str, str | float]]:
    rows: dict[str, dict[str, str | float]] = {
        s.layer: {"layer": s.layer, "outputs": s.outputs, "gradient by outputs": s.gradient}
        for s in scales
    }
    for name in weight_matrices(seen.model):
        if name in ratios:
            layer = name.rpartition(".")[0] or name
            rows.setdefault(layer, {"layer": layer})["update / weights"] = ratios[name]
    for unit in stuck:
        rows.setdefault(unit.where, {"layer": unit.where})["stuck units"] = unit.share
    return list(rows.values())
