"""What is done to a model before training, and what of it the weights may not notice."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
import torch
from ranks_models import blocks
from torch import Tensor, nn
from torch._dynamo.utils import counters
from training_samples import CPU, Certain, largest_difference, settings, trainer, weights

from training_core.errors import ConfigurationError
from training_core.examples import Examples
from training_core.feeds.memory import MemoryFeed
from training_core.feeds.prefetch import Prefetched
from training_core.parallel.blocks import blocks_of
from training_core.parallel.single import SingleProcess
from training_core.preparation import fixed_sample, set_up_model


def _trained(**changes: Any) -> dict[str, Tensor]:
    run = trainer(model=blocks(dropout=0.1), **changes)
    run.fit()
    return weights(run.module)


def test_recomputed_activations_give_the_very_same_weights_dropout_included() -> None:
    plain, again = _trained(), _trained(activation_checkpointing=True)
    assert largest_difference(plain, again) == 0.0


def test_recomputing_keeps_fewer_activations() -> None:
    kept: dict[bool, int] = {}
    for recompute in (False, True):
        model = set_up_model(
            blocks(), settings(activation_checkpointing=recompute), SingleProcess(CPU)
        )
        saved: list[int] = []

        def note(tensor: Tensor, saved: list[int] = saved) -> Tensor:
            saved.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            model(categories=torch.zeros(64, 1, dtype=torch.int64), numbers=torch.randn(64, 2))
        kept[recompute] = sum(saved)
    assert kept[True] < 0.7 * kept[False]


def test_a_model_without_repeated_blocks_cannot_recompute_them() -> None:
    with pytest.raises(ConfigurationError, match=r"has no repeated blocks") as raised:
        trainer(activation_checkpointing=True)
    assert "nn.ModuleList" in str(raised.value)


def test_blocks_are_the_elements_of_the_outermost_lists() -> None:
    inner = nn.ModuleList([nn.Linear(2, 2), nn.ReLU()])
    model = nn.Sequential(nn.ModuleList([nn.Sequential(inner), nn.Identity()]), nn.Linear(2, 2))
    assert blocks_of(model) == [model[0][0]]


def test_tables_in_a_list_leave_the_model_to_be_compiled_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(torch, "compile", lambda forward: forward)
    model = nn.Sequential(nn.ModuleList([nn.Embedding(4, 2), nn.Embedding(3, 2)]), nn.Linear(2, 1))
    set_up_model(model, settings(compile=True), SingleProcess(CPU))
    assert [name for name, each in model.named_modules() if "forward" in vars(each)] == [""]


@pytest.mark.smoke  # compiles
@pytest.mark.filterwarnings("default")  # the compiler warns of its own ways
def test_a_compiled_model_trains_the_same_or_is_refused_where_there_is_no_compiler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR", "")  # the compiler sets it
    if not any(map(shutil.which, ("c++", "g++", "clang++"))):
        with pytest.raises(ConfigurationError, match=r"no C\+\+ compiler"):
            trainer(compile=True)
        return
    plain, compiled = (
        trainer(model=blocks(), count=64, epochs=1, compile=choice) for choice in (False, True)
    )
    plain.fit()
    counters.clear()
    compiled.fit()
    assert counters["frames"]["ok"] > 0, "nothing was compiled"
    assert largest_difference(weights(plain.module), weights(compiled.module)) < 1e-5


class _Picture(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 1)
        self.layouts: set[bool] = set()

    def forward(self, picture: Tensor) -> Tensor:
        hidden = self.convolution(picture)
        self.layouts.add(hidden.is_contiguous(memory_format=torch.channels_last))
        outputs: Tensor = self.head(torch.relu(self.norm(hidden)).mean((2, 3)))
        return outputs.squeeze(1)


def _pictures(**changes: Any) -> _Picture:
    torch.manual_seed(0)
    model, generator = _Picture(), torch.Generator().manual_seed(1)
    pictures = torch.randn(40, 3, 8, 8, generator=generator)
    examples = Examples({"picture": pictures}, (pictures.mean((1, 2, 3)) > 0).float())
    changes["optimiser"] = {"name": "sgd", "lr": 0.1}  # Adam magnifies gradients of zero
    trainer(task=Certain(), model=model, train=examples, validation=examples, **changes).fit()
    return model


def test_channels_last_changes_the_layout_and_not_the_result() -> None:
    plain, last = _pictures(), _pictures(channels_last=True)
    assert (plain.layouts, last.layouts) == ({False}, {True})
    assert largest_difference(weights(plain), weights(last)) < 1e-4


def test_a_feed_that_runs_ahead_trains_the_same_weights() -> None:
    alone = trainer()
    alone.fit()
    train = trainer().feed
    assert isinstance(train, MemoryFeed)
    ahead = trainer(train=Prefetched(train))
    ahead.fit()
    assert largest_difference(weights(alone.model), weights(ahead.model)) == 0.0


def test_the_sample_that_is_evaluated_stays_the_same_and_keeps_its_order() -> None:
    examples = Examples({"row": torch.arange(50)}, torch.zeros(50))
    first, second = (fixed_sample(examples, settings(evaluation_rows=10)) for _ in range(2))
    rows = first.arrays["row"]
    assert torch.equal(rows, second.arrays["row"])
    assert rows.tolist() == sorted(set(rows.tolist()))
    assert len(rows) == 10
    assert fixed_sample(examples, settings(evaluation_rows=99)) is examples


def test_a_single_row_for_batch_norm_is_refused_before_training_begins() -> None:
    with pytest.raises(ConfigurationError, match="a single row") as raised:
        trainer(model=blocks(norm=True), count=41)
    assert "hint: set training.batch_size to 9" in str(raised.value)
