"""Which samples the trainer shows the network, in which order, and which rank gets them."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

from training_core.checks.contract import Check, Finding, NotApplicable
from training_core.checks.machinery.label_spread import spread
from training_core.checks.machinery.noting import ROW, Comparing, numbered
from training_core.checks.machinery.small_runs import short, trainer
from training_core.checks.subject import Subject
from training_core.examples import Examples
from training_core.feeds.batches import Feed, Sharing

_ROWS = 2_000  # of the sample; all of it would say no more
_EPOCHS = 3
_STEPS = 40  # an epoch at most: what small batches would add is time
_BEYOND = 6.0  # standard errors: one in a billion by chance
_ADVICE = "look at the feed, and at how seed, epoch, position and rank reach it"


class SamplesInOrder(Check):
    """Trains a network that only notes what it is shown."""

    name = "samples_in_order"
    looks_at = "each epoch shows each sample once, in a new random order, shared among the ranks"

    def look(self, subject: Subject) -> Finding:
        if len(subject.examples) < 8:
            raise NotApplicable(f"{len(subject.examples)} examples have no order to speak of")
        examples = numbered(subject.examples.take(slice(0, _ROWS)).contiguous())
        size = max(subject.batch_size, -(-len(examples) // _STEPS))
        size = min(size, max(2, len(examples) // 8))  # two batches would show little of labels
        model = Comparing(examples)
        steps = _EPOCHS * -(-len(examples) // size)
        settings = short(subject.training, steps=steps, batch_size=size, log_every=steps)
        run = trainer(model, model, examples, settings=settings)
        run.fit()
        shown = torch.cat(model.rows)
        epochs = list(torch.split(shown, len(examples)))
        wrong = (
            _complete(epochs, len(examples))
            or (model.wrong and f"{model.wrong} of a sample is not that of its row")
            or _shuffled(epochs)
            or _new_batches(epochs, size)
            or _shared(run.feed, size, subject.training.seed)
            or _resumed(run.feed, size, subject.training.seed)
        )
        if wrong:
            return self.failed(wrong, advice=_ADVICE)
        deviation = spread(examples.target, epochs, size)
        measured = {"measured": deviation, "limit": _BEYOND}
        if deviation > _BEYOND:
            return self.failed(
                f"batches of {size} differ in their labels by {deviation:.1f} standard errors "
                "more than those of a random order",
                advice="shuffle before batches are cut: rows seem to come sorted by label, or in "
                "blocks",
                **measured,
            )
        return self.passed(
            f"{_EPOCHS} epochs of {len(examples)} samples: each once, in orders that differ; "
            f"labels are spread over batches of {size} as by chance ({deviation:+.1f} standard "
            "errors)",
            **measured,
        )


def _complete(epochs: list[Tensor], count: int) -> str:
    for number, epoch in enumerate(epochs):
        seen = torch.bincount(epoch, minlength=count)
        never, often = int((seen == 0).sum()), int((seen > 1).sum())
        if never or often:
            return (
                f"epoch {number} shows {never} of {count} samples never and {often} more than once"
            )
    if len(epochs) != _EPOCHS:
        return f"{len(epochs)} epochs were shown instead of {_EPOCHS}"
    return ""


def _shuffled(epochs: list[Tensor]) -> str:
    """Say what is not random about the orders: neighbours stay together, or all moves little."""
    for number, epoch in enumerate(epochs):
        count = len(epoch)
        together = float((epoch.diff().abs() == 1).double().mean())
        if together > 2 / count + _BEYOND * math.sqrt(2 / count / count) + 1 / count:
            return (
                f"in epoch {number} {together:.0%} of the samples follow their neighbour in the "
                "table: the order is not random"
            )
        pair = torch.stack([epoch.double(), torch.arange(count).double()])
        alike = float(torch.corrcoef(pair)[0, 1])
        if abs(alike) > min(0.99, _BEYOND / math.sqrt(count - 1)):
            return (
                f"in epoch {number} a sample's place follows its row (correlation {alike:.2f}): "
                "the order is not random"
            )
    for (i, one), (j, other) in itertools.combinations(enumerate(epochs), 2):
        if torch.equal(one, other):
            return f"epochs {i} and {j} have the same order: the epoch does not reach it"
    return ""


def _new_batches(epochs: list[Tensor], size: int) -> str:
    count, batches = len(epochs[0]), len(epochs) * -(-len(epochs[0]) // size)
    if 10**9 * batches**2 > math.comb(count, size):  # whole numbers: the last one may be huge
        return ""  # a few samples may well meet again
    seen: set[tuple[int, ...]] = set()
    for number, epoch in enumerate(epochs):
        for batch in torch.split(epoch, size):
            rows = tuple(sorted(batch.tolist()))
            if len(rows) == size and rows in seen:
                return f"epoch {number} shows a batch of {size} samples that was shown before"
            seen.add(rows)
    return ""


def _rows(feed: Feed, sharing: Sharing, *, samples: int, steps: int) -> list[list[int]]:
    """Return the rows of this rank's part of each step."""
    batches = feed.steps(sharing, samples=samples)
    try:
        return [
            [
                row
                for part in batch.microbatches
                if part.weight is None
                for row in _places(part.examples)
            ]
            for batch in itertools.islice(batches, steps)
        ]
    finally:
        batches.close()


def _places(examples: Examples) -> list[int]:
    rows: list[int] = examples.arrays[ROW].tolist()
    return rows


def _shared(feed: Feed, size: int, seed: int) -> str:
    """Say how two ranks' parts are not two halves of one process's step."""
    steps = 4
    sharings = [
        Sharing.of(batch_size=size, microbatches=1, rank=rank, world_size=count, seed=seed)
        for count in (1, 2)
        for rank in range(count)
    ]
    parts = (_rows(feed, sharing, samples=0, steps=steps) for sharing in sharings)
    for step, (alone, first, second) in enumerate(zip(*parts, strict=True)):
        twice = set(first) & set(second)
        if twice:
            return f"two ranks get the same samples: {len(twice)} of step {step}'s {len(alone)}"
        if sorted(first + second) != sorted(alone):
            return f"two ranks together do not get the samples that one process gets (step {step})"
    return ""


def _resumed(feed: Feed, size: int, seed: int) -> str:
    """Say whether a feed that begins at a position goes on as one that comes by."""
    sharing = Sharing.of(batch_size=size, microbatches=1, rank=0, world_size=1, seed=seed)
    per_epoch = -(-len(feed) // size)
    through = _rows(feed, sharing, samples=0, steps=per_epoch + 2)
    for step in {1, per_epoch - 1, per_epoch, per_epoch + 1}:
        samples = sum(map(len, through[:step]))
        (again,) = _rows(feed, sharing, samples=samples, steps=1)
        if again != through[step]:
            return (
                f"a run that resumes at sample {samples} gets other samples than one that went on"
            )
    return ""
