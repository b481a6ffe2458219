"""Every parameter gets a gradient and changes; none is frozen, forgotten or decayed by mistake."""

from __future__ import annotations

from torch import nn

from training_core.checks.chance import state_of
from training_core.checks.contract import Check, Finding
from training_core.checks.graph.calling import after_training, listed
from training_core.checks.graph.decay import LARGEST, decay_of
from training_core.checks.graph.never_trained import (
    called_modules,
    differing,
    forgotten,
    outputs_depend_on,
    shaken,
    unregistered,
    unsaved_state_matters,
)
from training_core.checks.graph.slopes import wrong_slopes
from training_core.checks.graph.update_trace import Trace, trace_updates
from training_core.checks.subject import Subject

LARGE_SHARE = 0.5  # of all weights that are frozen: said aloud
TABLED = 200
FAINT = 1e-5  # of the largest gradient: of a matrix, less may be rounding

Problem = tuple[str, str]  # what is wrong, and what to do


class ParametersTrain(Check):
    name = "parameters_train"
    looks_at = "every parameter is in one optimiser group, gets a gradient and learns"
    costs = "training"

    def look(self, subject: Subject) -> Finding:
        trace = trace_updates(subject)
        wrong, doubtful = [*_unsaved(subject, trace)], []
        for find in (_frozen, _without_gradient, _slopes, _not_finite, _groups, _decay):
            failing, warning = find(subject, trace)
            wrong += failing
            doubtful += warning
        table = _table(trace)
        count = len(trace.parameters)
        if wrong:
            text = "; ".join(what for what, _ in [*wrong, *doubtful])
            return self.failed(text, advice=wrong[0][1], table=table, measured=len(wrong), limit=0)
        if doubtful:
            text = "; ".join(what for what, _ in doubtful)
            return self.warned(text, advice=doubtful[0][1], table=table)
        return self.passed(
            f"each of {count} parameters gets a gradient and moves within {trace.steps} steps",
            measured=0,
            limit=0,
            table=table,
        )


def _unsaved(subject: Subject, trace: Trace) -> list[Problem]:
    """Weights that are no parameters: gradients may reach them, no optimiser does."""
    if not trace.strangers and not unsaved_state_matters(subject):
        return []
    names = trace.strangers or [*unregistered(trace.model)] or ["something random"]
    what = listed(names)
    advice = "hold layers in nn.ModuleList, weights in nn.Parameter, constants in register_buffer"
    return [(f"outputs depend on what is neither parameter nor buffer: {what}", advice)]


def _frozen(subject: Subject, trace: Trace) -> tuple[list[Problem], list[Problem]]:
    """What never moves by design: fine if it was loaded, wrong if it is random."""
    model, other = trace.model, subject.build(1)
    frozen = [n for n, p in trace.parameters.items() if not p.requires_grad]
    still = trace.unmoved(frozen)
    buffers = trace.unmoved([name for name, _ in model.named_buffers()])
    wrong: list[Problem] = []
    doubtful: list[Problem] = []
    others = state_of(other)

    def matter(names: list[str], *, training: bool = False) -> bool:
        values = {name: others[name] for name in names}
        return outputs_depend_on(subject, model, values, training=training)

    random = differing(subject.build(0), other, still)
    if random and matter(random):
        what = f"random and never trained: {listed(_modules(random))}"
        advice = "call requires_grad_(True) on what is to learn, and load what is to stay"
        own = len(random) == 1 and not _is_torchs(model, random[0])
        (doubtful if own else wrong).append((what, advice))
    random = differing(subject.build(0), other, buffers)
    if random and matter(random):
        what = f"buffers that are random and never change: {listed(random)}"
        advice = "update them in training (EMA), or make them parameters if they are to learn"
        (doubtful if matter(random, training=True) else wrong).append((what, advice))
    weights = {name: p.numel() for name, p in trace.parameters.items()}
    share = sum(weights[name] for name in still) / max(1, sum(weights.values()))
    if share > LARGE_SHARE and not wrong:
        what = f"{share:.0%} of the weights are frozen: {listed(_modules(still))}"
        doubtful.append((what, "call requires_grad_(True) on them if they are to learn"))
    return wrong, doubtful


def _without_gradient(subject: Subject, trace: Trace) -> tuple[list[Problem], list[Problem]]:
    """Trained parameters that no gradient reaches, or only zeros."""
    wrong: list[Problem] = []
    doubtful: list[Problem] = []
    trained = {name: p for name, p in trace.parameters.items() if p.requires_grad and p.numel()}
    none = [n for n in trained if not trace.gradients.get(n) and n not in trace.not_finite]
    faint = FAINT * max(trace.gradients.values(), default=0.0)
    none += [n for n in trained if 0 < trace.gradients.get(n, 0.0) < faint and _is_matrix(trace, n)]
    if not none or not trace.steps:
        if none:
            wrong.append(("the loss has no gradient at all", "look for detach() or no_grad()"))
        return wrong, doubtful
    called = called_modules(subject, trace.model)
    detached, unused, idle, void = [], [], [], []
    for owner in _modules(none):
        names = [name for name in none if owner in (name.rpartition(".")[0], name)]
        if outputs_depend_on(subject, trace.model, shaken(trace.model, names)):
            detached += [name for name in names if not trace.gradients.get(name)]
        elif forgotten(trace.model, names[0], called):
            unused += names
        elif names[0].rpartition(".")[0] in called and _is_void(subject, trace, names):
            void += names
        else:
            idle += names
    if void:
        what = f"called, and without influence on outputs: {listed(_modules(void))}"
        advice = (
            "see what becomes of its result: thrown away, or behind it a softmax or a norm over "
            "one single value, which is constant"
        )
        wrong.append((what, advice))
    if detached:
        doubt = [n for n in detached if n in trace.reached and _may_be_padding(trace.model, n)]
        sure = [name for name in detached if name not in doubt]
        if sure:
            what = f"outputs depend on it, but no gradient reaches: {listed(sure)}"
            wrong.append((what, "look for detach(), no_grad(), rounding, and units that are dead"))
        idle += doubt
    if unused:
        what = f"never called in training: {listed(_modules(unused))}"
        wrong.append((what, "call it in forward, or take it out of the model"))
    if idle:
        what = f"without gradient, and without influence on outputs: {listed(idle)}"
        doubtful.append((what, "see whether it is meant to be used"))
    return wrong, doubtful


