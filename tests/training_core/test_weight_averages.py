"""EMA and SWA: what is averaged, what is evaluated and saved, and that it goes on exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from ranks import run_ranks
from ranks_models import blocks
from ranks_techniques_worker import averages
from ranks_worker import COUNT, NORMS
from torch import Tensor, nn
from training_samples import Sales, largest_difference, settings, trainer, weights

from infra.folder import FolderStore
from training_core.averaging.weights import WeightAverage
from training_core.checkpoints.catalogue import Checkpoints, has_average
from training_core.evaluation import evaluate
from training_core.loop import Trainer
from training_core.parallel.statistics import hold_statistics
from training_core.settings import TrainingSettings

EMA: dict[str, Any] = {"averaging": {"kind": "ema", "decay": 0.9}}
SWA: dict[str, Any] = {"averaging": {"kind": "swa", "start": 0.5, "every": 2}}


def average_of(run: Trainer) -> WeightAverage:
    (found,) = run.techniques
    assert isinstance(found, WeightAverage)
    return found


def averaged(run: Trainer) -> dict[str, Tensor]:
    return {n.removeprefix("average."): t for n, t in average_of(run).tensors().items()}


def passed(run: Trainer) -> list[dict[str, Tensor]]:
    """Train, and return the weights after each update."""
    found: list[dict[str, Tensor]] = []
    update = run.update.step

    def step(*, measure: bool = False) -> None:
        update(measure=measure)
        found.append({n: v.detach().clone() for n, v in weights(run.model).items()})

    run.update.step = step  # type: ignore[method-assign]
    run.fit()
    return found


def mean(states: list[dict[str, Tensor]], shares: Tensor) -> dict[str, Tensor]:
    shares = shares.double() / shares.sum()
    return {
        name: sum((s * state[name].double() for s, state in zip(shares, states, strict=True)),
                  torch.zeros(())).float()
        for name in states[0]
    }  # fmt: skip


# ---- what is averaged --------------------------------------------------------------------------


def test_without_warm_up_ema_is_the_mean_with_shares_that_decay_and_nothing_of_the_start() -> None:
    run = trainer(averaging={"kind": "ema", "decay": 0.9, "warmup": False})
    states = passed(run)
    shares = 0.9 ** torch.arange(len(states) - 1, -1, -1)
    assert largest_difference(mean(states, shares), averaged(run)) < 1e-6


def test_the_warm_up_looks_back_over_a_ninth_of_the_steps() -> None:
    run = trainer(averaging={"kind": "ema", "decay": 0.999})
    expected: dict[str, Tensor] = {}
    for t, state in enumerate(passed(run), 1):
        share = 1.0 if t == 1 else max(9 / (9 + t), 0.001 / (1 - 0.999**t))
        for name, value in state.items():
            before = expected.get(name, torch.zeros_like(value))
            expected[name] = before + share * (value - before)
    assert largest_difference(expected, averaged(run)) < 1e-6


def test_swa_is_the_plain_mean_of_what_it_takes_from_its_start_on() -> None:
    run = trainer(**SWA)
    states = passed(run)
    assert average_of(run).count == 3  # after steps 8, 10 and 12 of 12
    assert largest_difference(mean([states[i] for i in (7, 9, 11)], torch.ones(3)),
                              averaged(run)) < 1e-6  # fmt: skip


@pytest.mark.parametrize(
    ("averaging", "rates"),
    [
        ({}, [0.5] * 6),
        ({"rate": "cyclic", "high": 0.6, "low": 0.2}, [0.4, 0.2] * 3),
        ({"rate": "schedule"}, None),
    ],
)
def test_the_rate_of_swa_is_its_own_from_its_start_on(
    averaging: dict[str, Any], rates: list[float] | None
) -> None:
    plain, run = trainer(), trainer(averaging={**SWA["averaging"], **averaging})
    usual = [plain.schedule.at(step).lr for step in range(12)]
    lr = run.settings.optimiser.lr
    expected = usual if rates is None else usual[:6] + [lr * rate for rate in rates]
    assert [run.schedule.at(step).lr for step in range(12)] == pytest.approx(expected)


def test_the_average_changes_nothing_in_the_weights_that_train_on() -> None:
    plain, run = trainer(task=None), trainer(**EMA)
    plain.fit()
    run.fit()
    assert largest_difference(weights(plain.model), weights(run.model)) == 0.0


# ---- what is evaluated, saved and read ---------------------------------------------------------


@pytest.mark.parametrize("changes", [EMA, SWA])
def test_the_average_is_evaluated_and_is_what_is_read_of_a_checkpoint(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    run = trainer(tmp_path, model=blocks(norm=True), **changes)
    run.fit()
    checkpoints = Checkpoints(FolderStore(tmp_path), "run")
    manifest = checkpoints.manifests()[-1]
    state = checkpoints.model_state(manifest)
    assert state is not None
    assert has_average(manifest)
    assert largest_difference(state, weights(run.model)) > 0
    read = blocks(norm=True)
    read.load_state_dict(state)
    found = evaluate(run.task, read, run.validation)
    assert found == run.outcome.evaluations[-1][1] == manifest.metrics


def test_until_swa_begins_the_live_weights_are_evaluated_and_read(tmp_path: Path) -> None:
    plain = trainer(tmp_path / "plain", model=blocks(norm=True), stopping={"max_steps": 12})
    run = trainer(tmp_path / "run", model=blocks(norm=True), **SWA)
    plain.fit()
    run.fit()
    assert run.outcome.evaluations[0] == plain.outcome.evaluations[0]
    found = []
    for name in ("plain", "run"):
        checkpoints = Checkpoints(FolderStore(tmp_path / name), "run")
        (first,) = [m for m in checkpoints.manifests() if m.step == 4]
        found.append(checkpoints.model_state(first))
    assert found[0] is not None
    assert found[1] is not None
    assert largest_difference(found[0], found[1]) == 0.0


def test_statistics_are_those_of_the_averaged_network_on_the_train_split() -> None:
    run = trainer(model=blocks(norm=True), **SWA)
    run.fit()
    network = blocks(norm=True)
    network.load_state_dict(averaged(run))
    norm = network.blocks[0][1]  # type: ignore[index]
    assert isinstance(norm, nn.BatchNorm1d)
    seen: list[Tensor] = []
    norm.register_forward_hook(lambda module, inputs, outputs: seen.append(inputs[0]))
    sharing = run.sharing
    rows = torch.cat([
        batch.microbatches[0].examples.arrays["numbers"].clone()
        for batch, _ in zip(run.feed.steps(sharing, samples=0), range(6), strict=False)
    ])  # fmt: skip
    network.eval()
    network(categories=rows, numbers=rows)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert torch.allclose(seen[0].mean(0), norm.running_mean, atol=1e-5)
    assert torch.allclose(seen[0].var(0), norm.running_var, atol=1e-5)


def test_a_layer_that_is_held_keeps_its_statistics_in_the_average_too() -> None:
    model = blocks(norm=True)
    norm = model.blocks[0][1]  # type: ignore[index]
    assert isinstance(norm, nn.BatchNorm1d)
    with torch.no_grad():
        norm.running_mean.fill_(0.25)
        norm.running_var.fill_(4.0)
    hold_statistics(norm)
    run = trainer(model=model, **EMA)
    run.fit()
    told = averaged(run)
    assert torch.equal(told["blocks.0.1.running_mean"], torch.full_like(norm.running_mean, 0.25))
    assert torch.equal(told["blocks.0.1.running_var"], torch.full_like(norm.running_var, 4.0))


# ---- going on ----------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", [8, 9])  # at an evaluation, and between two
@pytest.mark.parametrize("changes", [EMA, SWA])
def test_it_goes_on_as_if_nothing_had_happened(
    tmp_path: Path, changes: dict[str, Any], stop: int
) -> None:
    def run_in(place: str) -> Trainer:
        return trainer(tmp_path / place, model=blocks(norm=True, dropout=0.1), **changes)

    whole = run_in("whole")
    whole.fit()
    first = run_in("run")
    first.should_stop = lambda: first.outcome.steps == stop
    first.fit()
    second = run_in("run")
    assert second.fit().resumed_from == stop
    assert largest_difference(weights(whole.model), weights(second.model)) == 0.0
    assert largest_difference(averaged(whole), averaged(second)) == 0.0
    assert second.outcome.evaluations == whole.outcome.evaluations


def test_a_rollback_takes_the_average_back_as_well(tmp_path: Path) -> None:
    run = trainer(tmp_path, **EMA)
    run.fit()
    run.divergence.last_clean = 8
    run.state.roll_back("the test says so")
    short = trainer(stopping={"max_steps": 8}, **EMA)
    assert run.outcome.steps == average_of(run).count == 8
    short.schedule = run.schedule
    short.fit()
    assert largest_difference(averaged(run), averaged(short)) == 0.0


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_ranks_average_and_go_on_exactly_replicated_and_sharded(tmp_path: Path, count: int) -> None:
    found = run_ranks(count, averages, tmp_path)
    for name, (undisturbed, resumed, states) in found.items():
        ages = torch.arange(len(states) - 1, -1, -1)
        shares = 0.9**ages if "ema" in name else (ages < 6).float()
        closed = mean(states, shares)
        assert resumed["resumed_from"] == 9, name
        assert resumed["evaluations"] == undisturbed["evaluations"], name
        assert largest_difference(resumed["weights"], undisturbed["weights"]) == 0.0, name
        assert largest_difference(resumed["average"], undisturbed["average"]) == 0.0, name
        assert largest_difference(undisturbed["unsaved"], undisturbed["weights"]) == 0.0, name
        average = {n: undisturbed["average"][n] for n in closed}
        assert largest_difference(closed, average) < 1e-5, name
        assert largest_difference(closed, states[-1]) > 1e-4, name
        assert undisturbed["evaluated"] == pytest.approx(undisturbed["evaluations"][-1][1]), name
    alone = trainer(  # one process takes over what several have sharded
        tmp_path / "fsdp ema" / "run",
        model=blocks(norm=True, dropout=0.1),
        task=Sales(),
        count=COUNT,
        averaging={"kind": "ema", "decay": 0.9, "warmup": False},
        **NORMS,
    )
    alone.state.begin()
    assert largest_difference(averaged(alone), found["fsdp ema"][1]["average"]) == 0.0


# ---- settings ----------------------------------------------------------------------------------


def test_a_cycle_that_rises_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"averaging\.low"):
        settings(averaging={"kind": "swa", "rate": "cyclic", "low": 0.9})
    assert TrainingSettings().averaging.kind == "none"
