"""The proof of kills in its short form: one training, killed three times on its way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.proofs.kills import decided, half_made, kill_in, run_again

pytestmark = pytest.mark.slow
SETTING = "training.seed=7"


@pytest.mark.timeout(600)
def test_a_run_killed_again_and_again_goes_on_and_promotes_once(project: Path) -> None:
    killed = [
        kill_in(project, step, SETTING, delay=delay)
        for step, delay in (
            ("snapshot_data", 0.0),
            ("train_distributed", 2.5),
            ("promote_model", 4.0),
        )
    ]
    assert all(killed)
    ended = run_again(project, SETTING)
    assert decided(ended), ended.err
    assert half_made(project) == []
    record = ended.json
    if record["status"] == "finished":
        cached = {s["step"] for s in record["steps"] if s["cache_hit"]}
        assert {"validate_data", "train_distributed", "select_checkpoint"} <= cached
    assert record["champion_after"] == "2"
    runs = project / ".evertrain" / "store" / "runs"
    for run in killed[:2]:
        left = json.loads((runs / run / "run.json").read_text())
        assert (left["status"], left["exit_code"]) == ("interrupted", 3)
        assert (runs / run / "report.html").is_file()
