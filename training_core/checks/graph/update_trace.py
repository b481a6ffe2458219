"""A few steps with the trainer's own update, and what became of each parameter."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import Parameter

from training_core.augmentation import augmentation_of
from training_core.checks.chance import state_of
from training_core.checks.graph.never_trained import unregistered
from training_core.checks.short_training import mean_loss
from training_core.checks.subject import Subject
from training_core.feeds.order import order
from training_core.optim.shapes import Rate
from training_core.optim.update import Update
from training_core.parallel.single import SingleProcess

LEAST, MOST = 4, 16  # steps: what starts at zero hides what lies behind it for a step or two


@dataclass
class Trace:
    """What became of a model's parameters.

    Attributes:
        model: After the steps, in train mode.
        before: Its parameters and buffers at the beginning, by name.
        steps: Steps taken.
        reached: Names that a gradient reached, be it of zeros.
        gradients: Largest gradient of each parameter over all steps, whatever its sign.
        not_finite: Steps in which a parameter's gradient was not finite, by name.
        groups: In how many groups of the optimisers each parameter is.
        decays: Weight decay of each parameter's group.
        strangers: Attributes whose tensors gradients reach, and that are no parameters.
    """

    model: nn.Module
    before: dict[str, Tensor]
    steps: int = 0
    reached: set[str] = field(default_factory=set)
    gradients: dict[str, float] = field(default_factory=dict)
    not_finite: dict[str, int] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)
    decays: dict[str, float] = field(default_factory=dict)
    strangers: list[str] = field(default_factory=list)

    @property
    def parameters(self) -> dict[str, Parameter]:
        """All parameters by name, tied ones once."""
        return dict(self.model.named_parameters())

    def change(self, name: str) -> float:
        """Return the largest change of a parameter or buffer; NaN counts as one."""
        now = {**dict(self.model.named_buffers()), **self.parameters}[name].detach()
        before = self.before[name]
        if not now.numel() or now.shape != before.shape:
            return 0.0 if now.shape == before.shape else math.inf
        moved = (now.double() - before.double()).abs().max()
        return float(moved.nan_to_num(nan=math.inf))

    def unmoved(self, names: list[str]) -> list[str]:
        """Return those that are what they were."""
        return [name for name in names if self.change(name) == 0]


def trace_updates(subject: Subject) -> Trace:
    """Take a few steps at the peak rate, with the planned decay, clipping and augmentation.

    It ends once every trained parameter has had a gradient other than zero and has moved.
    """
    training = subject.training
    model = subject.build()
    trace = Trace(model, state_of(model))
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not trained:
        return trace
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    strategy = SingleProcess(subject.device)
    update = Update(model, training.optimiser, strategy=strategy, scaler=scaler)
    _note_groups(trace, update)
    augment = augmentation_of(subject.task, seed=training.seed)
    rows = order(seed=0, epoch=0, count=len(subject.examples))
    model.train()
    for step in range(MOST):
        first = step * subject.batch_size % max(1, len(rows) - subject.batch_size + 1)
        chosen = rows[first : first + subject.batch_size]
        batch = augment(subject.examples.take(chosen), sample=step, part=0)
        loss = mean_loss(subject.task, model(**batch.clone().arrays), batch)
        if not loss.requires_grad:
            break
        if step == 0:
            trace.strangers = _strangers(loss, model)
        found = torch.autograd.grad(loss, list(trained.values()), allow_unused=True)
        for (name, parameter), gradient in zip(trained.items(), found, strict=True):
            _note_gradient(trace, name, gradient)
            _set_gradient(parameter, gradient)
        update.set_rate(Rate(training.optimiser.lr))
        update.step()
        trace.steps = step + 1
        if trace.steps >= LEAST and all(trace.gradients.get(n, 0) > 0 for n in trained):
            break
    return trace


def _note_groups(trace: Trace, update: Update) -> None:
    names = {id(parameter): name for name, parameter in trace.parameters.items()}
    for optimiser in update.optimisers:
        for group in optimiser.param_groups:
            for parameter in group["params"]:
                name = names.get(id(parameter), "")
                trace.groups[name] = trace.groups.get(name, 0) + 1
                decay = float(group.get("weight_decay", 0.0))
                trace.decays[name] = max(decay, trace.decays.get(name, 0.0))


def _note_gradient(trace: Trace, name: str, gradient: Tensor | None) -> None:
    if gradient is None:
        return
    trace.reached.add(name)
    size = float(gradient.detach().abs().max()) if gradient.numel() else 0.0
    if not math.isfinite(size):
        trace.not_finite[name] = trace.not_finite.get(name, 0) + 1
        size = 0.0
    trace.gradients[name] = max(size, trace.gradients.get(name, 0.0))


def _set_gradient(parameter: Parameter, gradient: Tensor | None) -> None:
    """As backward does: into the buffer, where gradients are views of one."""
    if parameter.grad is None:
        parameter.grad = gradient
    elif gradient is not None:
        parameter.grad.copy_(gradient)


def _strangers(loss: Tensor, model: nn.Module) -> list[str]:
    """Name what a model holds outside its parameters though the loss's graph ends there."""
    hidden = unregistered(model)
    if not hidden:
        return []
    known = {id(parameter) for parameter in model.parameters()}
    open_nodes, seen, leaves = [loss.grad_fn], set(), set()
    while open_nodes:
        node = open_nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaves.add(id(getattr(node, "variable", None)))
        open_nodes += [following for following, _ in node.next_functions]
    strange = leaves - known
    return [name for name, tensors in hidden.items() if any(id(t) in strange for t in tensors)]
