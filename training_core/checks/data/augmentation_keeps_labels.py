"""An augmented example keeps its label, and all that an example must have."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor

from training_core.augmentation import augmentation_of, augments
from training_core.checks.contract import Check, Finding, NotApplicable, Sample
from training_core.checks.data.neighbours import Space, target_distance
from training_core.checks.data.pictures import SHOWN, is_picture, network_of, picture
from training_core.checks.short_training import train_briefly
from training_core.checks.subject import Subject
from training_core.evaluation import outputs_of
from training_core.examples import Examples
from training_core.task import Task

_ROWS = 192
_POOL = 768  # raw examples among which the nearest is sought
_ERRORS = 4.0  # standard errors beyond which a share is no chance
_FEW = 0.02  # share of examples below which nothing is said
_LEAST = 6  # augmented examples of a label, before it is said where they went
_UNLEARNED = 0.2  # share of raw examples that a network may get wrong and still be asked
_PAIRS = 20
_MOST = 0.6  # share of a label's examples that go to one other label
_NEAR = 0.3  # of a distance: practically that example
_DOUBTFUL = 0.05  # by which they may agree less, before a network is asked
_WORSE = 0.25  # by which neighbours' labels may agree less than those of raw examples


class AugmentationKeepsLabels(Check):
    """Hold augmented examples against their nearest raw ones, and against the labels of these.

    An augmentation may move an example far from all raw ones; what is then its label nobody can
    say from the data, so that is at most a warning. It fails what is certain: another example's
    inputs or label, and inputs that lie among those of another label as regularly as if the label
    had to be turned round with them.
    """

    name = "augmentation_keeps_labels"
    looks_at = "an augmented example has the label of the raw examples that it is like"

    def look(self, subject: Subject) -> Finding:
        if not augments(subject.task):
            raise NotApplicable("the task does not augment")
        augment = augmentation_of(subject.task, seed=0)
        raw = subject.batch(_ROWS, seed=7)
        kept = raw.clone()
        drawn = [augment(raw, sample=i, part=0) for i in range(3)]
        broken = _form(raw, drawn[0])
        if broken:
            return self.failed(broken, advice="return as many examples of the same shapes")
        if not _equal(raw, kept):
            return self.failed(
                "augment writes to the examples themselves", advice="work on what it is given"
            )
        if not _equal(drawn[0], augment(raw, sample=0, part=0)):
            return self.failed(
                "the same generator gives another augmentation",
                advice="draw all chance from the generator that augment is given",
            )
        if all(_equal(raw, each) for each in drawn):
            return self.warned("augment changes nothing", advice="take it away, or let it work")
        finding = self._labels(subject, raw, drawn[0])
        if finding.verdict != "fail" and all(_equal(drawn[0], each) for each in drawn[1:]):
            return self.warned(
                "augment changes every time alike", samples=finding.samples,
                advice="draw from the generator that augment is given",
            )  # fmt: skip
        return finding

    def _labels(self, subject: Subject, raw: Examples, augmented: Examples) -> Finding:
        kind = subject.task.kind
        spread = max(float(subject.examples.target.double().std()), 1e-12)

        def apart(one: Tensor, other: Tensor) -> Tensor:
            return target_distance(one, other, kind=kind, spread=spread)

        pool = subject.batch(_POOL, seed=7)  # begins with the rows that are augmented
        space = Space.of(pool)
        own_rows = torch.arange(len(raw))
        distances = space.distances(augmented, pool)
        to_source = distances[own_rows, own_rows].clone()
        distances[own_rows, own_rows] = math.inf
        to_other, other = distances.min(1)
        among_raw = space.distances(raw, pool)
        among_raw[own_rows, own_rows] = math.inf
        usual, beside = among_raw.min(1)

        half = 0.5 if kind != "regression" else 1.0
        moved = apart(augmented.target, raw.target)  # the label's own way
        from_other = apart(augmented.target, pool.target[other])
        samples = _samples(subject, raw, augmented)

        # 1. The inputs are still the source's, and the label is not.
        nearer = to_source <= to_other
        lost = nearer & (moved > half) & (to_source <= _NEAR * to_other)
        if float(lost.double().mean()) > _FEW:
            return self._wrong(lost, "are the inputs they were, with another label", samples)
        # 2. The inputs are another example's, and the label is not.
        changed = to_source > 0
        taken = changed & (to_other <= _NEAR * torch.minimum(to_source, usual))
        stayed = taken & (from_other > half) & (from_other > moved)
        # Rows of few values have twins, and one changed value may well make another row of one.
        is_sparse = float(usual.median()) > 0 and bool(taken.sum() >= 0.5 * changed.sum())
        if is_sparse and float(stayed.double().mean()) > _FEW:
            return self._wrong(stayed, "are another example's inputs with their own label", samples)
        if kind == "sequence":
            return self.passed("augmented sequences keep their own targets", samples=samples)
        # 3. The label went elsewhere, and the inputs are not like those that have it.
        strayed = ~nearer & (moved > half)
        random = apart(augmented.target, pool.target[: len(raw)].roll(1, 0)) > half
        if _is_chance((from_other > half)[strayed], random):
            return self._wrong(strayed, "got a label that nothing like them has", samples)
        # 4. The inputs are like those of one other label, and those of that label like this one's.
        near = ~nearer & (to_other <= usual.quantile(0.95))
        turned = self._turned(kind, augmented.target[near], pool.target[other[near]], pool.target)
        if turned:
            return self._wrong(near, turned, samples)
        agree = (torch.where(nearer, moved, from_other) <= half).double()
        usually = (apart(raw.target, pool.target[beside]) <= half).double()
        share, expected = float(agree.mean()), float(usually.mean())
        said = (
            f"the nearest raw example has the label of {share:.0%} of augmented examples, where it "
            f"has that of {expected:.0%} of raw ones"
        )
        limit = expected - _WORSE
        if share < expected - _DOUBTFUL:
            turned = self._turned_for_a_network(subject, raw, augmented, to_source > 0)
            if turned:
                return self._wrong(to_source > 0, turned, samples)
        if share < limit:
            return self.warned(
                said, measured=share, limit=limit, samples=samples,
                advice="look at the pictures: would a person give them these labels?",
            )  # fmt: skip
        gone = ~nearer & (to_other > 2 * usual.quantile(0.95))
        if float(gone.double().mean()) > 0.5:
            return self.warned(
                f"{float(gone.double().mean()):.0%} of augmented examples are farther from all raw "
                "ones, their source too, than these are from each other",
                samples=samples, advice="look at the pictures: is the augmentation too strong?",
            )  # fmt: skip
        return self.passed(said, measured=share, limit=limit, samples=samples)

    def _turned_for_a_network(
        self, subject: Subject, raw: Examples, augmented: Examples, changed: Tensor
    ) -> str:
        """The same by what a network says that has seen raw examples only; empty: nothing.

        It knows an arrow in whatever place, where the nearest neighbour may not.
        """
        model = train_briefly(
            _without_augmentation(subject.task),
            subject.build(),
            subject.examples,
            steps=subject.settings.input_steps,
            batch_size=subject.batch_size,
            training=subject.training,
        ).model
        kind = subject.task.kind

        def said(examples: Examples) -> Tensor:
            outputs = outputs_of(model, examples, device=subject.device)
            predicted = subject.task.predict(outputs)
            return predicted.argmax(1) if kind == "multiclass" else predicted

        spread = max(float(raw.target.double().std()), 1e-12)
        wrong = target_distance(said(raw), raw.target, kind=kind, spread=spread) > 0.5
        if float(wrong.double().mean()) > _UNLEARNED:
            return ""
        own, found = augmented.target[changed], said(augmented)[changed]
        return self._turned(kind, own, found, subject.examples.target)

    def _wrong(self, which: Tensor, what: str, samples: list[Sample]) -> Finding:
        share = float(which.double().mean())
        return self.failed(
            f"{share:.0%} of augmented examples {what}", measured=share, limit=_FEW,
            samples=samples, advice="change inputs and target of an example together",
        )  # fmt: skip

    def _turned(self, kind: str, own: Tensor, found: Tensor, everyone: Tensor) -> str:
        """Say which two labels augmented examples change into each other; empty: none do."""
        if kind == "regression":
            if len(own) < _PAIRS or own.ndim > 1:
                return ""
            both = torch.corrcoef(torch.stack([own.double(), found.double()]))[0, 1]
            if float(both) < -_ERRORS / math.sqrt(len(own)):
                return f"lie where targets are turned round (correlation {float(both):.2f})"
            return ""
        columns = (own, found, everyone)
        if own.ndim == 1:
            return _swapped(*columns)
        labels = (_swapped(*(c[:, i] for c in columns)) for i in range(own.shape[1]))
        return next((said for said in labels if said), "")


def _without_augmentation(task: Task) -> Task:
    plain = copy.copy(task)
    plain.__class__ = type(type(task).__name__, (type(task),), {"augment": Task.augment})
    return plain


def _swapped(own: Tensor, found: Tensor, everyone: Tensor) -> str:
    """Say which two classes change places among `own` and `found`."""
    own, found, everyone = own.round(), found.round(), everyone.round()
    goes: dict[float, float] = {}
    for label in sorted(set(own.tolist())):
        there = found[own == label]
        if len(there) < _LEAST:
            continue
        most = float(there.mode().values)
        share = float((there == most).double().mean())
        usual = float((everyone == most).double().mean())
        error = math.sqrt(max(usual * (1 - usual), 1e-12) / len(there))
        if most != label and share >= _MOST and share > usual + _ERRORS / 2 * error:
            goes[label] = most
    for label, most in goes.items():
        if goes.get(most) == label:
            return f"look like the other label: {label:g} and {most:g} change places"
    return ""


def _is_chance(wrong: Tensor, random: Tensor) -> bool:
    """Say whether neighbours' labels are wrong as often as anybody's, in enough examples."""
    count = len(wrong)
    if count < max(_PAIRS, _FEW * len(random)):
        return False
    usual = float(random.double().mean())
    error = math.sqrt(max(usual * (1 - usual), 1 / count) / count)
    return float(wrong.double().mean()) > usual - 2 * error


def _form(raw: Examples, augmented: Examples) -> str:
    """Say what an augmented batch lacks that a batch must have; empty: nothing."""
    if raw.arrays.keys() != augmented.arrays.keys():
        return f"augment returns the arrays {', '.join(augmented.arrays)}"
    pairs = {name: (raw.arrays[name], augmented.arrays[name]) for name in raw.arrays}
    for name, (before, after) in {**pairs, "target": (raw.target, augmented.target)}.items():
        if before.shape != after.shape or before.dtype != after.dtype:
            was = f"{before.dtype} {list(before.shape)}".removeprefix("torch.")
            now = f"{after.dtype} {list(after.shape)}".removeprefix("torch.")
            return f"augment makes {now} of {name!r}, which was {was}"
        finite = bool(torch.isfinite(before).all()) if before.is_floating_point() else False
        if finite and not bool(torch.isfinite(after).all()):
            return f"augment makes numbers of {name!r} that are not finite"
    return ""


def _equal(one: Examples, other: Examples) -> bool:
    same = all(torch.equal(one.arrays[name], other.arrays[name]) for name in one.arrays)
    return same and torch.equal(one.target, other.target)


def _samples(subject: Subject, raw: Examples, augmented: Examples) -> list[Sample]:
    """Show raw examples beside augmented ones."""
    found = []
    for row in range(min(SHOWN, len(raw))):
        images = {}
        for name in raw.arrays:
            if is_picture(raw.arrays[name]):
                images[f"{name}, raw"] = picture(raw.arrays[name][row])
                images[f"{name}, augmented"] = picture(augmented.arrays[name][row])
        found.append(
            Sample(
                raw=network_of(subject, raw, row),
                network=network_of(subject, augmented, row),
                images=images,
            )
        )
    return found
