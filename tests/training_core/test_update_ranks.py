"""The update on two real processes (gloo), replicated and sharded, against one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from ranks import run_ranks
from update_worker import CPU, NAMES, train, update

from training_core.parallel.single import SingleProcess

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_ranks(2, update, tmp_path_factory.mktemp("update"))


def alike(name: str, kind: str, both: dict[str, Any], alone: dict[str, Any]) -> None:
    # Muon orthogonalises in bfloat16, and sharded products are added up in another order
    tolerance = 2e-3 if (name, kind) == ("muon", "fsdp") else 1e-6
    for key, value in alone["weights"].items():
        assert torch.allclose(both["weights"][key], value, rtol=0, atol=tolerance), key
    assert both["norms"] == pytest.approx(alone["norms"], rel=max(tolerance, 1e-5))
    assert both["moved"] == pytest.approx(alone["moved"], rel=max(5 * tolerance, 1e-5))


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "adafactor"])
def test_two_ranks_take_the_steps_of_one_process(
    found: dict[str, Any], name: str, kind: str
) -> None:
    alone = train(SingleProcess(CPU), name, overflow=False, scaled=False)
    alike(name, kind, found[f"{kind} {name} whole"], alone)
    assert found[f"{kind} {name} whole"]["skipped"] == [0.0, 0.0]


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "adafactor"])
def test_an_overflow_on_one_rank_skips_the_step_and_shrinks_the_scale_on_all(
    found: dict[str, Any], name: str, kind: str
) -> None:
    both = found[f"{kind} {name} overflow"]
    assert both["skipped"] == [1.0, 1.0]
    assert both["scales"] == [[1024.0, 2048.0, 1024.0, 1024.0, 2048.0, 2048.0]] * 2
    alike(name, kind, both, train(SingleProcess(CPU), name, overflow=True, scaled=True))


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_what_is_decided_on_the_device_is_the_same(found: dict[str, Any], kind: str) -> None:
    both = found[f"{kind} adamw on the device"]
    assert both["skipped"] == [1.0, 1.0]
    assert both["scales"] == found[f"{kind} adamw overflow"]["scales"]
    alike("adamw", kind, both, train(SingleProcess(CPU), "adamw", overflow=True, scaled=True))


def test_adafactor_trains_replicated_weights_and_refuses_sharded_ones(
    found: dict[str, Any],
) -> None:
    alone = train(SingleProcess(CPU), "adafactor", overflow=True, scaled=True)
    alike("adafactor", "ddp", found["ddp adafactor overflow"], alone)
    words = found["fsdp adafactor whole"]
    assert "training.optimiser.name is adafactor, which cannot train sharded weights" in words
    assert "hint: set training.parallel.strategy to ddp" in words
