"""A checkpoint holds the state of its step, whatever training does while it is written."""

from __future__ import annotations

import math
import threading
from pathlib import Path

import pytest
import torch
from checkpoint_samples import Network, Training, files_of, same, shard_of, steps_of
from torch import Tensor, nn

from infra.folder import FolderStore
from training_core.checkpoints.catalogue import Checkpoints
from training_core.errors import ConfigurationError
from training_core.optim.flat import FlatParameters
from training_core.optim.optimisers import build_optimisers
from training_core.optim.settings import OptimiserSettings


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    run = Training(tmp_path)
    run.train(3)
    progress = {"best": math.inf, "loss": math.nan, "tenth": 0.1, "curve": [[1, 1e-300]], "ü": None}
    extra, own = {"norms": torch.arange(3.0)}, {"torch": torch.get_rng_state()}
    run.save(metrics={"loss": 0.1 + 0.2}, progress=progress, extra=extra, own=own)
    again = Training(tmp_path, seed=1)
    assert not same(again.state(), run.state())
    restored = again.saver.restore()
    assert restored is not None
    assert same(again.state(), run.state())
    assert (restored.manifest.step, restored.manifest.samples) == (3, 30)
    assert restored.manifest.metrics == {"loss": 0.1 + 0.2}
    assert math.isnan(restored.progress.pop("loss"))
    assert restored.progress == {k: v for k, v in progress.items() if k != "loss"}
    assert same(restored.extra, extra)
    assert restored.own is not None
    assert same(restored.own, own)
    assert files_of(tmp_path) == {
        "run/000000003/manifest.json",
        shard_of(tmp_path, 3).relative_to(tmp_path).as_posix(),
    }


def test_training_on_from_a_checkpoint_gives_the_very_same_weights(tmp_path: Path) -> None:
    whole = Training(tmp_path)
    whole.train(2)
    whole.begin()
    whole.train(4)
    whole.saver.finish()
    again = Training(tmp_path, seed=1)
    assert again.resume() == 2
    again.train(4)
    assert same(again.state(), whole.state())


class _SlowStore(FolderStore):
    """Writes nothing until it is allowed to."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.open = threading.Event()

    def put(self, key: str, data: bytes | memoryview) -> None:
        assert self.open.wait(60)
        super().put(key, data)


def test_steps_taken_while_a_checkpoint_is_written_do_not_reach_it(tmp_path: Path) -> None:
    store = _SlowStore(tmp_path)
    run = Training(Checkpoints(store, "run"))
    run.train(2)
    before = run.state()
    run.begin()
    run.train(5)  # running statistics change in its forward already, before any update
    assert not same(run.state(), before)
    store.open.set()
    run.saver.finish()
    again = Training(tmp_path, seed=1)
    assert again.resume() == 2
    assert same(again.state(), before)


def test_an_update_waits_for_the_copy(tmp_path: Path) -> None:
    run = Training(tmp_path)
    run.train()
    gate, copy = threading.Event(), run.saver._snapshot.copy

    def late() -> None:
        gate.wait(60)
        copy()

    run.saver._snapshot.copy = late  # type: ignore[method-assign]
    before = run.state()
    run.begin()
    threading.Timer(0.2, gate.set).start()
    run.train()
    assert run.saver.blocked_seconds > 0.1
    run.saver.finish()
    again = Training(tmp_path, seed=1)
    assert again.resume() == 1
    assert same(again.state(), before)


def test_a_checkpoint_that_is_due_waits_for_the_one_before_and_says_how_long(
    tmp_path: Path,
) -> None:
    store = _SlowStore(tmp_path)
    run = Training(Checkpoints(store, "run"))
    run.train()
    run.begin()
    run.train()
    threading.Timer(0.3, store.open.set).start()
    run.begin()
    assert 0.2 < run.saver.stall_seconds < run.saver.blocked_seconds
    run.saver.finish()
    assert steps_of(run.checkpoints) == [1, 2]


def test_not_asynchronous_the_checkpoint_is_there_when_begin_returns(tmp_path: Path) -> None:
    run = Training(tmp_path, asynchronous=False)
    run.train()
    run.begin()
    assert steps_of(run.checkpoints) == [1]


class _Counting(Network):
    """Puts a new tensor in a buffer's place at each forward."""

    def __init__(self) -> None:
        super().__init__(seed=1)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, inputs: Tensor) -> Tensor:
        self.count = self.count + 1
        return super().forward(inputs)


