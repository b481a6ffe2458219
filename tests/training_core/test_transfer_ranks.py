"""Frozen parts, thawing, rates by depth and adapters on two real processes (gloo)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from ranks import run_ranks
from ranks_worker import strategy_of
from transfer_worker import KINDS, STARTS, STOP, run_of, transfer

pytestmark = [pytest.mark.slow, pytest.mark.smoke]

CASES = [(kind, name) for kind in KINDS for name in STARTS]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_ranks(2, transfer, tmp_path_factory.mktemp("transfer"))


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_stop_within_the_schedule_costs_not_a_bit(
    found: dict[str, Any], kind: str, name: str
) -> None:
    case = found[f"{kind} {name} True"]
    assert STOP <= case["stopped"] < case["whole"]["steps"]
    assert case["again"]["resumed_from"] == case["stopped"]
    for key, value in case["whole"]["weights"].items():
        assert torch.equal(value, case["again"]["weights"][key]), key
    assert case["again"]["evaluations"] == case["whole"]["evaluations"]
    assert case["again"]["norms"] == case["whole"]["norms"]


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_what_is_frozen_stays_and_has_no_moments(
    found: dict[str, Any], kind: str, name: str, norm: bool
) -> None:
    case = found[f"{kind} {name} {norm}"]
    begun, ended = case["begun"], case["whole"]["weights"]
    assert case["frozen"]
    assert not set(case["frozen"]) & set(case["state"])
    still = [n for n in begun if torch.equal(begun[n], ended[n])]
    statistics = [n for n in begun if "running" in n or "tracked" in n]
    held = [n for n in statistics if name == "lora" or n.startswith("blocks.0.")]
    assert set(still) == {*case["frozen"], *held}
    assert bool(case["sharded"]) == (kind == "fsdp")


@pytest.mark.parametrize(("kind", "name"), [case for case in CASES if case[0] != "topology"])
def test_two_ranks_train_as_one_process_does(found: dict[str, Any], kind: str, name: str) -> None:
    alone = run_of(STARTS[name], None)
    alone.fit()
    both = found[f"{kind} {name} False"]["whole"]
    for key, value in alone.module.state_dict().items():
        assert torch.allclose(both["weights"][key], value, rtol=0, atol=2e-5), key
    norms = [point.gradient_norm for point in alone.outcome.curve]
    assert both["norms"] == pytest.approx(norms, rel=1e-3)


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("name", STARTS)
def test_canonical_microbatches_give_the_same_bits_on_one_rank_and_on_two(
    found: dict[str, Any], name: str, norm: bool
) -> None:
    kind = KINDS["topology"]
    alone = run_of(STARTS[name], None, norm=norm, strategy=strategy_of(**kind), **kind)
    alone.fit()
    both = found[f"topology {name} {norm}"]["whole"]
    for key, value in alone.module.state_dict().items():
        assert torch.equal(both["weights"][key], value), key
