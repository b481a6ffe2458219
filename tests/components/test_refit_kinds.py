"""A task of each kind, and of several processes, is trained again on all rows and promoted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.small_kinds import make_kind
from tests.small_project.command import make_project
from tests.small_project.refit_steps import Steps

pytestmark = [pytest.mark.smoke, pytest.mark.timeout(300)]
WIDE = ("refit.shift=0.5", "refit.slice_shift=1")


@pytest.mark.parametrize("kind", ["multiclass", "multilabel", "regression", "sequence"])
def test_each_kind_is_trained_again_with_the_mean_of_checkpoints_that_was_judged(
    tmp_path: Path, kind: str
) -> None:
    folder = make_kind.make_kind(tmp_path / kind, kind, 1)
    steps = Steps(folder, *WIDE, "training.optimiser.lr=0.005",
                  "select.rule=latest")  # fmt: skip
    steps.train(make_kind.month(1, kind))
    steps.judge()
    figures = steps.refit()["figures"]
    assert figures["outcome"] == "refitted", figures["reason"]
    facts = json.loads((steps.left / "judged" / "package.json").read_text())["facts"]
    assert len(figures["members"]) == len(facts.get("mean_of_steps", []))
    assert 0 < figures["shift"]["mean"] < 0.5
    assert (figures["shift"]["churned"] is None) == (kind == "regression")
    assert steps.promote()["figures"]["outcome"] == "promoted"


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_processes_train_again_together(tmp_path: Path, strategy: str) -> None:
    steps = Steps(make_project(tmp_path / "project"), *WIDE, "training.processes=2",
                  f"training.parallel.strategy={strategy}")  # fmt: skip
    steps.train()
    steps.judge()
    figures = steps.refit()["figures"]
    assert figures["outcome"] == "refitted", figures["reason"]
    assert steps.promote()["figures"]["outcome"] == "promoted"
