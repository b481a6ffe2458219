"""What every test has: an environment that it must leave as it was, and a project with a champion.

The project is trained once for all workers; tests that change it work on a copy.
"""

from __future__ import annotations

import fcntl
import inspect
import os
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

if str(Path(__file__).parents[1]) not in sys.path:
    sys.path.insert(0, str(Path(__file__).parents[1]))

# Before torch and OpenBLAS are imported: the threads of their pools wait busily, and two workers of
# several threads each on two cores take four times the processor time for the same sums.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Commands are run some hundred times here: without bytecode each compiles our code anew, for 0.4 s.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from tests.small_project.command import evertrain, make_project

# To know its caller's name kfp asks for the stack with all sources, sixty times a compile: nothing
# on the command line, seconds in a worker that has imported everything.
inspect.stack = partial(inspect.stack, 0)

# Set by libraries while they are imported, and by pytest itself.
_NOT_OURS = ("PYTEST_", "MLFLOW_", "KMP_", "TORCH", "TRITON", "_MLFLOW", "GX_ANALYTICS_ENABLED")


# Takes longest, and makes the trained project: whoever else wanted it meanwhile would only wait.
_FIRST = "test_run.py"


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that hold slow tests, lest one worker be left alone with them.

    What lies in `tests/proofs/` and `tests/benchmarks/` is marked `smoke`.
    """
    for item in items:
        if item.path.parent.name in ("proofs", "benchmarks"):
            item.add_marker(pytest.mark.smoke)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path.name != _FIRST, item.path not in slow))


@pytest.fixture(autouse=True)
def _no_leaked_environment() -> Iterator[None]:
    """A variable that a test sets and leaves behind changes the tests after it: fail the test."""
    before = dict(os.environ)
    yield
    after = dict(os.environ)
    os.environ.clear()
    os.environ.update(before)
    leaked = {
        name
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name) and not name.startswith(_NOT_OURS)
    }
    assert not leaked, f"the test left environment variables behind: {sorted(leaked)}"


@pytest.fixture(scope="session")
def trained_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose first run, on January and February, promoted version 1. Do not change it.

    What that run said lies beside it in `run.code`, `run.out` and `run.err`.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "trained_project"
    with (shared / "trained_project.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "run.code").exists():
            ended = evertrain("run", make_project(folder, 1, 2), "--json")
            (shared / "run.out").write_text(ended.out)
            (shared / "run.err").write_text(ended.err)
            (shared / "run.code").write_text(str(ended.code))
    assert (shared / "run.code").read_text() == "0", (shared / "run.err").read_text()
    return folder


@pytest.fixture
def project(trained_project: Path, tmp_path: Path) -> Path:
    """A copy of the trained project, to do with as one likes."""
    return Path(shutil.copytree(trained_project, tmp_path / "project"))


@pytest.fixture
def fresh_project(tmp_path: Path) -> Path:
    """The small project with January and February, never run."""
    return make_project(tmp_path / "fresh", 1, 2)
