"""The proof of kills in its short form: one training, killed three times on its way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.proofs.steps import decided, half_made, kill_in, run_again

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
    assert record["champion_after"] == "2"
    runs = project / ".evertrain" / "store" / "runs"
    if record["status"] == "finished":
        (training,) = [s for s in record["steps"] if s["step"] == "train_distributed"]
        if not training["cache_hit"]:
            figures = json.loads((runs / record["run"] / "train_distributed.json").read_text())
            assert figures["figures"]["resumed_from"] > 0, "what was trained is not trained again"
    for run in killed[:2]:
        left = json.loads((runs / run / "run.json").read_text())
        assert (left["status"], left["exit_code"]) == ("interrupted", 3)
        assert (runs / run / "report.html").is_file()
