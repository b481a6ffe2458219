"""Weight decay against learning: which parameters decay, and how much of them over the run."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from training_core.checks.graph.update_trace import Trace
from training_core.checks.subject import Subject
from training_core.optim.groups import NORMS
from training_core.optim.schedules import make_schedule

# The largest in use is 0.3 (Dosovitskiy et al. 2021, arXiv:2010.11929, table 3); 0.01 to 0.1 is
# usual for AdamW (Loshchilov & Hutter 2019, arXiv:1711.05101), far less where it is coupled.
LARGEST = 0.5


@dataclass(frozen=True)
class Decay:
    """How weights decay.

    Attributes:
        largest: Largest decay of any group.
        lost: Share of a weight that decay alone would take away over the planned run.
        against_learning: Decay's part of a step against learning's, median over parameters, at the
            peak rate; None: nothing decays.
        exempt: Norms, biases and vectors that decay all the same.
    """

    largest: float
    lost: float
    against_learning: float | None
    exempt: list[str]


def decay_of(subject: Subject, trace: Trace) -> Decay:
    """Return how the weights of a traced model decay."""
    largest = max(trace.decays.values(), default=0.0)
    settings = subject.training
    schedule = make_schedule(settings.schedule, settings.optimiser, steps=subject.steps)
    asked = torch.linspace(0, subject.steps - 1, min(subject.steps, 200)).long().tolist()
    mean_rate = sum(schedule.at(step).lr for step in asked) / len(asked)
    share = min(1.0, mean_rate * largest)
    return Decay(
        largest=largest,
        lost=1 - (1 - share) ** subject.steps,
        against_learning=_against_learning(subject, trace),
        exempt=[name for name in never_decaying(trace.model) if trace.decays.get(name, 0.0) > 0],
    )


def never_decaying(model: nn.Module) -> list[str]:
    """Name norms' parameters, biases and vectors: decay would only rescale, or pull to zero."""
    return [
        f"{prefix}.{name}" if prefix else name
        for prefix, module in model.named_modules()
        for name, parameter in module.named_parameters(recurse=False)
        if isinstance(module, NORMS) or parameter.ndim < 2 or name.split("_")[0] == "bias"
    ]


def _against_learning(subject: Subject, trace: Trace) -> float | None:
    """Only where decay is a step of its own; in the gradient it cannot be told apart."""
    if subject.training.optimiser.name in ("adam", "sgd"):
        return None
    ratios = []
    for name, parameter in trace.parameters.items():
        decay = trace.decays.get(name, 0.0)
        if not decay or not trace.steps:
            continue
        before, now = trace.before[name].double(), parameter.detach().double()
        kept = (1 - subject.training.optimiser.lr * decay) ** trace.steps
        decayed, moved = (1 - kept) * before.norm(), (now - kept * before).norm()
        if float(moved) > 0:
            ratios.append(float(decayed / moved))
    return float(torch.tensor(ratios).median()) if ratios else None
