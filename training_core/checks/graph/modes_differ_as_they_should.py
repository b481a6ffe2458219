"""Eval mode draws nothing and changes nothing; train mode differs by dropout and BatchNorm only."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from training_core.checks.chance import batch_norms, dropouts, state_of, without_dropout
from training_core.checks.contract import Check, Finding
from training_core.checks.graph.calling import (
    after_training,
    change_by_row,
    copy_of,
    largest,
    listed,
    outputs_of,
    place_of,
    rounding,
)
from training_core.checks.graph.evaluation_trace import edited_arrays, traces_of_evaluation
from training_core.checks.graph.outputs_dropped import outputs_dropped
from training_core.checks.graph.tracing import calls_of, first_to_part
from training_core.checks.subject import Subject
from training_core.examples import Examples

ROWS = 64
DRAWS = 10  # calls in which dropout has to show
HIGH, MOST = 0.75, 0.9  # dropped: 0.5 is usual at most; 0.9 is what other libraries keep
SLACK, SHARE = 10.0, 1e-4  # of rounding, and of the largest output

Problem = tuple[str, str]  # what is wrong, and what to do; beside it, whether that is sure


class ModesDifferAsTheyShould(Check):
    name = "modes_differ_as_they_should"
    looks_at = "eval mode repeats itself and leaves no trace; train mode differs as meant"

    def look(self, subject: Subject) -> Finding:
        batch = subject.batch(ROWS)
        looks = (_in_place, _left_behind, _repeats, _drops_out, _throws_away, _agrees, _traces)
        found = [problem for look in looks for problem in look(subject, batch)]
        wrong = [problem for problem, sure in found if sure]
        text = "; ".join(what for (what, _), _ in found)
        if wrong:
            return self.failed(text, advice=wrong[0][1], measured=len(wrong), limit=0)
        if found:
            return self.warned(text, advice=found[0][0][1])
        rates = dropouts(subject.build())
        said = f"{len(rates)} dropout layers drop in train mode only; " if rates else ""
        return self.passed(
            f"{said}eval mode repeats itself, and evaluation leaves no trace", measured=0, limit=0
        )


def _in_place(subject: Subject, batch: Examples) -> Iterator[tuple[Problem, bool]]:
    """The model writes to its inputs."""
    model = subject.build()
    for mode in ("train", "eval"):
        model.train(mode == "train")
        edited = edited_arrays(model, batch)
        if edited:
            what = f"the forward changes its inputs in place in {mode} mode: {listed(edited)}"
            yield (what, "write x = x - m, not x -= m, and clone() before x[...] = …"), True
            return


def _left_behind(subject: Subject, batch: Examples) -> Iterator[tuple[Problem, bool]]:
    """train() and eval() reach all modules, if the model has none of its own that forget some."""
    model = subject.build()
    model.train()
    model.eval()
    stay = [name for name, module in model.named_modules() if module.training]
    if stay:
        sure = any(name in dropouts(model) or name in batch_norms(model) for name in stay)
        what = f"after eval() in train mode: {listed(_places(model, stay))}"
        yield (what, "call super().train(mode) in the model's own train()"), sure
    model.train()
    stay = [name for name, module in model.named_modules() if not module.training]
    if not stay:
        return
    rates, norms = dropouts(model), batch_norms(model)
    dropped = [name for name in stay if name in rates and not _is_of_frozen(model, name)]
    unset = [name for name in stay if name in norms and _never_set(norms[name])]
    what = f"after train() in eval mode: {listed(_places(model, dropped + unset or stay))}"
    advice = "call super().train(mode) in the model's own train(), and let it return self"
    if dropped or unset:
        yield (what, advice), True
    elif any(name in rates or name in norms for name in stay):
        yield (what, "see that they are meant to stay so, as loaded statistics may"), False


def _repeats(subject: Subject, batch: Examples) -> Iterator[tuple[Problem, bool]]:
    """In eval mode two calls have the same outputs."""
    model = after_training(subject)
    before = outputs_of(model, batch)
    moved = float(change_by_row(before, outputs_of(model, batch, seed=None)).max())
    if moved <= SHARE * largest(before):
        return
    first, second = calls_of(model, batch), calls_of(model, batch, seed=None)
    name = first_to_part(first, second, alike=_alike) or ""
    what = f"in eval mode two calls differ by {moved:.3g}, in {place_of(model, name)}"
    yield (what, "give dropout its mode: F.dropout(x, training=self.training)"), True


def _drops_out(subject: Subject, batch: Examples) -> Iterator[tuple[Problem, bool]]:
    """In train mode a model with dropout draws."""
    model = after_training(subject).train()
    rates = {n: p for n, p in dropouts(model).items() if model.get_submodule(n).training}
    if not rates:
        return
    high = {name: rate for name, rate in rates.items() if rate >= HIGH}
    if high:
        most = max(high.values())
        what = f"dropout takes away {most:.0%}: {listed(_places(model, list(high)))}"
        yield (what, "give torch's dropout the share to drop, not the share to keep"), most >= MOST
    # BatchNorm's statistics move in train mode, and may not pass for chance
    for norm in batch_norms(model).values():
        norm.eval()
    before = outputs_of(model, batch)
    for seed in range(1, DRAWS + 1):
        if float(change_by_row(before, outputs_of(model, batch, seed=seed)).max()) > 0:
            return
    called = {call.name for call in calls_of(model, batch)}
    dropping = [name for name in rates if name in called]
    what = f"in train mode {DRAWS} calls are equal, in spite of dropout: {listed(list(rates))}"
    advice = "see that dropout is called, and that its result is what goes on"
    yield (what, advice), bool(dropping)


def _throws_away(subject: Subject, batch: Examples) -> Iterator[tuple[Problem, bool]]:
    """In train mode outputs are not dropped themselves."""
    model = after_training(subject)
    dropped = outputs_dropped(model, batch)
    if dropped:
        most = max(dropped, key=lambda each: each.share)
        rates = dropouts(model).values()
        what = (
            f"in train mode {len(dropped)} outputs of a row are exactly {most.value:.4g} in up to "
            f"{most.share:.0%} of the passes, at random in every row, and never in eval mode: they "
            f"are dropped behind the last layer (output {most.place})"
        )
        # where a few units before a bias are all dropped, the bias is left: that may be meant
        sure = most.value == 0 or any(abs(most.share - rate) <= most.error for rate in rates)
        yield (what, "put dropout before the last layer, not on the outputs"), sure


def _agrees(subject: Subject, batch: Examples) -> Iterator[tuple[Problem, bool]]:
    """With dropout off and BatchNorm in eval mode, train mode is eval mode.

    Not for what draws by itself, nor for layers of the model's own that keep statistics; what they
    do to the loss is looked at after training.
    """
    model = without_dropout(subject.build())
    model.train()
    for norm in batch_norms(model).values():
        norm.eval()
    buffers = state_of(model)
    one, other = outputs_of(model, batch), outputs_of(model, batch, seed=None)
    after = state_of(model)
    keeps = any(not torch.equal(buffers[name], after[name]) for name in buffers)
    if keeps or float(change_by_row(one, other).max()) > 0:
        return
    apart = float(change_by_row(one, outputs_of(model.eval(), batch)).max())
    limit = max(SLACK * rounding(subject, model, batch), SHARE * largest(one))
    if apart > limit:
        what = (
            f"without dropout and BatchNorm outputs of train and eval mode are {apart:.3g} apart "
            f"(limit {limit:.2g}), in {_parting(subject, model, batch)}"
        )
        advice = "do the same in both modes: what is normalised or scaled in one is so in the other"
        yield (what, advice), True


def _parting(subject: Subject, model: nn.Module, batch: Examples) -> str:
    trained = copy_of(subject, model)
    trained.train()
    for norm in batch_norms(trained).values():
        norm.eval()
    calls = calls_of(trained, batch), calls_of(model.eval(), batch)
    return place_of(model, first_to_part(*calls, alike=_alike) or "")


def _traces(subject: Subject, batch: Examples) -> Iterator[tuple[Problem, bool]]:
    """Evaluation leaves all as it was."""
    found, doubtful = traces_of_evaluation(subject, batch)
    for what in found:
        yield (
            (f"evaluation leaves a trace: {what}", "evaluate in eval mode, without gradient"),
            True,
        )
    for what in doubtful:
        yield (f"evaluation {what}", "draw nothing at random in eval mode"), False


def _alike(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return False
    return torch.allclose(one.double(), other.double(), rtol=1e-4, atol=1e-6, equal_nan=True)


def _places(model: nn.Module, names: list[str]) -> list[str]:
    return [place_of(model, name) if name else type(model).__name__ for name in names]


def _never_set(norm: nn.Module) -> bool:
    """Say whether running statistics are what they are in a new layer: mean 0, variance 1."""
    mean, variance = norm.running_mean, norm.running_var
    if not isinstance(mean, Tensor) or not isinstance(variance, Tensor):
        return False
    return not mean.any() and bool((variance == 1).all())


def _is_of_frozen(model: nn.Module, name: str) -> bool:
    """Say whether a module belongs to a part whose weights are all frozen, such as a teacher."""
    path = name.split(".")
    parts = [model.get_submodule(".".join(path[:end])) for end in range(1, len(path))]
    frozen = [[p.requires_grad for p in part.parameters()] for part in parts]
    return any(trained and not any(trained) for trained in frozen)
