"""What is drawn how often, on every feed and any number of ranks; and curricula that go on."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from feed_contract import Case, Noted, numbered
from pydantic import ValidationError
from training_samples import Sales, examples_of, trainer

from training_core.errors import ConfigurationError
from training_core.evaluation import outputs_of
from training_core.examples import Examples
from training_core.feeds import blocks
from training_core.feeds.batches import Feed, Sharing
from training_core.feeds.blocks import BlockFeed
from training_core.feeds.epochs import EpochByEpoch
from training_core.feeds.memory import MemoryFeed
from training_core.feeds.npy import open_blocks, write_blocks
from training_core.feeds.prefetch import Prefetched
from training_core.feeds.sampling import (
    Sampling,
    log_odds_shift,
    paced,
    sampling_of,
    stratified,
)
from training_core.feeds.sampling_settings import SamplingSettings

COUNT = 101
WEIGHTS = np.array([0.0, 1.0, 2.0, 5.0])[np.arange(COUNT) % 4]
HARDEST_LAST = Sampling(
    COUNT, weights=WEIGHTS, difficulty=np.arange(COUNT)[::-1].copy(), pacing=lambda epoch: 0.5
)
Make = Callable[[Sampling | None], Feed]


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 64)


def memory(sampling: Sampling | None) -> Feed:
    return MemoryFeed(numbered(COUNT), sampling=sampling)


def disk(folder: Path) -> Make:
    def make(sampling: Sampling | None) -> Feed:
        rows = numbered(COUNT)
        parts = [rows.take(slice(0, 40)), rows.take(slice(40, COUNT))]
        for number, part in enumerate(parts):
            write_blocks(folder / str(number), [part])
        segments = [open_blocks(folder / str(number)) for number in range(2)]
        return BlockFeed(segments, window_blocks=4, sampling=sampling)

    return make


@pytest.fixture(params=["memory", "disk"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    return memory if request.param == "memory" else disk(tmp_path)


def epoch(feed: Feed, number: int = 0) -> list[int]:
    """The rows of an epoch, in order."""
    alone = Sharing.of(batch_size=10, microbatches=1, rank=0, world_size=1, seed=3)
    steps = islice(feed.steps(alone, samples=number * COUNT), 11)
    return [row for s in steps for row in s.microbatches[0].examples.arrays["row"].tolist()]


# ---- the order ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "digest"), [("memory", "711f197011737141"), ("disk", "376fa2f604857309")]
)
def test_without_sampling_the_order_is_the_one_it_was_before_there_was_any(
    tmp_path: Path, kind: str, digest: str
) -> None:
    """The digests are of the commit before."""
    row = torch.arange(COUNT)
    examples = Examples({"row": row}, (row % 7).float())
    feed: Feed = MemoryFeed(examples)
    if kind == "disk":
        write_blocks(tmp_path, [examples])
        feed = BlockFeed([open_blocks(tmp_path)], window_blocks=4)
    found = hashlib.sha256()
    for rank in range(2):
        sharing = Sharing.of(batch_size=10, microbatches=2, rank=rank, world_size=2, seed=3)
        for step in islice(feed.steps(sharing, samples=0), 40):
            for microbatch in step.microbatches:
                found.update(microbatch.examples.arrays["row"].numpy().tobytes())
    assert found.hexdigest()[:16] == digest


def test_equal_weights_draw_each_row_once(make: Make) -> None:
    assert sorted(epoch(make(Sampling(COUNT, weights=np.full(COUNT, 0.3))))) == list(range(COUNT))


def test_rows_are_drawn_in_proportion_to_their_weights(make: Make) -> None:
    feed = make(Sampling(COUNT, weights=WEIGHTS))
    drawn = Counter(row for number in range(20) for row in epoch(feed, number))
    expected = WEIGHTS / WEIGHTS.mean()
    for row in range(COUNT):
        assert drawn[row] / 20 == pytest.approx(expected[row], abs=0.45), row
    for number in range(3):
        once = Counter(epoch(feed, number))
        assert sum(once.values()) == COUNT
        assert all(abs(once[row] - expected[row]) < 2 for row in range(COUNT))
    assert epoch(feed, 0) != epoch(feed, 1)
    assert epoch(feed, 1) == epoch(feed, 1)


def test_an_epoch_draws_from_the_easiest_rows_alone(make: Make) -> None:
    drawn = set(epoch(make(HARDEST_LAST)))
    assert drawn <= set(range(COUNT - 51, COUNT))
    assert drawn >= {row for row in range(COUNT - 51, COUNT) if row % 4 == 3}
    assert not any(row % 4 == 0 for row in drawn)


@pytest.mark.parametrize("kind", ["memory", "disk", "prefetched", "epoch by epoch"])
def test_any_position_is_found_and_any_number_of_ranks_gets_the_same_steps(
    tmp_path: Path, kind: str
) -> None:
    def feed(count: int, rank: int, world_size: int) -> Feed:
        own = disk(tmp_path / str(rank)) if kind in ("disk", "prefetched") else memory
        made = own(Sampling(COUNT, weights=WEIGHTS))
        made = Prefetched(made) if kind == "prefetched" else made
        return EpochByEpoch(made) if kind == "epoch by epoch" else made

    case = Case("sampled", feed)

    def joined(ranks: list[list[Noted]]) -> list[list[int]]:
        return [sorted(r for rank in step for r in rank.rows) for step in zip(*ranks, strict=True)]

    (alone,) = case.ranks(COUNT, 25, batch_size=10)
    for world_size in (2, 4):
        ranks = case.ranks(COUNT, 25, batch_size=10, world_size=world_size)
        assert joined(ranks) == joined([alone])
    for at in (3, 10, 17):  # within an epoch, at its short last step, in the next one
        position = alone[at].samples_after
        (later,) = case.ranks(COUNT, 5, batch_size=10, samples=position)
        assert [step.rows for step in later] == [step.rows for step in alone[at + 1 : at + 6]]


def test_rows_are_given_as_they_are_stored(make: Make) -> None:
    feed = make(Sampling(COUNT, weights=WEIGHTS))
    found = feed.stored(35, 60)  # type: ignore[attr-defined]
    assert found.arrays["row"].tolist() == list(range(35, 60))


def test_stratified_draws_leave_less_to_chance_than_independent_ones() -> None:
    uneven = np.random.default_rng(0).gamma(0.5, size=2000)
    expected = uneven * 2000 / uneven.sum()
    ours = np.concatenate([stratified(uneven, seed=0, epoch=e) - expected for e in range(20)])
    theirs = np.random.default_rng(1).multinomial(2000, uneven / uneven.sum(), 20) - expected
    assert np.abs(ours).max() < 2
    assert ours.var() < 0.3 * theirs.var()
    assert abs(ours.mean()) < 1e-9


# ---- weights and pacing ------------------------------------------------------------------------


def of(target: Any, **changes: Any) -> Sampling:
    columns = changes.pop("columns", None)
    found = sampling_of(
        SamplingSettings.model_validate(changes), epochs=10, target=np.asarray(target),
        columns=columns,
    )  # fmt: skip
    assert found is not None
    return found


@pytest.mark.parametrize(("strength", "share"), [(1.0, 0.5), (0.5, 0.25)])
def test_classes_are_balanced_as_far_as_is_asked_for(strength: float, share: float) -> None:
    target = (np.arange(1000) % 10 == 0).astype(np.float32)
    counts = of(target, class_balance=strength).counts(seed=0, epoch=0)
    assert counts is not None
    assert counts[target == 1].sum() / 1000 == pytest.approx(share, abs=0.006)


def test_half_as_often_a_half_life_later_and_weights_multiply() -> None:
    ages = np.array([0.0, 30.0, 60.0]) * 86_400
    columns = {"age": ages, "weight": np.array([1.0, 1.0, 4.0])}
    made = of([0, 1, 0], half_life_days=30, columns=columns)
    assert made._weights == pytest.approx([1, 0.5, 0.25])
    both = of([0, 1, 0], half_life_days=30, weight_column="w", columns=columns)
    assert both._weights == pytest.approx([1, 0.5, 1.0])


@pytest.mark.parametrize(
    ("pacing", "shares"),
    [
        ("linear", [0.2, 0.4, 0.6, 0.8, 1.0, 1.0]),
        ("root", [0.2, 0.482, 0.651, 0.785, 0.9, 1.0]),
        ("step", [0.2, 0.2, 0.2, 0.2, 1.0, 1.0]),
    ],
)
def test_the_pace_is_the_settings(pacing: str, shares: list[float]) -> None:
    full = 0.5 if pacing == "root" else 0.4
    settings = SamplingSettings.model_validate(
        {"curriculum": "loss", "pacing": pacing, "start_share": 0.2, "full_at": full}
    )
    share = paced(settings, epochs=10)
    assert [share(e) for e in range(6)] == pytest.approx(shares, abs=2e-3)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"class_balance": 1.0, "target": [0.5, 1.5]}, "no single class"),
        ({"weight_column": "w"}, "weight_column is set"),
        ({"curriculum": "length"}, "have no units"),
        ({"weight_column": "w", "columns": {"weight": [1.0, -1.0]}}, "1 of 2 weights"),
        ({"weight_column": "w", "columns": {"weight": [0.0, 0.0]}}, "all weights"),
    ],
)
def test_what_cannot_be_drawn_by_is_refused(changes: dict[str, Any], words: str) -> None:
    columns = {k: np.array(v) for k, v in changes.pop("columns", {}).items()}
    with pytest.raises(ConfigurationError, match=words):
        of(changes.pop("target", [0, 1]), columns=columns, **changes)


def test_settings_without_their_column_are_refused() -> None:
    with pytest.raises(ValidationError, match="difficulty_column is empty"):
        SamplingSettings(curriculum="column")
    with pytest.raises(ValidationError, match="neither column nor"):
        SamplingSettings(difficulty_column="x")


def test_a_feed_that_draws_each_row_once_is_refused_where_the_settings_ask_for_more() -> None:
    _, examples = examples_of(Sales(), 43)
    with pytest.raises(ConfigurationError, match="MemoryFeed draws each row once"):
        trainer(train=MemoryFeed(examples), sampling={"class_balance": 1})  # type: ignore[arg-type]


# ---- what it does to probabilities -------------------------------------------------------------


def test_balanced_classes_shift_probabilities_and_a_constant_takes_it_back() -> None:
    """King & Zeng 2001: only the intercept is off, by the change of the log-odds."""
    random = torch.Generator().manual_seed(0)
    numbers = torch.randn(4000, 2, generator=random)
    rate = torch.sigmoid(1.5 * numbers[:, 0] - 3.2)
    target = (torch.rand(4000, generator=random) < rate).float()
    examples = Examples({"numbers": numbers}, target)

    class Logit(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = torch.nn.Linear(2, 1)

        def forward(self, numbers: torch.Tensor) -> torch.Tensor:
            outputs: torch.Tensor = self.head(numbers)
            return outputs.squeeze(1)

    def trained(**sampling: Any) -> torch.nn.Module:
        torch.manual_seed(0)
        run = trainer(
            model=Logit(), train=examples, validation=examples.take(slice(0, 50)),
            epochs=6, batch_size=64, evaluate_every=400, sampling=sampling,
            optimiser={"lr": 0.05},
        )  # fmt: skip
        run.fit()
        return run.module

    def means(model: torch.nn.Module, shift: float = 0.0) -> tuple[float, float]:
        logits = outputs_of(model, examples, device=torch.device("cpu")) - shift
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, target)
        return float(torch.sigmoid(logits).mean()), float(loss)

    base = float(target.mean())
    plain, balanced = trained(), trained(class_balance=1.0)
    frequency = np.where(target.numpy() == 1, base, 1 - base)
    shift = log_odds_shift(target.numpy(), 1 / frequency)
    assert shift == pytest.approx(-np.log(base / (1 - base)), rel=1e-4)
    assert 0.05 < base < 0.12
    assert means(plain)[0] == pytest.approx(base, abs=0.01)
    assert means(balanced)[0] > base + 0.2
    assert means(balanced, shift)[0] == pytest.approx(base, abs=0.01)
    assert means(balanced)[1] > means(plain)[1] + 0.1
    assert means(balanced, shift)[1] == pytest.approx(means(plain)[1], abs=0.005)
