"""Candidates of a training: which are scored, in how many passes, and which have no claim."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from components.common.resampling import Draws
from components.select_checkpoint.candidates import Candidates, mean_of_best
from components.select_checkpoint.choosing import Place
from components.select_checkpoint.scoring import Judge, weight_bytes
from infra.folder import FolderStore
from tests.training_core.checkpoint_samples import Training
from training_core.checkpoints.catalogue import Checkpoints
from training_core.evaluation import evaluate
from training_core.examples import Examples
from training_core.task import Arrays, RegressionTask, SequenceTask


class Plain:
    """Columns a to e, as they are; it counts how many rows it has turned into examples."""

    def __init__(self) -> None:
        self.columns, self.rows = list("abcde"), 0

    def fit(self, train: pd.DataFrame) -> Plain:
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        self.rows += len(frame)
        return {"inputs": frame[self.columns].to_numpy(dtype=np.float32, copy=True)}

    def state_dict(self) -> dict[str, int]:
        return {}

    @classmethod
    def from_state_dict(cls, state: dict[str, int]) -> Plain:
        return cls()


class First(nn.Module):
    """The first output of a network with BatchNorm."""

    def __init__(self, hidden: int = 13) -> None:
        super().__init__()
        self.first = nn.Linear(5, hidden)
        self.norm = nn.BatchNorm1d(hidden)
        self.last = nn.Linear(hidden, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.last(self.norm(self.first(inputs)).relu())
        return outputs[:, 0]


class Value(RegressionTask):
    label = "value"

    def preprocessor(self) -> Plain:
        return Plain()

    def build_model(self, preprocessor: object) -> nn.Module:
        return First()


def rows(count: int, *, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.normal(0, 1, (count, 5)), columns=list("abcde"))
    return frame.assign(value=frame["a"] + random.normal(0, 0.1, count))


def judge(count: int = 20_000, **settings: int) -> Judge:
    frame = rows(count)
    draws = Draws.of(np.arange(count) // 50, resamples=200)
    return Judge(Value(), Plain(), frame, draws, **settings)


def training(folder: Path, *, steps: int = 5) -> Checkpoints:
    """Checkpoints of real steps of `First`."""
    torch.manual_seed(0)
    model = First()
    found = Training(folder, model=model)
    for _ in range(steps):
        found.steps += 1
        inputs = torch.randn(7, 5)
        (model(inputs) - inputs[:, 0]).square().sum().backward()
        found.optimisers[0].step()
        found.optimisers[0].zero_grad()
        found.save()
    return Checkpoints(FolderStore(folder), "run")


def candidates(checkpoints: Checkpoints) -> Candidates:
    def train() -> Examples:
        return Examples.from_frame(Value(), Plain(), rows(1000, seed=1))

    return Candidates(checkpoints, build=First, train=train)


def networks(count: int) -> list[tuple[Place, nn.Module]]:
    torch.manual_seed(0)
    return [(Place(step), First()) for step in range(count)]


@pytest.mark.parametrize(("together", "passes"), [(5, 1), (2, 3), (0, 5)])
def test_rows_are_read_once_for_as_many_networks_as_fit(together: int, passes: int) -> None:
    given = networks(5)
    one = judge(memory=together * weight_bytes(given[0][1]))
    made: list[weakref.ref[nn.Module]] = []

    def copies() -> Iterator[tuple[Place, nn.Module]]:
        for place, network in given:
            assert sum(ref() is not None for ref in made) < max(together, 1), (
                "others are still there"
            )
            copied = copy.deepcopy(network)
            made.append(weakref.ref(copied))
            yield place, copied
            del copied

    scores = one.scores(copies())
    assert one.preprocessor.rows == passes * 20_000  # type: ignore[attr-defined]
    examples = Examples.from_frame(one.task, one.preprocessor, one.frame)
    assert [score.place for score in scores] == [place for place, _ in given]
    for score, (_, network) in zip(scores, given, strict=True):
        assert score.metrics == pytest.approx(evaluate(one.task, network, examples), rel=1e-6)
        assert score.totals.sum() / score.units.sum() == pytest.approx(score.metrics["loss"])


def test_losses_are_added_up_by_cluster() -> None:
    one = judge(500)
    ((_, network),) = given = networks(1)
    (score,) = one.scores(given)
    examples = Examples.from_frame(one.task, one.preprocessor, one.frame)
    with torch.no_grad():
        losses = one.task.loss(network(**examples.arrays), examples.target).double().numpy()
    assert score.totals == pytest.approx(losses.reshape(10, 50).sum(axis=1), rel=1e-6)
    assert score.units.tolist() == [50.0] * 10


def test_a_mean_has_statistics_of_its_own_and_is_made_of_the_best(tmp_path: Path) -> None:
    found, one = candidates(training(tmp_path)), judge(2000)
    scores = found.finite(one.scores(found.readable()))
    assert [score.place.step for score in scores] == [1, 2, 3, 4, 5]
    place = mean_of_best(scores, count=2)
    assert place is not None
    best = sorted(scores, key=lambda score: score.metrics["loss"])
    assert place.members == tuple(score.place.step for score in best[:2])
    mean, first = found.network(place), found.network(Place(place.members[0]))
    assert isinstance(mean, First)
    assert isinstance(first, First)
    assert mean.norm.running_mean is not None
    hidden = mean.first(torch.from_numpy(Plain().transform(rows(1000, seed=1))["inputs"]))
    torch.testing.assert_close(
        mean.norm.running_mean, hidden.detach().mean(0), rtol=0.01, atol=0.01
    )
    assert first.norm.num_batches_tracked == place.members[0], "a checkpoint is left as it was"


def test_fewer_than_two_make_no_mean(tmp_path: Path) -> None:
    found, one = candidates(training(tmp_path, steps=2)), judge(200)
    scores = one.scores(found.readable())
    assert mean_of_best(scores, count=0) is None
    assert mean_of_best(scores, count=1) is None
    assert mean_of_best(scores[:1], count=3) is None
    assert mean_of_best(scores, count=3) is not None


def test_what_is_not_finite_and_what_does_not_fit_is_named(tmp_path: Path) -> None:
    checkpoints = training(tmp_path)
    wrong = Training(checkpoints, model=First())
    wrong.steps = 6
    with torch.no_grad():
        wrong.model.get_parameter("last.bias").fill_(torch.nan)
    wrong.save()
    other = Training(checkpoints, model=First(hidden=4))
    other.steps = 7
    other.save()
    found = candidates(checkpoints)
    scores = found.finite(judge(200).scores(found.readable()))
    assert [score.place.step for score in scores] == [1, 2, 3, 4, 5]
    unfit, infinite = checkpoints.damaged
    assert unfit.startswith("step 7 does not fit the network")
    assert infinite.startswith("step 6 has losses")


def test_sequences_weigh_by_their_tokens() -> None:
    class Same(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Parameter(torch.tensor([0.0, 1.0]))

        def forward(self, inputs: Tensor) -> Tensor:
            return self.bias.expand(len(inputs), 2, 2)

    class Tokens(SequenceTask):
        label = "value"

        def preprocessor(self) -> Plain:
            return Plain()

        def build_model(self, preprocessor: object) -> nn.Module:
            return Same()

        def target(self, frame: pd.DataFrame) -> np.ndarray:
            return np.stack(frame["value"].to_list())

    frame = rows(2).assign(value=[np.array([1, 1]), np.array([0, -100])])
    draws = Draws.of([0, 1], resamples=200)
    (score,) = Judge(Tokens(), Plain(), frame, draws).scores([(Place(1), Same())])
    yes, no = -torch.log_softmax(torch.tensor([1.0, 0.0]), 0)
    assert score.units.tolist() == [2.0, 1.0]
    assert score.metrics["loss"] == pytest.approx(float(2 * yes + no) / 3)
