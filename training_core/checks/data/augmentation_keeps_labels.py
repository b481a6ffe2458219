"""An augmented example keeps its label, and all that an example must have."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor

from training_core.augmentation import augmentation_of, augments
from training_core.checks.contract import Check, Finding, NotApplicable, Sample
from training_core.checks.data.augmented import equal, form_of, pairs_of, same_draw
from training_core.checks.data.loudness import hardly_heard, loudness_of, too_loud
from training_core.checks.data.mixing import mixed_of
from training_core.checks.data.neighbours import Space, is_chance, target_distance
from training_core.checks.data.provenance import provenance_of, with_other_targets
from training_core.checks.data.raw_and_augmented import answers_moved, loses_on_raw
from training_core.checks.data.tell_tale import tell_tale
from training_core.checks.data.turned import turned
from training_core.checks.data.unlearnable import doubtful, plain_training, unlearnable
from training_core.checks.subject import Subject
from training_core.evaluation import outputs_of
from training_core.examples import Examples
from training_core.feeds.order import order

_ROWS = 192
_CELLS, _FEWEST = 2_000_000, 32  # numbers, and examples, whose rows are exchanged
_CERTAIN = 4  # examples that follow another one: codes of 20 bits do not meet as often
_POOL = 768  # raw examples among which the nearest is sought
_FEW = 0.02  # share of examples below which nothing is said
_UNLEARNED = 0.2  # share of held-back examples that a network may get wrong and still be asked
_TELLING = 0.5  # of the chance's mistakes, that neighbours' labels make on raw examples at most
_PAIRS = 20
_KNOWING = 0.8  # share of raw examples whose neighbours have their label, if these know labels
_NEAR = 0.3  # of a distance: practically that example
_DOUBTFUL = 0.05  # by which they may agree less, before a network is asked
_MIXED, _RATHER_MIXED = 0.25, 0.1  # of an example, that others decide and its target ignores
_WORSE = 0.25  # by which neighbours' labels may agree less than those of raw examples


class AugmentationKeepsLabels(Check):
    """Hold augmented examples against their nearest raw ones, and against the labels of these.

    An augmentation may move an example far from all raw ones; what is then its label nobody can
    say from the data, so that is at most a warning. It fails what is certain: another example's
    inputs or label (rows of the batch are exchanged, and what answers is looked at), and inputs
    that lie among those of another label as regularly as if the label had to be turned with them.
    """

    name = "augmentation_keeps_labels"
    looks_at = "an augmented example has the label and the scale of raw examples that it is like"
    costs = "training"

    def look(self, subject: Subject) -> Finding:
        if not augments(subject.task):
            raise NotApplicable("the task does not augment")
        augment = augmentation_of(subject.task, seed=0)
        raw = subject.batch(_ROWS, seed=7)
        kept = raw.clone()
        drawn = [augment(raw, sample=i, part=0) for i in range(3)]
        broken = form_of(raw, drawn[0])
        if broken:
            return self.failed(broken, advice="return as many examples of the same shapes")
        if not equal(raw, kept):
            return self.failed(
                "augment writes to the examples themselves", advice="work on what it is given"
            )
        if not equal(drawn[0], augment(raw, sample=0, part=0)):
            return self.failed(
                "the same generator gives another augmentation",
                advice="draw all chance from the generator that augment is given",
            )
        if all(equal(raw, each) for each in drawn):
            return self.warned("augment changes nothing", advice="take it away, or let it work")
        loud = self._scale(subject, raw, drawn[0])
        if loud is not None and loud.verdict == "fail":
            return loud
        finding = (
            self._rows_are_their_own(subject, raw)
            or self._harm(subject, raw, drawn[0])
            or self._labels(subject, raw, drawn[0])
        )
        if finding.verdict == "pass" and loud is not None:
            return loud
        if finding.verdict != "fail" and all(equal(drawn[0], each) for each in drawn[1:]):
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
        samples = pairs_of(subject, raw, augmented)

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
        usually = (apart(raw.target, pool.target[beside]) <= half).double()
        random = apart(augmented.target, pool.target[: len(raw)].roll(1, 0)) > half
        # Neighbours that say little of raw examples' labels say nothing of augmented ones'.
        if 1 - float(usually.mean()) < _TELLING * float(random.double().mean()):
            # 3. The label went elsewhere, and the inputs are not like those that have it.
            strayed = ~nearer & (moved > half)
            if is_chance(
                (from_other > half)[strayed], random, least=max(_PAIRS, _FEW * len(random))
            ):
                return self._wrong(strayed, "got a label that nothing like them has", samples)
            # 4. The inputs are like those of one other label, and those of that label like this
            # one's.
            near = ~nearer & (to_other <= usual.quantile(0.95))
            what = turned(kind, augmented.target[near], pool.target[other[near]], pool.target)
            if what:
                return self._wrong(near, what, samples)
        agree = (torch.where(nearer, moved, from_other) <= half).double()
        share, expected = float(agree.mean()), float(usually.mean())
        said = (
            f"the nearest raw example has the label of {share:.0%} of augmented examples, where it "
            f"has that of {expected:.0%} of raw ones"
        )
        limit = expected - _WORSE
        changed_share = float(agree[changed].mean()) if changed.any() else 1.0
        # Neighbours that know nothing are no reason by themselves: does the short training suffer?
        if changed_share < expected - _DOUBTFUL or (expected < _KNOWING and doubtful(subject)):
            finding = self._by_a_network(subject, samples)
            if finding is not None:
                return finding
        # What a network learns from augmented examples, and finds again in raw ones, was kept.
        if share < limit and doubtful(subject):
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

    def _rows_are_their_own(self, subject: Subject, raw: Examples) -> Finding | None:
        """Inputs and target of an augmented example must be made of the same row."""
        size = sum(array[0].numel() for array in raw.arrays.values())
        raw = raw.take(slice(max(_FEWEST, _CELLS // max(size, 1))))
        augment = augmentation_of(subject.task, seed=0)
        others = with_other_targets(raw, subject.examples)
        found = provenance_of(lambda examples: augment(examples, sample=0, part=0), raw, others)
        exchanged = found.exchanged
        # Of several arrays, one may be exchanged in some rows as noise.
        limit = _FEW if len(exchanged) == 1 else 0.5
        for name, rows in exchanged.items():
            rows = rows & found.of_another(raw.target, found.arrays[name])
            share = float(rows.double().mean())
            if share > limit and int(rows.sum()) >= _CERTAIN:
                return self.failed(
                    f"{share:.0%} of augmented examples have {name!r} of another example with "
                    "their own label: it follows that one as the batch changes, and the label "
                    "does not",
                    measured=share, limit=limit, samples=pairs_of(subject, raw, augment(
                        raw, sample=0, part=0
                    )),
                    advice="change inputs and target of an example together",
                )  # fmt: skip
        return self._mixed(subject, raw, others)

    def _scale(self, subject: Subject, raw: Examples, augmented: Examples) -> Finding | None:
        """Augmented numbers must have about the scale of those that evaluation sees."""
        found = loudness_of(raw, augmented)
        loud = too_loud(found)
        if loud is None:
            quiet = hardly_heard(found, arrays=len(raw.arrays))
            if not quiet or not torch.equal(raw.target, augmented.target):
                return None
            return self.warned(
                quiet, advice="see in which units the arrays are, and augment in the same"
            )
        verdict, said, measured = loud
        make = self.failed if verdict == "fail" else self.warned
        samples = pairs_of(subject, raw, augmented)
        advice = (
            "see in which units the arrays are (standardised, 0 to 1, 0 to 255): an augmentation "
            "is given what the preprocessor makes, and evaluation sees that unchanged"
        )
        return make(said, measured=measured, samples=samples, advice=advice)

    def _mixed(self, subject: Subject, raw: Examples, others: Examples) -> Finding | None:
        """A row that is made of several must have a target of them all."""
        mixed = mixed_of(same_draw(subject.task), raw, others)
        if mixed is None or mixed.inputs - mixed.target <= _RATHER_MIXED:
            return None
        said = (
            f"augmented examples are made of other examples, of other targets, to "
            f"{mixed.inputs:.0%} ({mixed.array!r} most of all), and their targets to "
            f"{mixed.target:.0%}"
        )
        measured = mixed.inputs - mixed.target
        samples = pairs_of(
            subject, raw, augmentation_of(subject.task, seed=0)(raw, sample=0, part=0)
        )
        advice = "mix inputs and target of an example in the same proportion"
        make = self.failed if measured > _MIXED else self.warned
        return make(said, advice=advice, samples=samples, measured=measured, limit=_MIXED)

    def _harm(self, subject: Subject, raw: Examples, augmented: Examples) -> Finding | None:
        """What it leaves behind tells no label; raw examples stay known, and targets the answer."""
        harm = (
            tell_tale(subject)
            or loses_on_raw(subject)
            or answers_moved(subject, lambda: plain_training(subject))
        )
        if harm is None:
            return None
        make = self.failed if harm.broken else self.warned
        samples = pairs_of(subject, raw, augmented)
        return make(
            harm.said,
            advice=harm.advice,
            measured=harm.measured,
            limit=harm.limit,
            samples=samples,
        )

    def _by_a_network(self, subject: Subject, samples: list[Sample]) -> Finding | None:
        """Ask a network that has seen raw examples only, about held-back ones.

        It knows an arrow in whatever place, where the nearest neighbour may not.
        """
        task, kind = subject.task, subject.task.kind
        plain = cache(lambda: plain_training(subject))
        rows = order(seed=7, epoch=0, count=len(subject.held_back))[:_ROWS]
        raw = subject.held_back.take(rows)
        augmented = augmentation_of(task, seed=0)(raw, sample=0, part=0)

        def said(examples: Examples) -> Tensor:
            predicted = task.predict(outputs_of(plain().model, examples, device=subject.device))
            return predicted.argmax(1) if kind == "multiclass" else predicted

        spread = max(float(raw.target.double().std()), 1e-12)
        wrong = target_distance(said(raw), raw.target, kind=kind, spread=spread) > 0.5
        if float(wrong.double().mean()) <= _UNLEARNED:
            changed = torch.zeros(len(raw), dtype=torch.bool)
            for name, array in raw.arrays.items():
                changed |= (array != augmented.arrays[name]).reshape(len(raw), -1).any(1)
            own, found = augmented.target[changed], said(augmented)[changed]
            what = turned(kind, own, found, subject.examples.target)
            if what:
                return self._wrong(changed, what, samples)
        lost = unlearnable(subject, plain)
        if lost is None:
            return None
        make = self.failed if lost.broken else self.warned
        return make(
            lost.said, measured=lost.measured, samples=samples,
            advice="leave out of the augmentation what the label is told by, or change the label "
            "with it",
        )  # fmt: skip

    def _wrong(self, which: Tensor, what: str, samples: list[Sample]) -> Finding:
        share = float(which.double().mean())
        return self.failed(
            f"{share:.0%} of augmented examples {what}", measured=share, limit=_FEW,
            samples=samples, advice="change inputs and target of an example together",
        )  # fmt: skip