def _slopes(subject: Subject, trace: Trace) -> tuple[list[Problem], list[Problem]]:
    """Gradients that are only a part of what outputs do."""
    found = wrong_slopes(subject, after_training(subject))
    if not found:
        return [], []
    worst = max(found, key=lambda slope: abs(slope.measured - slope.said))
    what = (
        f"gradients are not the slopes of the outputs: {listed([slope.name for slope in found])} "
        f"(that of {worst.name} is {worst.said:.3g}, and moving it says {worst.measured:.3g})"
    )
    advice = "look for detach() and no_grad() within forward, as of a state between its steps"
    return [(what, advice)], []


def _not_finite(subject: Subject, trace: Trace) -> tuple[list[Problem], list[Problem]]:
    if not trace.not_finite:
        return [], []
    steps = max(trace.not_finite.values())
    what = f"gradients not finite in {steps} of {trace.steps} steps: {listed([*trace.not_finite])}"
    problem = (what, "look for log, sqrt and division at zero, and for inputs without a scale")
    return ([problem], []) if 2 * steps >= trace.steps else ([], [problem])


def _groups(subject: Subject, trace: Trace) -> tuple[list[Problem], list[Problem]]:
    """In exactly one group, and moved by it."""
    trained = [name for name, p in trace.parameters.items() if p.requires_grad and p.numel()]
    advice = "build the optimiser of all that model.parameters() gives, each once"
    wrong: list[Problem] = []
    missing = [name for name in trained if not trace.groups.get(name)]
    if missing:
        wrong.append((f"in no optimiser group: {listed(missing)}", advice))
    twice = [name for name, count in trace.groups.items() if count > 1]
    if twice:
        wrong.append((f"in several optimiser groups: {listed(twice)}", advice))
    with_gradient = [name for name in trained if trace.gradients.get(name, 0.0) > 0]
    still = [name for name in trace.unmoved(with_gradient) if name not in missing]
    if still and max(trace.not_finite.values(), default=0) < trace.steps:
        what = f"has gradients and does not move in {trace.steps} steps: {listed(still)}"
        wrong.append((what, "see that the learning rate is not far too small, and what is updated"))
    return wrong, []


def _decay(subject: Subject, trace: Trace) -> tuple[list[Problem], list[Problem]]:
    if not trace.steps:
        return [], []
    decay = decay_of(subject, trace)
    wrong: list[Problem] = []
    if decay.exempt:
        what = f"norms and biases decay (weight decay {decay.largest:g}): {listed(decay.exempt)}"
        wrong.append((what, "let only matrices, kernels and embeddings decay"))
    against = decay.against_learning
    measured = "" if against is None else f", {against:.2g} times what learning moves at first"
    over = f"{decay.lost:.0%} of each weight over the run{measured}"
    advice = "set training.optimiser.weight_decay to 0.01 to 0.1"
    if decay.largest >= LARGEST:
        wrong.append((f"weight decay {decay.largest:g} (limit {LARGEST:g}) takes {over}", advice))
    elif against is not None and against > 1 and decay.lost > 0.5:
        return wrong, [(f"weight decay {decay.largest:g} outweighs learning: {over}", advice)]
    return wrong, []


def _table(trace: Trace) -> list[dict[str, str | float]]:
    """One row a parameter, in the model's order."""
    return [
        {
            "parameter": name,
            "shape": "×".join(map(str, parameter.shape)) or "1",
            "trained": "yes" if parameter.requires_grad else "frozen",
            "gradient": trace.gradients.get(name, 0.0),
            "change": trace.change(name),
            "weight decay": trace.decays.get(name, 0.0),
        }
        for name, parameter in list(trace.parameters.items())[:TABLED]
    ]


def _modules(names: list[str]) -> list[str]:
    """The modules that hold some parameters, in order."""
    return list(dict.fromkeys(name.rpartition(".")[0] or name for name in names))


def _is_matrix(trace: Trace, name: str) -> bool:
    """Say whether it is a matrix, a kernel or a table, of which a part at least is always in use.

    Of a table with a padding only that may be.
    """
    owner = trace.model.get_submodule(name.rpartition(".")[0])
    padded = isinstance(owner, nn.Embedding) and owner.padding_idx is not None
    return trace.parameters[name].ndim >= 2 and not padded


def _is_void(subject: Subject, trace: Trace, names: list[str]) -> bool:
    """Say whether matrices are without influence in any network: not only for a gate was shut."""
    if not any(_is_matrix(trace, name) for name in names):
        return False
    others = (subject.build(seed).eval() for seed in (1, 2))
    return not any(outputs_depend_on(subject, model, shaken(model, names)) for model in others)


def _is_torchs(model: nn.Module, name: str) -> bool:
    owner = model.get_submodule(name.rpartition(".")[0])
    return type(owner).__module__.startswith("torch.")


def _may_be_padding(model: nn.Module, name: str) -> bool:
    """Say whether a table's only row in use may be the padding, which is meant to stay."""
    owner = model.get_submodule(name.rpartition(".")[0])
    return isinstance(owner, nn.Embedding) and owner.padding_idx is not None
