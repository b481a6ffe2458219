"""A search in real processes: killed anywhere it goes on, and finds what it would have found."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from infra.folder import FolderStore
from tests.small_project.command import environment, make_project
from tests.small_project.splits import write_splits

pytestmark = [pytest.mark.slow, pytest.mark.smoke, pytest.mark.timeout(600)]

# Long enough that a kill comes while a trial trains, with checkpoints in between.
WORDS = (
    "tune.trials=3", "tune.pruning=none", "training.epochs=40",
    "training.checkpoints.every=20",
)  # fmt: skip


@pytest.fixture
def divided(tmp_path: Path) -> Path:
    """The small project with its parts, never run."""
    folder = make_project(tmp_path / "divided", 1)
    write_splits(folder)
    return folder


def start(project: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.components.tune_child", str(project),
         *(words or WORDS)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), cwd="/", text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    out, err = process.communicate(timeout=280)
    assert process.returncode == 0, err
    found: list[dict[str, Any]] = json.loads(out.splitlines()[-1])
    return found


def entries(project: Path) -> int:
    return len(list((project / ".evertrain/store/tune/s/journal").glob("*.json")))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def kill_after(project: Path, *, more: int) -> None:
    """Start the search, kill -9 it once it has written so many entries more; its trials end too."""
    until = entries(project) + more
    with start(project) as process:
        while entries(project) < until:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.005)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        os.kill(process.pid, signal.SIGKILL)
    limit = time.monotonic() + 30
    while any(alive(int(each)) for each in children.split()):
        assert time.monotonic() < limit, "its trials go on without it"
        time.sleep(0.05)


def facts(trials: list[dict[str, Any]]) -> list[Any]:
    keys = ("sampler", "values", "ended", "value", "best_step", "steps", "evaluations")
    return [[trial[key] for key in keys] for trial in trials]


def test_killed_again_and_again_it_finds_what_an_undisturbed_search_finds(
    divided: Path, tmp_path: Path
) -> None:
    calm = Path(shutil.copytree(divided, tmp_path / "calm" / "divided"))
    for more in (5, 5, 9):  # before it trained; while it evaluates; in another trial
        kill_after(divided, more=more)
    found, expected = finish(start(divided)), finish(start(calm))
    assert [trial["ended"] for trial in expected] == ["finished"] * 3
    assert facts(found) == facts(expected)
    numbers = [trial["number"] for trial in found]
    assert numbers == sorted(set(numbers)), "one that was killed while it was asked for is a gap"
    # what the store lists: a process that is killed within a write leaves a file that it hides
    left = list(FolderStore(divided / ".evertrain/store").list("checkpoints/"))
    assert left == [], "the checkpoints of trials that ended are gone"


def test_trials_at_once_end_early_and_two_searches_of_one_study_are_refused(
    divided: Path,
) -> None:
    words = (
        "tune.trials=6", "tune.parallel=2", "tune.unpruned=1", "tune.spared=1",
        "training.epochs=20", "tune.quasi_random=1.0",
    )  # fmt: skip
    with start(divided, *words) as process:
        while not entries(divided):
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)
        with start(divided, *words) as other:
            _, err = other.communicate(timeout=120)
        assert "under way on this machine already" in err
        found = finish(process)
    ends = [trial["ended"] for trial in found]
    assert len(ends) == 6
    assert found[0]["ended"] == "finished", "the present settings are always whole"
    pruned = [trial for trial in found if trial["ended"] == "pruned"]
    assert pruned, ends
    longest = max(len(trial["evaluations"]) for trial in found)
    assert any(len(trial["evaluations"]) < longest for trial in pruned)
