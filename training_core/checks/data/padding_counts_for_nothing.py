"""Padding changes nothing: neither what is predicted elsewhere nor the loss."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from training_core.checks.contract import Check, Finding, NotApplicable
from training_core.checks.data.attention import answer_to_padding
from training_core.checks.data.padding import Padding, find_padding, trailing
from training_core.checks.subject import Subject
from training_core.evaluation import outputs_of
from training_core.examples import Examples
from training_core.task import PADDING

_ROWS = 64
_CHANGE = 1e-3  # of the outputs' deviation: far above rounding, far below what a mask is for
_MUCH = 0.02  # of it: more than the edge of a convolution
_APART = 4  # positions beyond the end that a convolution may still read
_FAR = 8  # rows that have more padding than that


class PaddingCountsForNothing(Check):
    """Metamorphic: other tokens, and less padding, must leave what is not padded as it was."""

    name = "padding_counts_for_nothing"
    looks_at = "padded positions reach neither the other positions nor the loss"
    costs = "training"

    def look(self, subject: Subject) -> Finding:
        padding = find_padding(subject)
        if padding is None:
            raise NotApplicable("no array of tokens is padded")
        runs = _runs_of_all(subject.examples, padding)
        rows = torch.argsort(runs, descending=True, stable=True)[:_ROWS]
        rows = rows[padding.runs[rows] > 0]
        batch = subject.examples.take(rows)
        padding = Padding(padding.name, padding.token, padding.runs[rows])
        positions = padding.within(batch.arrays[padding.name].shape[1])
        where = f"{padding.name!r} is padded with {padding.token}"
        finding = self._target(subject, batch, positions, where)
        if finding is not None:
            return finding
        return self._inputs(subject, batch, padding, positions, where)

    def _target(
        self, subject: Subject, batch: Examples, positions: Tensor, where: str
    ) -> Finding | None:
        """The loss must not ask for what comes after the end."""
        if subject.task.kind != "sequence" or batch.target.shape != positions.shape:
            return None
        # The first padded position may have to be predicted once, as the end of the text.
        asked = positions & (batch.target != PADDING)
        if not asked.any():
            return None
        outputs = outputs_of(subject.build(), batch, device=subject.device)
        seen = batch.target[batch.target != PADDING]
        other = torch.where(batch.target == seen.max(), seen.min(), seen.max())
        changed = torch.where(asked, other, batch.target)
        with torch.no_grad():
            own = subject.task.loss(outputs, batch.target)
            moved = subject.task.loss(outputs, changed)
        share = float(asked.sum() / positions.sum())
        if not torch.allclose(own, moved, rtol=1e-6, atol=1e-7):
            return self.failed(
                f"{where}, and the loss counts {share:.0%} of the padded positions",
                measured=share, limit=0.0,
                advice="set the target of padded positions to -100",
            )  # fmt: skip
        counted = subject.task.units(batch.target)
        if counted is not None and bool((counted > (~positions).sum(1) + 1).any()):
            return self.warned(
                f"{where}; the loss leaves these positions out, but units counts them",
                measured=share, limit=0.0,
                advice="count in units what the loss sums over, or use -100 in the target",
            )  # fmt: skip
        return None

    def _inputs(
        self, subject: Subject, batch: Examples, padding: Padding, positions: Tensor, where: str
    ) -> Finding:
        """First with other tokens in the padding; where the mask is made of them, with less."""
        model = copy.deepcopy(subject.trained.model)
        own = outputs_of(model, batch, device=subject.device)
        spread = max(float(own.std()), 1e-6)
        kept = ~positions if own.ndim == 3 and own.shape[:2] == positions.shape else None
        changed = outputs_of(model, _other_tokens(batch, padding, positions), device=subject.device)
        effect = _largest(own, changed, kept) / spread
        if effect <= _CHANGE:
            return self.passed(
                f"{where}; other tokens there change no other output", measured=effect, limit=_MUCH
            )
        shorter = _shorter(subject, batch, padding)
        if shorter is None:
            return self._attention(model, batch, padding, positions, where)
        examples, cut = shorter
        try:
            less = outputs_of(model, examples, device=subject.device)
        except Exception:  # noqa: BLE001 (a network of one length may raise anything)
            return self._attention(model, batch, padding, positions, where)
        rest = slice(None) if own.ndim < 3 or kept is None else slice(0, own.shape[1] - cut)
        if kept is not None:
            kept, own = kept[:, rest], own[:, rest]
        effect = _largest(own, less, kept) / spread
        said = (
            f"{where}; with {cut} padded positions fewer, outputs change by up to {effect:.2g} of "
            "their deviation"
        )
        if effect > _MUCH:
            return self.failed(
                said, measured=effect, limit=_MUCH,
                advice="mask the padding in attention, pooling and recurrence",
            )  # fmt: skip
        if effect > _CHANGE:
            return self.warned(
                said, measured=effect, limit=_CHANGE, advice="mask the padding in every layer"
            )
        return self.passed(said, measured=effect, limit=_MUCH)

    def _attention(
        self, model: nn.Module, batch: Examples, padding: Padding, positions: Tensor, where: str
    ) -> Finding:
        """A network of one length may read padding as it likes, but attention has a mask for it."""
        far = padding.runs > _APART
        apart = _APART if int(far.sum()) >= _FAR else 0
        if apart:
            batch, positions = batch.take(far), positions[far]
        effect = answer_to_padding(
            model, batch, name=padding.name, positions=positions, apart=apart
        )
        if effect is None:
            raise NotApplicable(f"{where}, but the network takes one length only")
        said = (
            f"{where}; with other embeddings there, attention at the real positions changes by up "
            f"to {effect:.2g} of its deviation"
        )
        if effect > _MUCH:
            return self.failed(
                said, measured=effect, limit=_MUCH, advice="mask the padding in attention"
            )
        return self.passed(said, measured=effect, limit=_MUCH)


def _other_tokens(batch: Examples, padding: Padding, positions: Tensor) -> Examples:
    array = batch.arrays[padding.name]
    real = array[~positions]
    drawn = real[torch.randint(len(real), array.shape)]
    changed = torch.where(positions, drawn, array)
    return Examples({**batch.arrays, padding.name: changed}, batch.target, batch.units)


def _runs_of_all(examples: Examples, padding: Padding) -> Tensor:
    """Return the padded positions that end a row of every array of that length, int64 [N].

    Two texts of one row are padded each to its own length; an array without padding counts not.
    """
    own = examples.arrays[padding.name]
    runs = trailing(own == padding.token).minimum(padding.runs)
    for name, array in examples.arrays.items():
        if name != padding.name and array.shape == own.shape and array.dtype == own.dtype:
            others = trailing(array == padding.token)
            runs = runs.minimum(others) if others.any() else runs
    return runs


def _shorter(subject: Subject, batch: Examples, padding: Padding) -> tuple[Examples, int] | None:
    """Leave out half of the padding that all rows have, in every array of that length."""
    array = batch.arrays[padding.name]
    common = int(_runs_of_all(batch, padding).min())
    if common < 1:
        return None
    cut = max(1, common // 2)
    width = array.shape[1]
    arrays = {
        name: a[:, : width - cut] if a.ndim >= 2 and a.shape[1] == width else a
        for name, a in batch.arrays.items()
    }
    target = batch.target
    if subject.task.kind == "sequence" and target.shape[1] == width:
        target = target[:, : width - cut]
    return Examples(arrays, target, batch.units), cut


def _largest(one: Tensor, other: Tensor, kept: Tensor | None) -> float:
    difference = (one - other).abs()
    if kept is not None:
        difference = difference[kept]
    return float(difference.max()) if difference.numel() else 0.0
