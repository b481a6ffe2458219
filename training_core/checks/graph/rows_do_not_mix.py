"""A row's output is its own: it depends on no other row of the batch."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from training_core.checks.chance import batch_norms, state_of
from training_core.checks.contract import Check, Finding, Heat, NotApplicable
from training_core.checks.graph.calling import (
    after_training,
    change_by_row,
    largest,
    listed,
    outputs_of,
    place_of,
    rounding,
)
from training_core.checks.graph.tracing import calls_of, first_to_part
from training_core.checks.subject import Subject
from training_core.determinism import seed_everything
from training_core.examples import Examples

# Beyond rounding: the same rows in another batch are added up in another order.
SLACK = 10.0
SHARE = 1e-4  # of the largest output
GRADIENT_SHARE = 1e-6  # of a row's own gradient; a row that does not mix has exact zeros
ADVICE = (
    "look for view, reshape or transpose that moves the batch axis, for softmax, mean or norm over "
    "dim 0, and for attention without batch_first=True"
)


class RowsDoNotMix(Check):
    name = "rows_do_not_mix"
    looks_at = "in eval mode a row's output depends on no other row, in any batch; BatchNorm apart"

    def look(self, subject: Subject) -> Finding:
        model = after_training(subject)
        rows = _pairs(subject, model)
        count = len(rows) // 2
        kept, others = rows.take(slice(0, count)), rows.take(slice(count, 2 * count))
        outputs = outputs_of(model, kept)
        if outputs.ndim == 0 or len(outputs) != count:
            return self.failed(
                f"{count} rows have outputs of shape {tuple(outputs.shape)}", advice=ADVICE
            )
        limit = max(SLACK * rounding(subject, model, kept), SHARE * largest(outputs))
        heat = _influences(model, kept, others)
        mixed = max(_reach(heat), _others_replaced(model, kept, others))
        told = {"measured": mixed, "limit": limit, "heat": _chart(heat)}
        if mixed > limit:
            return self.failed(
                f"with other rows beside it a row's output moves by {mixed:.3g} in eval mode, in "
                f"{_culprit(model, kept, others)}",
                advice=ADVICE,
                **told,
            )
        foreign = _foreign_gradient(model, kept)
        if foreign > GRADIENT_SHARE:
            return self.failed(
                f"the gradient of a row's output has {foreign:.2g} of its size in inputs of other "
                "rows, in eval mode",
                advice=ADVICE,
                **{**told, "measured": foreign, "limit": GRADIENT_SHARE},
            )
        return self._in_other_batches(model, kept, limit, told) or self._in_training(
            subject, model, kept, others, told
        )

    def _in_other_batches(
        self, model: nn.Module, rows: Examples, limit: float, told: dict[str, object]
    ) -> Finding | None:
        """Compare the outputs of the same rows in another order, in fewer, and alone."""
        outputs = outputs_of(model, rows)
        if change_by_row(outputs, outputs_of(model, rows, seed=None)).max() > 0:
            return None  # chance is drawn by the batch: nothing to compare
        count = len(rows)
        ways = {
            "in reverse order": torch.arange(count).flip(0),
            f"in a batch of {count // 2 + 1}": torch.arange(count // 2 + 1),
            "alone": torch.arange(1),
        }
        for how, chosen in ways.items():
            alone = len(chosen) == 1
            try:
                found = outputs_of(model, rows.take(chosen))
            except Exception as error:
                if not alone:
                    raise
                return self._not_alone(f"raises {type(error).__name__}", told)
            if found.shape != outputs[chosen].shape:
                said = f"has outputs of shape {tuple(found.shape)}"
                if alone:
                    return self._not_alone(said, told)
                return self.failed(f"{len(chosen)} rows {how}: it {said}", advice=ADVICE, **told)
            moved = float(change_by_row(outputs[chosen], found).max())
            if moved > limit:
                return self.failed(
                    f"a row's output moves by {moved:.3g} when it comes {how}",
                    advice=ADVICE,
                    **{**told, "measured": moved},
                )
        return None

    def _not_alone(self, said: str, told: dict[str, object]) -> Finding:
        return self.warned(
            f"for a single row the network {said}",
            advice="name the axis that is taken away, as in squeeze(1): squeeze() takes the batch "
            "away where it has one row",
            **told,
        )

    def _in_training(
        self,
        subject: Subject,
        model: nn.Module,
        rows: Examples,
        others: Examples,
        told: dict[str, object],
    ) -> Finding:
        """In train mode BatchNorm mixes and is meant to; what else mixes is named."""
        limit = float(told["limit"])  # type: ignore[arg-type]
        model.train()
        meant = list(batch_norms(model))
        set_aside = list(meant)
        while True:
            for name in set_aside:
                model.get_submodule(name).eval()
            outputs = outputs_of(model, rows)
            limit = max(limit, SHARE * largest(outputs))
            mixed = _others_replaced(model, rows, others)
            if mixed <= limit:
                break
            name = _culprit_name(model, rows, others) or ""
            if not name or name in set_aside or not _keeps_statistics(model, name, rows):
                return self.warned(
                    f"in eval mode rows do not mix, in train mode an output moves by {mixed:.3g} "
                    f"with other rows beside it, in {place_of(model, name)}, which is no "
                    "BatchNorm",
                    advice="see that what happens only in training is meant to look at the batch",
                    **{**told, "measured": mixed},
                )
            set_aside.append(name)
        said = f"no output of {len(rows)} rows depends on another row"
        if set_aside:
            named = listed([place_of(model, name) for name in set_aside], limit=3)
            said += f"; in train mode {named} mixes them, as it is meant to"
        return self.passed(said, **told)


def _pairs(subject: Subject, model: nn.Module) -> Examples:
    """Return rows and as many others, so many that no other axis has their number."""
    batch = subject.batch(2)
    taken = {size for array in batch.arrays.values() for size in array.shape[1:]}
    taken |= set(outputs_of(model, batch).shape[1:])
    half = len(subject.examples) // 2
    count = next((n for n in range(min(7, half), half + 1) if n not in taken), min(7, half))
    if count < 1:
        raise NotApplicable("there is a single row")
    return subject.batch(2 * count)


def _influences(model: nn.Module, rows: Examples, others: Examples) -> Tensor:
    """Return how far each output moves when one row is replaced, float32 [replaced, output]."""
    before = outputs_of(model, rows)
    return torch.stack(
        [
            change_by_row(before, outputs_of(model, _mixture(rows, others, replaced=[i])))
            for i in range(len(rows))
        ]
    )


def _others_replaced(model: nn.Module, rows: Examples, others: Examples) -> float:
    """Return how far a row's output moves at most when all other rows are replaced."""
    before = outputs_of(model, rows)
    count = len(rows)
    return max(
        float(change_by_row(before, outputs_of(model, mixture))[kept])
        for kept, mixture in _kept_alone(rows, others, range(count))
    )


