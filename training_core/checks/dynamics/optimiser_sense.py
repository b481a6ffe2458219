"""Settings of the optimiser that leave little of a step, held against the gradients that there are.

Sources: Kingma & Ba 2015 (Adam: step sizes, bias correction, epsilon); Loshchilov & Hutter 2019
(decoupled weight decay); Pascanu et al. 2013 (clipping by the norm).
"""

from __future__ import annotations

from statistics import median

from training_core.checks.dynamics.watched import Watched
from training_core.checks.subject import Subject
from training_core.optim.settings import OptimiserSettings

_ADAMS = ("adam", "adamw", "nadam", "muon")  # muon: of what is no matrix
_WITH_EPS = ("adam", "adamw", "nadam")
_DECOUPLED = ("adamw", "sgd", "muon")  # the rate times the decay is what a weight loses in a step
_SHORT_RUN = 30  # steps, of which every average is a large part
_HALF = 0.5  # of the run: gradients of its first half would steer its second one
_ALL_DAMPED = 10.0  # epsilon over gradients: steps are a tenth and less
_HARD, _ALWAYS = 10.0, 0.9  # norm over its limit, in that share of steps
_SOON_FORGOTTEN = 50  # steps in which weight decay alone takes two thirds of a weight


def optimiser_sense(subject: Subject, seen: Watched) -> tuple[str, str]:
    """Say which setting of the optimiser makes no sense, and what to do; empty: none."""
    settings = subject.training.optimiser
    found = (
        _memory(settings, steps=subject.steps)
        or _decay(settings)
        or _clipping(settings, seen)
        or _epsilon(settings, seen)
    )
    return found or ("", "")


def _memory(settings: OptimiserSettings, *, steps: int) -> tuple[str, str] | None:
    """Averages of gradients that reach farther back than makes sense."""
    adam = settings.name in _ADAMS
    first, second = settings.betas
    shown = f"[{first:g}, {second:g}]"
    if adam and first > second:
        return (
            f"training.optimiser.betas are {shown}: the direction is an average of the last "
            f"{1 / (1 - first):.0f} gradients and the size one of the last {1 / (1 - second):.0f}, "
            "the wrong way round",
            "usual are [0.9, 0.999], and [0.9, 0.95] for language models",
        )
    key, beta = (
        ("momentum", settings.momentum)
        if settings.name in ("sgd", "muon")
        else (f"betas {shown}: the first", first)
    )
    memory = 1 / (1 - beta)
    if settings.name != "adafactor" and steps >= _SHORT_RUN and memory > _HALF * steps:
        return (
            f"training.optimiser.{key} {beta:g} averages {memory:.0f} gradients, and the run "
            f"has {steps} steps",
            "0.9 is usual: an average of 10 gradients",
        )
    return None


def _decay(settings: OptimiserSettings) -> tuple[str, str] | None:
    lost = settings.lr * settings.weight_decay
    if settings.name not in _DECOUPLED or lost * _SOON_FORGOTTEN < 1:
        return None
    return (
        f"training.optimiser.weight_decay {settings.weight_decay:g} takes {lost:.2g} of a weight "
        f"in a step (times lr {settings.lr:g}): what is learned is forgotten in {1 / lost:.0f} "
        "steps",
        "0.01 to 0.1 is usual with adamw, 0.0001 to 0.001 with sgd",
    )


def _clipping(settings: OptimiserSettings, seen: Watched) -> tuple[str, str] | None:
    """A limit far below all gradients; Adam divides by their size, and does not care."""
    if not settings.clip_norm or settings.name != "sgd" or not seen.norms:
        return None
    hard = [norm > _HARD * settings.clip_norm for norm in seen.norms]
    if sum(hard) < _ALWAYS * len(hard):
        return None
    usual = median(seen.norms)
    return (
        f"training.optimiser.clip_norm {settings.clip_norm:g} scales every step down: the usual "
        f"norm of the gradients is {usual:.3g}, so the rate is in truth "
        f"{settings.clip_norm / usual:.2g} of training.optimiser.lr",
        "set clip_norm to about the largest norm of healthy steps, and the rate by itself",
    )


def _epsilon(settings: OptimiserSettings, seen: Watched) -> tuple[str, str] | None:
    """Beside so large an epsilon the gradient's own size is nothing: steps shrink with it."""
    if settings.name not in _WITH_EPS:
        return None
    sizes = dict(seen.model.named_parameters())
    roots = [
        median(norms) / max(1, sizes[name].numel()) ** 0.5
        for name, norms in seen.gradients.items()
        if name in sizes and median(norms) > 0
    ]
    if not roots:
        return None
    usual = median(roots)
    if settings.clip_norm:
        usual *= min(1.0, settings.clip_norm / max(median(seen.norms), 1e-300))
    if settings.eps < _ALL_DAMPED * usual:
        return None
    return (
        f"training.optimiser.eps {settings.eps:g} is {settings.eps / usual:.3g} times the usual "
        f"gradient of a weight ({usual:.2g}): steps are that much smaller than "
        "training.optimiser.lr says",
        "1e-8 is usual; where gradients are as small, look at the scale of the loss and the "
        "targets, and at clip_norm",
    )