def test_a_buffer_that_the_model_replaces_is_saved_as_it_is_now(tmp_path: Path) -> None:
    run = Training(tmp_path, model=_Counting())
    for _ in range(3):
        run.train()
        run.save()
    for manifest in run.checkpoints.manifests():
        state = run.checkpoints.model_state(manifest)
        assert state is not None
        assert state["count"] == manifest.step


@pytest.mark.parametrize("name", ["adamw", "adam", "sgd", "nadam", "adafactor", "muon"])
def test_the_state_of_every_optimiser_is_loaded_in_place(tmp_path: Path, name: str) -> None:
    def training(seed: int) -> Training:
        model = Network(seed=seed)
        settings = OptimiserSettings.model_validate({"name": name})
        return Training(tmp_path, model=model, optimisers=build_optimisers(model, settings))

    whole = training(0)
    whole.train(2)
    whole.begin()
    whole.train(3)
    whole.saver.finish()
    again = training(1)
    assert again.resume() == 2
    again.train(3)
    assert same(again.state(), whole.state())
    assert len(again.state()) > len(again.model.state_dict())


def test_flat_parameters_and_moments_stay_flat_when_they_are_loaded(tmp_path: Path) -> None:
    def training(seed: int) -> tuple[Training, FlatParameters]:
        model = Network(seed=seed)
        flat = FlatParameters(model)
        optimisers = build_optimisers(model, OptimiserSettings(), flat=flat)
        return Training(tmp_path, model=model, optimisers=optimisers), flat

    whole, _ = training(0)
    for _ in range(3):
        whole.train()
    whole.begin()
    whole.train(2)
    whole.saver.finish()
    again, _ = training(1)
    before = {name: t.data_ptr() for name, t in again.model.state_dict().items()}
    assert again.resume() == 3
    assert {name: t.data_ptr() for name, t in again.model.state_dict().items()} == before
    again.train(2)
    assert same(again.state(), whole.state())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_numbers_of_every_width_and_layout_come_back(tmp_path: Path, dtype: torch.dtype) -> None:
    def model(seed: int) -> nn.Module:
        torch.manual_seed(seed)
        convolution = nn.Conv2d(3, 4, 3).to(dtype).to(memory_format=torch.channels_last)
        convolution.register_buffer("seen", torch.tensor([True, False]))
        convolution.register_buffer("empty", torch.zeros(0, 3))
        return convolution

    one = Training(tmp_path, model=model(0), optimisers=[torch.optim.SGD([torch.zeros(1)], 0.1)])
    one.steps = 1
    one.save()
    other = Training(tmp_path, model=model(1), optimisers=[torch.optim.SGD([torch.zeros(1)], 0.1)])
    assert other.resume() == 1
    assert same(other.state(), one.state())
    assert other.state()["model.weight"].dtype == dtype
    weight = other.model.weight
    assert isinstance(weight, Tensor)
    assert weight.is_contiguous(memory_format=torch.channels_last)
    stored = other.checkpoints.model_state(other.checkpoints.manifests()[0])
    assert stored is not None
    assert torch.equal(stored["weight"], weight.detach())


def test_progress_that_is_no_plain_data_is_refused_where_it_is_given(tmp_path: Path) -> None:
    run = Training(tmp_path)
    run.train()
    with pytest.raises(TypeError):
        run.begin(progress={"rate": torch.ones(1)})
    run.save()
    assert steps_of(run.checkpoints) == [1]


def test_progress_that_goes_on_while_it_is_written_stays_as_it_was(tmp_path: Path) -> None:
    store = _SlowStore(tmp_path)
    run = Training(Checkpoints(store, "run"))
    run.train()
    curve = [0.5]
    run.begin(progress={"curve": curve})
    curve.append(0.4)
    store.open.set()
    run.saver.finish()
    assert run.checkpoints.manifests()[0].progress == {"curve": [0.5]}


@pytest.mark.parametrize(
    "model", [Network(hidden=14), Network().double()], ids=["shape", "precision"]
)
def test_a_checkpoint_of_another_model_is_refused_and_not_taken_for_a_damaged_one(
    tmp_path: Path, model: Network
) -> None:
    run = Training(tmp_path)
    run.train()
    run.save()
    other = Training(tmp_path, model=model)
    with pytest.raises(ConfigurationError, match="is of another model or optimiser"):
        other.resume()
    assert other.checkpoints.damaged == []
    assert steps_of(other.checkpoints) == [1]