def _kept_alone(rows: Examples, others: Examples, which: range) -> Iterator[tuple[int, Examples]]:
    for kept in which:
        replaced = [i for i in range(len(rows)) if i != kept]
        yield kept, _mixture(rows, others, replaced=replaced)


def _mixture(rows: Examples, others: Examples, *, replaced: list[int]) -> Examples:
    mixture = rows.clone()
    for name, array in mixture.arrays.items():
        array[replaced] = others.arrays[name][replaced]
    return mixture


def _reach(heat: Tensor) -> float:
    apart = heat.clone()
    apart.fill_diagonal_(0.0)
    return float(apart.max())


def _chart(heat: Tensor) -> Heat:
    """Shares of what a row does to its own output."""
    own = heat.diagonal().max().clamp_min(1e-30)
    names = [f"row {i + 1}" for i in range(len(heat))]
    values: list[list[float | None]] = (heat / own).clamp(max=1.0).tolist()
    return Heat(rows=names, columns=[f"output {i + 1}" for i in range(len(heat))], values=values)


def _foreign_gradient(model: nn.Module, rows: Examples) -> float:
    """Return the largest share that inputs of other rows have in the gradient of rows' outputs."""
    arrays = {
        name: array.clone().requires_grad_(array.is_floating_point())
        for name, array in rows.arrays.items()
    }
    leaves = [array for array in arrays.values() if array.requires_grad]
    if not leaves:
        return 0.0
    seed_everything(0)
    # a copy of each: the model may write to its inputs, which a leaf does not allow
    outputs = model(**{name: array.clone() for name, array in arrays.items()}).float()
    if not outputs.requires_grad:
        return 0.0
    half = len(rows) // 2
    parts = (slice(0, half), slice(half, None))
    share = 0.0
    for own, foreign in (parts, parts[::-1]):
        weighted = (outputs * torch.rand_like(outputs))[own].sum()
        gradients = torch.autograd.grad(weighted, leaves, retain_graph=True, allow_unused=True)
        for gradient in gradients:
            if gradient is not None:
                sizes = gradient.nan_to_num(0.0, 0.0, 0.0).abs()
                largest_own = float(sizes[own].max()) if sizes[own].numel() else 0.0
                largest_foreign = float(sizes[foreign].max()) if sizes[foreign].numel() else 0.0
                if largest_foreign > 0:
                    share = max(share, largest_foreign / max(largest_own, largest_foreign))
    return share


def _culprit(model: nn.Module, rows: Examples, others: Examples) -> str:
    return place_of(model, _culprit_name(model, rows, others) or "")


def _culprit_name(model: nn.Module, rows: Examples, others: Examples) -> str | None:
    """Return the first module in which what belongs to a row changes with the other rows."""
    before = calls_of(model, rows)
    count = len(rows)
    for kept, mixture in _kept_alone(rows, others, range(min(count, 4))):

        def alike(one: Tensor, other: Tensor, row: int = kept) -> bool:
            if one.shape != other.shape or one.ndim == 0 or len(one) != count:
                return True  # not by row: says nothing
            return torch.allclose(
                one[row].double(), other[row].double(), rtol=1e-3, atol=1e-6, equal_nan=True
            )

        found = first_to_part(before, calls_of(model, mixture), alike=alike)
        if found is not None:
            return found
    return None


def _keeps_statistics(model: nn.Module, name: str, rows: Examples) -> bool:
    """Say whether a module's own buffers follow the batches in train mode, as BatchNorm's do."""
    module = model.get_submodule(name)
    before = {key: value for key, value in state_of(module).items() if value.is_floating_point()}
    buffers = {key for key, _ in module.named_buffers()}
    outputs_of(model, rows)
    after = state_of(module)
    return any(key in buffers and not torch.equal(before[key], after[key]) for key in before)
