"""The benchmarks run, count what was done, and refuse to compare different results."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.equality import difference_of
from benchmarks.loop import check_work
from benchmarks.peers.run import Run, Trained
from benchmarks.workloads import WORKLOADS, mlp
from components.common.refit_settings import RefitSettings

ROOT = Path(__file__).resolve().parents[2]


def ran(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )


def last_line(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    line: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return line


def test_the_loop_is_measured_beside_a_plain_one_with_equal_weights() -> None:
    line = last_line(ran("loop", "--count", "1", "--short", "--contestants", "ours"))
    assert line["name"] == "loop"
    assert set(line["figures"]) == {"mlp_ratio", "cnn_ratio", "gpt_ratio"}


@pytest.mark.slow
def test_a_search_is_measured_on_the_holdout_and_notices_a_space_too_small() -> None:
    figures = last_line(ran("tune", "--short"))["figures"]
    assert figures["tune_trials"] == 12
    assert figures["boundary_noticed"] == 1
    assert figures["tune_gain"] > 0


def test_a_snapshot_is_measured_beside_its_listing() -> None:
    line = last_line(ran("snapshot", "--count", "2", "--objects", "3000"))
    assert line["name"] == "snapshot"
    assert set(line["figures"]) == {"incremental_vs_listing", "snapshot_peak_gib"}
    assert line["figures"]["incremental_vs_listing"] > 0


@pytest.mark.slow
def test_a_month_of_flights_is_retrained_in_every_way() -> None:
    figures = last_line(ran("warm_start", "--count", "1", "--months", "4"))["figures"]
    assert set(figures) == {
        *(f"{way}_{what}" for way in ("warm", "short", "shrunk")
          for what in ("minus_cold", "seconds_ratio")),
        "warm_steps_ratio", "warm_never_as_low",
    }  # fmt: skip
    assert 0 < figures["short_seconds_ratio"] < 1


@pytest.mark.slow
def test_a_month_of_flights_is_trained_again_with_all_rows_and_spoilt_ones_are_told() -> None:
    figures = last_line(ran("refit", "--count", "1", "--months", "4"))["figures"]
    assert set(figures) == {
        "passes_minus_judged", "updates_minus_judged",
        *(f"{name}_shift" for name in (
            "passes", "updates", "seed", "month", "carrier", "spoilt"
        )),
    }  # fmt: skip
    assert figures["spoilt_shift"] > RefitSettings().shift > figures["passes_shift"] > 0


@pytest.mark.slow
def test_two_ranks_are_measured_beside_plain_ddp_and_share_the_state() -> None:
    figures = last_line(ran("distributed", "--count", "1", "--short", "--without-peers"))["figures"]
    assert figures["ddp_vs_raw"] > 0
    assert 0.45 <= figures["fsdp_state_ratio"] <= 0.55


@pytest.mark.slow
def test_validation_is_measured_beside_plain_duckdb_and_pandas() -> None:
    few = ("--small", "4000", "--large", "4000", "--largest", "0")
    line = last_line(ran("validate", "--part", "suite", "--count", "1", *few))
    assert set(line["figures"]) == {
        "vs_duckdb_ratio", "peak_gib", "vs_pandas_ratio", "vs_pandas_memory",
    }  # fmt: skip
    assert all(value > 0 for value in line["figures"].values())


@pytest.mark.slow
def test_the_gpu_benchmark_has_a_trial_that_needs_no_gpu() -> None:
    done = ran("gpu", "--trial")
    assert done.returncode == 0, done.stderr
    assert "ours, recomputing" in done.stdout


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_its_benchmark_says_what_to_do() -> None:
    done = ran("gpu")
    assert done.returncode == 2
    assert "hint: run it on a machine with one" in done.stderr


def test_every_interval_of_an_evaluation_is_there() -> None:
    done = ran("evaluate", "--count", "1", "--rows", "20000", "--draws", "200")
    assert done.returncode == 0, done.stderr
    assert "210 intervals" in done.stderr  # ten metrics, the whole and twenty slices
    assert json.loads(done.stdout.splitlines()[-1])["name"] == "evaluate"


def test_a_contestant_that_trained_something_else_stops_the_benchmark() -> None:
    model, reference = mlp().build(), mlp().build()
    assert difference_of("it", mlp(), model, reference) == "weights 0e+00, loss 0e+00"
    with torch.no_grad():
        model.body[0].weight.add_(0.1 * torch.randn(128, 54))
    with pytest.raises(SystemExit, match="trained something else"):
        difference_of("it", mlp(), model, reference)
    with torch.no_grad():
        model.body[0].weight.fill_(float("nan"))
    with pytest.raises(SystemExit, match="trained something else"):
        difference_of("it", mlp(), model, reference)


@pytest.mark.parametrize("what", ["forwards", "evaluations", "checkpoints", "logged losses"])
def test_a_contestant_that_left_work_out_stops_the_benchmark(what: str, tmp_path: Path) -> None:
    run = Run(workload=mlp(), model=mlp().build(), folder=tmp_path)
    run.model.clock.calls = run.steps
    trained = Trained(losses=[0.0] * 24, evaluations=[0.0] * 6, checkpoints=3)
    check_work("it", run, trained)
    run.model.clock.calls -= what == "forwards"
    trained.checkpoints -= what == "checkpoints"
    del trained.evaluations[: what == "evaluations"], trained.losses[: what == "logged losses"]
    with pytest.raises(SystemExit, match=what):
        check_work("it", run, trained)


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_is_built_the_same_each_time(name: str) -> None:
    workload = WORKLOADS[name]()
    one, other = workload.build(), workload.build()
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    rows = workload.order(len(workload.inputs))
    assert torch.equal(rows.sort().values, torch.arange(len(workload.inputs)))


def test_a_missing_peer_fails_with_a_hint() -> None:
    code = (
        "import benchmarks.contestants as c, pathlib; c.PEERS = pathlib.Path('/nowhere'); "
        "c.PACKAGES['Fabric'] = 'no_such_package'; c.contestants(['ours', 'Fabric'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2
    assert "hint: make peers" in done.stderr


def test_peers_are_pinned_and_none_of_them_is_in_the_product() -> None:
    lines = (ROOT / "benchmarks" / "requirements.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins)
    locked = {name_of(line) for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert not locked & {name_of(pin) for pin in pins}


def name_of(pin: str) -> str:
    return pin.split("==")[0].lower().replace("_", "-")
