"""Adapters: only they move, they merge into a plain network, and their checkpoints are small."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from ranks_models import blocks
from torch import Tensor, nn
from training_samples import trainer
from transfer_samples import begun, moved, run_of

from infra.folder import FolderStore
from training_core.checkpoints.catalogue import Checkpoints
from training_core.errors import ConfigurationError
from training_core.transfer.lora import AdaptedLinear, merged
from training_core.transfer.settings import LoraSettings, StartSettings
from training_core.transfer.weights import start_from

LORA = {"lora": {"rank": 2, "alpha": 8.0}}


def test_only_adapters_move_and_the_model_begins_as_it_was() -> None:
    run = run_of(LORA, optimiser={"lr": 0.05})
    inputs = {"categories": torch.zeros(6, 1), "numbers": torch.randn(6, 2)}
    assert torch.equal(run.module.eval()(**inputs), blocks(norm=True).eval()(**inputs))
    before = {name: value.clone() for name, value in run.module.state_dict().items()}
    run.fit()
    names = moved(before, run.module.state_dict())
    assert {name.split(".")[-1] for name in names} == {"lora_a", "lora_b"}
    assert len(names) == 2 * 4
    assert isinstance(run.module.head, AdaptedLinear)


def test_merged_weights_say_what_the_adapters_said_and_are_a_plain_models(tmp_path: Path) -> None:
    run = run_of({"lora": {"rank": 2, "alpha": 8.0, "patterns": ["blocks.*", "head"]}}, tmp_path)
    run.fit()
    places = Checkpoints(FolderStore(tmp_path), "run")
    newest = places.manifests()[-1]
    state = places.model_state(newest)
    assert state is not None
    assert not any(name in state for name in ("first.weight", "blocks.0.0.weight", "head.weight"))
    plain = blocks(norm=True)
    plain.load_state_dict(merged(state, begun(), run.settings.start.lora))
    inputs = {"categories": torch.zeros(64, 1), "numbers": torch.randn(64, 2)}
    with torch.no_grad():
        said, expected = plain.eval()(**inputs), run.module.eval()(**inputs)
    assert not torch.equal(said, blocks(norm=True).eval()(**inputs))
    assert float((said - expected).abs().max()) < 1e-6


class Wide(nn.Module):
    """Large beside its adapters."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(2, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        self.head = nn.Linear(256, 1)

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        outputs: Tensor = self.head(self.inner(numbers))
        return outputs.squeeze(1)


def test_a_checkpoint_of_adapters_is_small(tmp_path: Path) -> None:
    sizes = []
    for name, start in (("whole", {}), ("lora", {"lora": {"rank": 2}})):
        trainer(tmp_path / name, model=Wide(), start=start).fit()
        manifest = Checkpoints(FolderStore(tmp_path / name), "run").manifests()[-1]
        sizes.append(sum(shard.size for shard in manifest.shards.values()))
    assert sizes[1] < 0.1 * sizes[0]  # most of what is left is the random state, 5 kB


def test_a_head_that_is_replaced_is_trained_whole_beside_adapters() -> None:
    model = blocks(norm=True)
    given = {"weights": "file", "file": "x", "replace": ["head.*"], "lora": {"rank": 2}}
    start_from(model, StartSettings.model_validate(given), begun())
    run = trainer(model=model, start=given, epochs=3)
    before = {name: value.clone() for name, value in run.module.state_dict().items()}
    run.fit()
    names = moved(before, run.module.state_dict())
    assert {"head.weight", "head.bias", "first.lora_b"} <= names
    assert "head.lora_a" not in before
    assert "first.weight" not in names


def test_a_model_without_linear_layers_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"no nn\.Linear for an adapter"):
        trainer(model=nn.Conv1d(1, 1, 1), start=LORA)


def test_alpha_over_rank_is_the_scale() -> None:
    settings = LoraSettings(rank=4, alpha=2.0)
    a, b, weight = torch.randn(4, 3), torch.randn(5, 4), torch.randn(5, 3)
    found = merged({"x.lora_a": a, "x.lora_b": b}, {"x.weight": weight}, settings)
    assert torch.allclose(found["x.weight"], weight + 0.5 * b @ a)
    assert set(found) == {"x.weight"}
